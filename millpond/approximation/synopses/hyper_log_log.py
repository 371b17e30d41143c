"""How many different keys came, in a byte for each of some registers (Flajolet and others 2007).

A key falls on a register by some bits of its hash, and has a rank by others: the number of zeros
they begin with, and one. A register has the largest rank of its keys. In difference to the paper
there is no correction by tables, and bounds do not take anything for normal: they invert a tail of
the sum of 2^-register that holds for any number of keys; `docs/precision.md` has the proof.
"""

import math

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats, check_risk, require
from millpond.approximation.intervals.approximate import Approximate, bounded, exactly
from millpond.approximation.intervals.counts import first_that_holds, is_rare
from millpond.approximation.intervals.interval import Interval
from millpond.approximation.sampling.draws import draws_of_keys, keyed
from millpond.approximation.synopses.hash_layers import within

LEAST_REGISTERS = 16
_MOST_BITS = 20
"""Of a hash, that may say which register; the others say the rank."""
_RANKS = np.arange(66 - _MOST_BITS)
"""From 0, of a register without keys, to that of a hash in which all other bits are 0."""
_SIZES = np.geomspace(1e-4, 64, 80)
"""Tails are tried with so many exponents, as multiples of what they are for."""

Registers = npt.NDArray[np.uint8]


class HyperLogLog:
    """Distinct keys of rows that only come.

    >>> seen = HyperLogLog(1, memory_bytes=1024)
    >>> seen.add(np.arange(5000) % 3000); seen.distinct(0.05).confident
    Interval(low=2794, high=3339)
    """

    def __init__(self, seed: int, memory_bytes: int) -> None:
        self._seed, self._rows = seed, 0
        self._registers: Registers = np.empty(0, dtype=np.uint8)
        self.change_memory(memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken."""
        return self._registers.nbytes

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken: half of the registers are laid on the others; with
        more there are more only as long as no key has come."""
        require(memory_bytes >= LEAST_REGISTERS, f"{memory_bytes} bytes: too little memory")
        if not self._rows:
            bits = min(memory_bytes.bit_length() - 1, _MOST_BITS)
            self._registers = np.zeros(1 << bits, dtype=np.uint8)
        while len(self._registers) > memory_bytes:
            half = len(self._registers) // 2
            self._registers = np.maximum(self._registers[:half], self._registers[half:])

    def add(self, keys: npt.ArrayLike) -> None:
        """Takes rows with these keys in."""
        hashes = keyed(draws_of_keys(self._seed, keys), f"{self._seed}:register")
        places = within(hashes, len(self._registers))
        bits = (hashes >> np.uint64(_MOST_BITS)).astype(np.float64)
        _, length = np.frexp(bits)
        ranks = (len(_RANKS) - 1 - length).astype(np.uint8)
        np.maximum.at(self._registers, places, ranks)
        self._rows += len(hashes)

    def distinct(self, risk: float) -> Approximate:
        """How many different keys there were."""
        return distinct_of(self._registers, self._rows, risk)


def distinct_of(registers: Registers, rows: int, risk: float) -> Approximate:
    """How many different keys made registers what they are, of so many rows.

    >>> distinct_of(np.zeros(16, dtype=np.uint8), 0, 0.05).certain
    Interval(low=0, high=0)
    """
    check_risk(risk)
    least = int(np.count_nonzero(registers))
    if least == rows:
        return exactly(rows)
    seen = float(np.mean(2.0 ** -registers.astype(np.float64)))

    def is_too_few(keys: int) -> bool:
        return is_rare(_tail(len(registers), keys, seen, -1), risk / 2)

    def is_too_many(keys: int) -> bool:
        return is_rare(_tail(len(registers), keys, seen, 1), risk / 2)

    def is_enough(keys: int) -> bool:
        return _mean(len(registers), keys) <= seen

    estimate = first_that_holds(least, rows, is_enough)
    low = first_that_holds(least, estimate, lambda keys: not is_too_few(keys))
    high = first_that_holds(estimate + 1, rows + 1, is_too_many) - 1
    return bounded(estimate, Interval(least, rows), Interval(low, high), risk)


def _log_chances(registers: int, keys: int) -> Floats:
    """The logarithms of the chances that a register has a rank, by rank."""
    with np.errstate(divide="ignore"):
        at_most = keys * np.log1p(-(0.5 ** _RANKS.astype(np.float64)) / registers)
        at_most[-1] = 0.0
        first = at_most[:1]
        found: Floats = at_most[1:] + np.log(-np.expm1(at_most[:-1] - at_most[1:]))
    return np.concatenate([first, found])


def _mean(registers: int, keys: int) -> float:
    """What 2^-register is in the mean."""
    return float((np.exp(_log_chances(registers, keys)) * 0.5**_RANKS).sum())


def _tail(registers: int, keys: int, seen: float, sign: int) -> float:
    """The most that the chance can be of a mean of 2^-register that is at most what was seen, or,
    for a sign of 1, at least."""
    exponents = sign * _SIZES[:, None] / seen * (0.5**_RANKS - seen) + _log_chances(registers, keys)
    top = exponents.max(axis=1)
    logarithms = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    return math.exp(min(0.0, registers * float(logarithms.min())))

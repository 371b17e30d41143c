"""Ranks and percentiles of rows that only come (Karnin, Lang and Liberty 2016).

Values lie in levels, those of level h for 2^h rows each. Where there are too many, the values of a
level are put in order, and every other one goes up a level, for its neighbour too. Which of both
does a draw say. How wrong ranks can be by that is counted as it happens, not estimated from the
number of rows; `docs/precision.md` has the proof.
"""

import math

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats, check_risk, finite, require
from millpond.approximation.intervals.approximate import Approximate, bounded, exactly
from millpond.approximation.intervals.interval import Interval
from millpond.approximation.sampling.draws import keyed

BYTES_OF_A_VALUE = 8
LEAST_VALUES = 128
"""More than there can be levels, so that there is always a level with two values."""
_SHRINK = 2 / 3
"""How much smaller a level is than the one above it."""


class KllSketch:
    """Values of rows, for how many are at most a value and for the value of a rank.

    >>> sketch = KllSketch(1, memory_bytes=8 * 400)
    >>> sketch.add(np.arange(300)); sketch.value_of_rank(150, 0.05).certain
    Interval(low=149.0, high=149.0)
    >>> sketch.add(np.arange(300, 10_000)); 4999 in sketch.value_of_rank(5000, 0.05).confident
    True
    """

    def __init__(self, seed: int, memory_bytes: int) -> None:
        self._seed = seed
        self._levels: list[Floats] = [np.empty(0)]
        self._compactions: list[int] = [0]
        self._rows = 0
        self._least, self._largest = math.inf, -math.inf
        self.change_memory(memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken."""
        return self._values() * BYTES_OF_A_VALUE

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken; with less, levels are compacted."""
        least = LEAST_VALUES * BYTES_OF_A_VALUE
        require(memory_bytes >= least, f"{memory_bytes} bytes: less than {LEAST_VALUES} values")
        self._most = memory_bytes // BYTES_OF_A_VALUE
        while self._values() > self._most:
            self._compact(self._fullest())

    def add(self, values: npt.ArrayLike) -> None:
        """Takes values in, as many at a time as there is room for."""
        numbers = finite(values)
        if len(numbers):
            self._rows += len(numbers)
            self._least = min(self._least, float(numbers.min()))
            self._largest = max(self._largest, float(numbers.max()))
        while len(numbers):
            while self._values() >= self._most:
                self._compact(self._fullest())
            room = self._most - self._values()
            self._levels[0] = np.append(self._levels[0], numbers[:room])
            numbers = numbers[room:]

    def rank(self, value: float, risk: float) -> Approximate:
        """How many rows are at most a value."""
        check_risk(risk)
        if self._is_whole():
            return exactly(int((self._levels[0] <= value).sum()))
        values, weights = self._weighted()
        found = int(weights[values <= value].sum())
        certain, confident = (self._ranks(found, error) for error in self._errors(risk))
        return bounded(found, certain, confident, risk)

    def value_of_rank(self, rank: int, risk: float) -> Approximate:
        """The value of a rank, counted from one in order of size."""
        check_risk(risk)
        require(1 <= rank <= self._rows, f"rank {rank} of {self._rows} rows")
        values, weights = self._weighted()
        at_most = np.cumsum(weights)
        if self._is_whole():
            return exactly(float(values[rank - 1]))
        certain, confident = (
            self._around(rank, error, values, at_most) for error in self._errors(risk)
        )
        return bounded(float(values[np.searchsorted(at_most, rank)]), certain, confident, risk)

    def _ranks(self, found: int, error: int) -> Interval:
        return Interval(max(found - error, 0), min(found + error, self._rows))

    def _around(
        self, rank: int, error: int, values: Floats, at_most: npt.NDArray[np.int64]
    ) -> Interval:
        """The values between which that of a rank is, if ranks are wrong by so many at most."""
        above = int(np.searchsorted(at_most, rank + error))
        below = int(np.searchsorted(at_most, rank - error)) if rank > error else 0
        low = float(values[below]) if rank > error else self._least
        return Interval(low, float(values[above]) if above < len(values) else self._largest)

    def _errors(self, risk: float) -> tuple[int, int]:
        """By how much a rank is wrong at most, and with at most this risk."""
        most = sum(count << level for level, count in enumerate(self._compactions))
        variance = sum(count << 2 * level for level, count in enumerate(self._compactions))
        likely = math.floor(math.sqrt(2 * variance * math.log(2 / risk)) * (1 + 1e-9))
        return most, min(most, likely)

    def _weighted(self) -> tuple[Floats, npt.NDArray[np.int64]]:
        """All values in order, and how many rows each stands for."""
        values = np.concatenate(self._levels)
        sizes = [len(level) for level in self._levels]
        weights = np.repeat(np.left_shift(1, np.arange(len(sizes), dtype=np.int64)), sizes)
        order = np.argsort(values, kind="stable")
        return values[order], weights[order]

    def _is_whole(self) -> bool:
        """Whether all rows are there."""
        return not any(self._compactions)

    def _values(self) -> int:
        return sum(map(len, self._levels))

    def _fullest(self) -> int:
        """The lowest level that has more than is meant for it, or the lowest with two values."""
        levels = len(self._levels)
        top = (self._most - 2 * levels) * (1 - _SHRINK)
        for level, values in enumerate(self._levels):
            if len(values) > max(2, top * _SHRINK ** (levels - 1 - level)):
                return level
        return next(level for level, values in enumerate(self._levels) if len(values) > 1)

    def _compact(self, level: int) -> None:
        """Every other value of a level goes up; of an odd number one stays, whichever came last."""
        if level + 1 == len(self._levels):
            self._levels.append(np.empty(0))
            self._compactions.append(0)
        values = self._levels[level]
        even = len(values) - len(values) % 2
        kept = np.sort(values[:even])[self._draw() :: 2]
        self._levels[level], self._levels[level + 1] = (
            values[even:],
            np.append(self._levels[level + 1], kept),
        )
        self._compactions[level] += 1

    def _draw(self) -> int:
        """Whether the first or the second of two neighbours goes up, by a hash."""
        number = np.array([sum(self._compactions)], dtype=np.uint64)
        return int(keyed(number, f"{self._seed}:compaction")[0] >> np.uint64(63))

"""How many rows are in a range, from the largest Haar coefficients (Matias, Vitter, Wang 1998).

Positions are integers below a power of two. What is let go of the coefficients is bounded by level:
the largest, and the length of the vector of them. Over a range at most two functions of a level do
not cancel out, so both give a bound that holds for certain.
"""

import math
from collections import defaultdict
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import require
from millpond.approximation.intervals.approximate import Approximate
from millpond.approximation.intervals.interval import Interval

BYTES_OF_A_COEFFICIENT = 128
"""About what a level, a block and a coefficient take in a dictionary."""

_Function: TypeAlias = tuple[int, int]
"""Its level (2^level positions wide) and which block of that width it is."""


class HaarWavelets:
    """Rows by position, that come and go; how many are in a range.

    >>> wavelets = HaarWavelets(10, memory_bytes=128 * 40)
    >>> wavelets.add(np.arange(1024)); wavelets.count_between(100, 199).certain
    Interval(low=100, high=100)
    """

    def __init__(self, levels: int, memory_bytes: int) -> None:
        require(0 <= levels <= 62, f"{levels} levels: there can be up to 62")
        self._levels = levels
        self._rows = 0
        self._moved = 0
        self._kept: dict[_Function, float] = {}
        self._largest = np.zeros(levels + 1)
        self._length = np.zeros(levels + 1)
        self.change_memory(memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken, about."""
        return len(self._kept) * BYTES_OF_A_COEFFICIENT

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken; with less, the smallest coefficients go."""
        require(memory_bytes >= BYTES_OF_A_COEFFICIENT, f"{memory_bytes} bytes: too little memory")
        self._most = memory_bytes // BYTES_OF_A_COEFFICIENT
        self._shrink()

    def add(self, positions: npt.ArrayLike, copies: int = 1) -> None:
        """Takes rows at these positions in, or, with ``copies`` of -1, out again."""
        where = np.asarray(positions, dtype=np.int64)
        is_there = (where >= 0) & (where < 1 << self._levels)
        require(bool(is_there.all()), f"a position outside 0 … 2^{self._levels} - 1")
        self._rows += copies * len(where)
        self._moved += abs(copies) * len(where)
        for level in range(1, self._levels + 1):
            signs = np.where(where >> (level - 1) & 1, -copies, copies)
            blocks, at = np.unique(where >> level, return_inverse=True)
            sums = np.bincount(at, signs, len(blocks)) * 2 ** (-level / 2)
            for block, change in zip(blocks.tolist(), sums.tolist(), strict=True):
                self._change((level, block), change)
        self._shrink()

    def _change(self, function: _Function, change: float) -> None:
        changed = self._kept.get(function, 0.0) + change
        self._kept[function] = changed
        if abs(changed) < 1e-12 * (1 + self._moved):
            self._let_go([function])

    def _shrink(self) -> None:
        """Lets the smallest coefficients go, a quarter more than must: each time costs bounds."""
        if len(self._kept) > self._most:
            by_size = sorted(self._kept, key=lambda function: abs(self._kept[function]))
            self._let_go(by_size[: len(by_size) - max(1, 3 * self._most // 4)])

    def _let_go(self, functions: list[_Function]) -> None:
        by_level: dict[int, list[float]] = defaultdict(list)
        for function in functions:
            by_level[function[0]].append(self._kept.pop(function))
        for level, gone in by_level.items():
            self._largest[level] += max(map(abs, gone))
            self._length[level] += math.hypot(*gone)

    def count_between(self, low: int, high: int) -> Approximate:
        """How many rows are from position ``low`` to ``high``, both included."""
        low, high = max(low, 0), min(high, (1 << self._levels) - 1)
        if low > high:
            return Approximate(0, Interval(0, 0), Interval(0, 0), 0)
        estimate, error = self._rows * (high - low + 1) / 2**self._levels, self._rounding()
        for level in range(1, self._levels + 1):
            met = {block: _inner(level, block, low, high) for block in _ends(level, low, high)}
            estimate += sum(self._kept.get((level, b), 0.0) * value for b, value in met.items())
            sizes = [abs(value) for value in met.values()]
            length = self._length[level] * math.hypot(*sizes)
            error += min(self._largest[level] * sum(sizes), length)
        return self._answer(estimate, float(error))

    def _answer(self, estimate: float, error: float) -> Approximate:
        """Bounds that are integers, between none and all rows."""
        certain = Interval(
            min(max(0.0, math.ceil(estimate - error)), self._rows),
            max(min(float(self._rows), math.floor(estimate + error)), 0.0),
        )
        return Approximate(certain.nearest(estimate), certain, certain, 0)

    def _rounding(self) -> float:
        return 1e-9 * (1 + self._moved)


def _ends(level: int, low: int, high: int) -> set[int]:
    """The blocks of a level that a range may meet unevenly: those of its ends."""
    return {low >> level, high >> level}


def _inner(level: int, block: int, low: int, high: int) -> float:
    """The sum of a Haar function over a range."""
    start, half = block << level, 1 << (level - 1)
    left = min(high, start + half - 1) - max(low, start) + 1
    right = min(high, start + 2 * half - 1) - max(low, start + half) + 1
    return (max(left, 0) - max(right, 0)) * math.sqrt(0.5**level)

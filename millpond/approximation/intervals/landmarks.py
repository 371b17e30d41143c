"""Landmarks of sorted values: some of them, close to each other near a percentile.

From them, and what is known of dropped rows, bounds of the percentile follow; all values would be
too many to put out with each answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from millpond.approximation.checks import Floats

_GROWTH = 1.2
"""The next landmark is so many times as far from the percentile as the last, at most."""


@lru_cache(maxsize=4096)
def landmark_ranks(count: int, fraction: float) -> tuple[int, ...]:
    """The ranks of the landmarks of so many sorted values, from 1 on.

    >>> landmark_ranks(60, 0.0)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 21, 24, 28, 33, 39, 46, 54, 60)
    """
    middle, step, ranks = math.floor(fraction * (count - 1)) + 1, 0, {1, count}
    while step < count:
        ranks |= {middle - step, middle + 1 + step}
        step = max(step + 1, int(step * _GROWTH))
    return tuple(sorted(rank for rank in ranks if 1 <= rank <= count))


def packed(values: Floats, fraction: float, count: int) -> bytes:
    """Landmarks as bytes: the fraction, how many values there are, and those of the ranks."""
    return np.concatenate([[fraction, count], values]).tobytes()


@dataclass(frozen=True)
class Landmarks:
    """Some of sorted values, with their ranks, and the fraction that is asked for."""

    fraction: float
    count: int
    ranks: tuple[int, ...]
    values: Floats

    @staticmethod
    def of(written: bytes) -> Landmarks:
        """Those that were packed."""
        numbers = np.frombuffer(written, np.float64)
        fraction, count = float(numbers[0]), int(numbers[1])
        return Landmarks(fraction, count, landmark_ranks(count, fraction), numbers[2:])

    @property
    def percentile(self) -> float:
        """The percentile of the values, as the language has it."""
        rank = self.fraction * (self.count - 1)
        share, place = rank - math.floor(rank), self.ranks.index(math.floor(rank) + 1)
        low = float(self.values[place])
        return low if not share else low + (float(self.values[place + 1]) - low) * share

    def at_most(self, rank: int) -> float:
        """The value of a rank, or less; there is none below the first and all beyond the last."""
        return self._value(rank, int(np.searchsorted(self.ranks, rank, "right")) - 1)

    def at_least(self, rank: int) -> float:
        """The value of a rank, or more."""
        return self._value(rank, int(np.searchsorted(self.ranks, rank)))

    def _value(self, rank: int, place: int) -> float:
        if not 1 <= rank <= self.count:
            return -math.inf if rank < 1 else math.inf
        value = float(self.values[place])
        return math.inf if math.isnan(value) else value  # NaN is larger than any number

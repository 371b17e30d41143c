"""How many partners tuples have in a join, or how many copies values have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import require
from millpond.approximation.precision.rates import Numbers


@dataclass(frozen=True)
class Partners:
    """Of the tuples that have any, which part has one partner, which part two, and so on.

    >>> Partners((0.5, 0.5)).mean, Partners((0.5, 0.5)).none_of(0.5)
    (1.5, 0.375)
    """

    parts: tuple[float, ...]

    def __post_init__(self) -> None:
        is_whole = all(part >= 0 for part in self.parts) and abs(sum(self.parts) - 1) < 1e-9
        require(is_whole, f"parts {self.parts}: they have to add up to one")

    @staticmethod
    def of(counts: npt.ArrayLike) -> Partners:
        """The parts of tuples with these numbers of partners; those without any are left out."""
        found = np.bincount(np.asarray(counts, dtype=np.int64))[1:]
        return Partners(tuple((found / found.sum()).tolist()))

    @property
    def mean(self) -> float:
        """How many partners a tuple has that has any."""
        return sum(number * part for number, part in enumerate(self.parts, start=1))

    def none_of(self, missed: Numbers) -> Numbers:
        """The chance that all partners of a tuple are missed, each with this chance."""
        found: Numbers = 0.0
        for part in reversed(self.parts):
            found = (found + part) * missed
        return found


ONE = Partners((1.0,))
"""Each has one, as in sets."""

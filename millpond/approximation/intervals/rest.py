"""What is known of the rows that were dropped: taken before they went, so it holds for certain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from millpond.approximation.checks import Floats, require
from millpond.approximation.intervals.interval import Interval

_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Rest:
    """How many rows were dropped, and bounds of their values; infinite if values were not seen.

    The bounds are either the least and the largest value of the dropped rows themselves, or those
    declared for all rows, drawn or not: in both cases the range of all rows, on which confident
    bounds are built, does not depend on which ones were drawn.

    >>> Rest(2, 3, 5) + Rest(1, 9, 9)
    Rest(rows=3, low=3, high=9)
    """

    rows: int
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        require(self.rows >= 0, f"{self.rows} dropped rows: there cannot be fewer than none")
        require(self.low <= self.high, f"values from {self.low} to {self.high}: that is nothing")

    def __add__(self, other: Rest) -> Rest:
        if not (self.rows and other.rows):
            return self if self.rows else other
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Rest(self.rows + other.rows, low, high)

    @property
    def total(self) -> Interval:
        """Bounds of the sum of what was dropped, which hold for certain."""
        if not self.rows:
            return Interval(0, 0)
        low, high = self.rows * self.low, self.rows * self.high
        return Interval(min(low, _LARGEST), max(high, -_LARGEST))


NOTHING = Rest(0)
"""Nothing was dropped."""


def rest_of(values: Floats) -> Rest:
    """What is to be known of rows with these values when they are dropped.

    >>> rest_of(np.array([3.0, 1.0]))
    Rest(rows=2, low=1.0, high=3.0)
    """
    return Rest(len(values), float(values.min()), float(values.max())) if len(values) else NOTHING

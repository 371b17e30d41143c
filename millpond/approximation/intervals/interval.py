"""Bounds of a number, and what follows for sums, products and comparisons of such numbers.

An end is computed by the same operation of floating point as the number itself; rounding keeps
order, so the ends bound the number as the engine would compute it. Ends that are integers stay
integers, however large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from millpond.approximation.checks import require
from millpond.approximation.intervals.truth import Truth, truth_of


@dataclass(frozen=True)
class Interval:
    """All numbers from ``low`` to ``high``, both included; infinite where there is no bound.

    >>> Interval(1, 2) + Interval(10, 20), Interval(1, 2) - Interval(10, 20)
    (Interval(low=11, high=22), Interval(low=-19, high=-8))
    >>> Interval(1, 2).is_less(Interval(2, 3)), Interval(1, 2).is_less(Interval(5, 5))
    (<Truth.POSSIBLY: 1>, <Truth.CERTAINLY: 2>)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        require(self.low <= self.high, f"an interval from {self.low} to {self.high}: it is empty")
        require(
            self.low != math.inf and self.high != -math.inf, "an interval without any finite number"
        )

    @property
    def width(self) -> float:
        """How far apart the ends are."""
        return self.high - self.low

    @property
    def is_exact(self) -> bool:
        """Whether both ends are one number."""
        return self.low == self.high

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        ends = [_product(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __truediv__(self, other: Interval) -> Interval:
        """The quotients; unbounded where the divisor may be zero."""
        if 0 in other:
            return UNBOUNDED
        ends = [_quotient(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def intersection(self, other: Interval) -> Interval:
        """The numbers in both; they have to have one in common."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def hull(self, other: Interval) -> Interval:
        """The smallest interval around both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def nearest(self, number: float) -> float:
        """The number of the interval that is nearest to one."""
        return min(max(number, self.low), self.high)

    def is_less(self, other: Interval) -> Truth:
        """Whether it is less than the other."""
        return truth_of(self.high < other.low, self.low < other.high)

    def is_at_most(self, other: Interval) -> Truth:
        """Whether it is less than the other or equal to it."""
        return ~other.is_less(self)

    def is_equal(self, other: Interval) -> Truth:
        """Whether both are one number."""
        is_one = self.is_exact and other.is_exact and self.low == other.low
        return truth_of(is_one, self.low <= other.high and other.low <= self.high)


UNBOUNDED = Interval(-math.inf, math.inf)
"""Where nothing is known."""


def point(number: float) -> Interval:
    """The interval of one number."""
    return Interval(number, number)


def _product(a: float, b: float) -> float:
    """A product of ends; a number that may be any, times zero, is zero."""
    return 0 if 0 in (a, b) else a * b


def _quotient(a: float, b: float) -> float:
    """A quotient of ends, where the ends of the divisor are not zero."""
    return 0 if a == 0 or math.isinf(b) else a / b

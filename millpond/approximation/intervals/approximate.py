"""An answer that may be wrong, with bounds: what every approximate number of a query is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millpond.approximation.checks import require
from millpond.approximation.intervals.interval import Interval, point


@dataclass(frozen=True)
class Approximate:
    """An estimate, bounds that hold for certain, and tighter ones that fail with at most ``risk``.

    Of two of them the risks add up: one of both bounds may fail, and that is at most the sum. No
    independence is asked for.

    >>> some = Approximate(5, Interval(0, 9), Interval(4, 6), 0.05)
    >>> some + exactly(10)
    Approximate(estimate=15, certain=Interval(low=10, high=19), confident=Interval(low=14, high=16), risk=0.05)
    """  # noqa: E501

    estimate: float
    certain: Interval
    confident: Interval
    risk: float

    def __post_init__(self) -> None:
        require(self.risk >= 0, "a risk below zero")
        require(
            self.certain.low <= self.confident.low and self.confident.high <= self.certain.high,
            "confident bounds that are wider than the certain ones",
        )
        require(self.estimate in self.confident, "an estimate outside its bounds")

    @property
    def is_exact(self) -> bool:
        """Whether this is the exact answer, for certain."""
        return self.certain.is_exact

    def __add__(self, other: Approximate) -> Approximate:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Approximate) -> Approximate:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Approximate) -> Approximate:
        return self._with(other, lambda a, b: a * b)

    def __truediv__(self, other: Approximate) -> Approximate:
        return self._with(other, lambda a, b: a / b)

    def _with(
        self, other: Approximate, combined: Callable[[Interval, Interval], Interval]
    ) -> Approximate:
        certain = combined(self.certain, other.certain)
        risk = self.risk + other.risk
        confident = combined(self.confident, other.confident) if risk < 1 else certain
        return bounded(_middle(self, other, combined, confident), certain, confident, risk)


def _middle(
    one: Approximate,
    other: Approximate,
    combined: Callable[[Interval, Interval], Interval],
    within: Interval,
) -> float:
    """The estimate that follows from two estimates; within the bounds where there is none."""
    found = combined(point(one.estimate), point(other.estimate))
    return within.nearest(found.low if found.is_exact else 0)


def bounded(estimate: float, certain: Interval, confident: Interval, risk: float) -> Approximate:
    """An answer whose confident bounds are no wider than the certain ones.

    Where the two have no number in common the confident ones have failed; the certain ones stand.
    """
    if confident.high < certain.low or certain.high < confident.low:
        return Approximate(certain.nearest(estimate), certain, certain, 0)
    both = certain.intersection(confident)
    return Approximate(both.nearest(estimate), certain, both, 0 if both == certain else risk)


def exactly(number: float) -> Approximate:
    """An answer without any error."""
    return Approximate(number, point(number), point(number), 0)

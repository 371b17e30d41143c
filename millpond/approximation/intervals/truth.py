"""Three-valued answers to comparisons of numbers that are only known within bounds."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Truth(Enum):
    """Whether something holds for all, for some, or for none of the values within the bounds.

    >>> Truth.CERTAINLY & Truth.POSSIBLY, Truth.CERTAINLY | Truth.POSSIBLY, ~Truth.NOT
    (<Truth.POSSIBLY: 1>, <Truth.CERTAINLY: 2>, <Truth.CERTAINLY: 2>)
    """

    NOT = 0
    POSSIBLY = 1
    CERTAINLY = 2

    def __and__(self, other: Truth) -> Truth:
        return Truth(min(self.value, other.value))

    def __or__(self, other: Truth) -> Truth:
        return Truth(max(self.value, other.value))

    def __invert__(self) -> Truth:
        return Truth(2 - self.value)


def truth_of(holds_for_all: bool, holds_for_some: bool) -> Truth:
    """The truth of what holds for all values, or for some, or for none."""
    if holds_for_all:
        return Truth.CERTAINLY
    return Truth.POSSIBLY if holds_for_some else Truth.NOT


def rows_that_pass(truths: Iterable[Truth]) -> tuple[int, int]:
    """The fewest and the most rows that pass a filter with these answers.

    >>> rows_that_pass([Truth.CERTAINLY, Truth.POSSIBLY, Truth.NOT])
    (1, 2)
    """
    found = list(truths)
    certainly = found.count(Truth.CERTAINLY)
    return certainly, certainly + found.count(Truth.POSSIBLY)

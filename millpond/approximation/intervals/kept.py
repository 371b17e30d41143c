"""The sums of what a drop point keeps from which answers are made, and what answers consist of.

Each has one entry for each group; docs/precision.md ("Rows of several rates") has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millpond.approximation.checks import Floats

EPSILON = float(np.finfo(np.float64).eps)
CUT = 2.0**-95
"""Sums of doubles leave out less than this of each value (``millpond/kernels/exact_sum.py``)."""


@dataclass(frozen=True)
class Counts:
    """What was counted: rows that could have been dropped have a weight of more than 1."""

    dropped: Floats
    hits: Floats
    """Kept rows that pass the filter."""
    drawn_hits: Floats
    """Those of them that could have been dropped."""
    drawn: Floats
    """Kept rows that could have been dropped, hits or not; then Σ w and Σ w (w - 1) of them."""
    weights: Floats
    spreads: Floats
    hit_weights: Floats
    hit_spreads: Floats
    least_weight: Floats
    most_weight: Floats

    @property
    def population(self) -> Floats:
        """How many rows could have been dropped, or were."""
        return self.drawn + self.dropped


@dataclass(frozen=True)
class Sums(Counts):
    """What was added up of the values of hits: all, their sizes, those that could not have been
    dropped; then Σ w x, Σ w (w - 1) x and Σ w (w - 1) x² of the others; and the least and largest
    values of rows that could have been dropped, or were, and of all rows."""

    total: Floats
    sizes: Floats
    """Σ |x|: by that much rounding may add up, also where values cancel."""
    certain_total: Floats
    values: Floats
    first: Floats
    second: Floats
    low: Floats
    high: Floats
    least: Floats
    most: Floats


@dataclass(frozen=True)
class Squares(Sums):
    """What was added up of the squares of values of hits: of all, and of those that could not have
    been dropped; then Σ w x² of the others."""

    squares: Floats
    certain_squares: Floats
    weighted_squares: Floats


@dataclass(frozen=True)
class Different:
    """How many different values hits have: those of all, and of such as could not have been
    dropped. All rows of a value were kept, or none."""

    dropped: Floats
    seen: Floats
    sure: Floats
    least_weight: Floats
    most_weight: Floats


@dataclass(frozen=True)
class Answers:
    """Estimates and bounds, one for each group."""

    estimate: Floats
    low: Floats
    high: Floats
    certain_low: Floats
    certain_high: Floats

    def side(self, name: str) -> Floats:
        """One of its columns."""
        column: Floats = getattr(self, name)
        return column


def room_of(of: Sums, sizes: Floats, hits: Floats, others: Floats) -> Floats:
    """What rounding can do to so many hits of these sizes and so many other rows."""
    size = np.maximum(np.abs(of.low), np.abs(of.high))
    return 64 * EPSILON * (sizes + others * size) + CUT * (hits + others)


def within(
    estimate: Floats, low: Floats, high: Floats, certain_low: Floats, certain_high: Floats
) -> Answers:
    """Confident bounds are inside the certain ones, and the estimate is inside both.

    Where nothing is known that is a number, bounds are infinite.
    """
    certain_low = np.where(np.isnan(certain_low), -np.inf, certain_low)
    certain_high = np.where(np.isnan(certain_high), np.inf, certain_high)
    low = np.fmax(low, certain_low)
    high = np.fmin(high, certain_high)
    return Answers(np.clip(estimate, low, high), low, high, certain_low, certain_high)

"""Answers from the sums of what a drop point keeps, one for each group: estimates and bounds.

The sums are those of docs/precision.md ("Rows of several rates"); a group has at least one dropped
row. What is asked for is one column: the estimate, or an end of the certain or confident bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache

import numpy as np

from millpond.approximation.checks import Floats
from millpond.approximation.intervals.counts import count_of_distinct, count_of_hits
from millpond.approximation.intervals.weighted import Weighted, mean_bounds_of

_EPSILON = float(np.finfo(np.float64).eps)
_CUT = 2.0**-95
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


def answers_of(kind: str, columns: Sequence[Floats], risk: float) -> Answers:
    """The answers of a kind: count, distinct, sum, avg, sum_of_hits or avg_of_hits."""
    with np.errstate(all="ignore"):
        if kind == "distinct":
            return _distinct(Different(*columns), risk)
        if kind == "count":
            return _count(Counts(*columns), risk)
        return _KINDS[kind](Sums(*columns), risk)


def _count(of: Counts, risk: float) -> Answers:
    """The number of hits: by the hypergeometric distribution where there is one rate."""
    known = of.hits - of.drawn_hits
    bounds = _count_at_several_rates(of, risk)
    is_even = (of.least_weight == of.most_weight) & (of.dropped > 0)
    for place in np.flatnonzero(is_even).tolist():
        counted = (int(each[place]) for each in (of.drawn_hits, of.drawn, of.dropped))
        bounds[:, place] = _hypergeometric(*counted, risk)
    low, high = known + np.floor(bounds[0]), known + np.ceil(bounds[1])
    share = np.where(of.weights > 0, of.hit_weights / of.weights, 0.5)
    estimate = np.rint(known + of.population * share)
    return _within(estimate, low, high, of.hits, of.hits + of.dropped)


@lru_cache(maxsize=4096)
def _hypergeometric(hits: int, drawn: int, dropped: int, risk: float) -> tuple[float, float]:
    found = count_of_hits(hits, drawn, dropped, risk).confident
    return found.low, found.high


def _distinct(of: Different, risk: float) -> Answers:
    """Those that could not have been dropped, and others by how many of them were kept."""
    bounds = np.empty((3, len(of.seen)))
    drawn = of.seen - of.sure
    rates = 1 / np.maximum(of.most_weight, 1), 1 / np.maximum(of.least_weight, 1)
    for place, rows in enumerate(of.dropped.tolist()):
        least, most = (float(each[place]) for each in rates)
        bounds[:, place] = _binomial(int(drawn[place]), least, most, int(rows), risk)
    estimate, low, high = of.sure + bounds
    return _within(np.rint(estimate), low, high, of.seen, of.seen + of.dropped)


@lru_cache(maxsize=4096)
def _binomial(
    keys: int, least: float, most: float, dropped: int, risk: float
) -> tuple[float, float, float]:
    found = count_of_distinct(keys, least, dropped, risk, most)
    return found.estimate, found.confident.low, found.confident.high


def _count_at_several_rates(of: Counts, risk: float) -> Floats:
    none, one = np.zeros(len(of.hits)), np.ones(len(of.hits))
    hits = Weighted(
        of.weights,
        of.hit_weights,
        of.spreads,
        of.hit_spreads,
        of.hit_spreads,
        of.most_weight,
        none,
        one,
    )
    return np.stack(mean_bounds_of(hits, risk)) * of.population


def _sum(of: Sums, risk: float) -> Answers:
    return _total(of, of.low, of.high, of.dropped * of.low, of.dropped * of.high, risk)


def _sum_of_hits(of: Sums, risk: float) -> Answers:
    """Rows that are no hits count as zeros."""
    low, high = np.minimum(of.low, 0.0), np.maximum(of.high, 0.0)
    return _total(of, low, high, of.dropped * low, of.dropped * high, risk)


def _total(
    of: Sums, low: Floats, high: Floats, least: Floats, most: Floats, risk: float
) -> Answers:
    sampled = Weighted(
        of.weights, of.values, of.spreads, of.first, of.second, of.most_weight, low, high
    )
    bounds = mean_bounds_of(sampled, risk)
    middle = np.where(of.weights > 0, of.values / of.weights, (low + high) / 2)
    room = _room(of, of.sizes, of.hits, of.population)
    return _within(
        of.certain_total + of.population * middle,
        of.certain_total + of.population * bounds[0] - room,
        of.certain_total + of.population * bounds[1] + room,
        of.total + least - room,
        of.total + most + room,
    )


def _avg(of: Sums, risk: float) -> Answers:
    rows = of.hits + of.dropped
    return Answers(*(each / rows for each in astuple(_sum(of, risk))))


def _avg_of_hits(of: Sums, risk: float) -> Answers:
    """The mean of hits, of which it is not known how many were dropped: none or all of them."""
    hits = Weighted(
        of.hits - of.drawn_hits + of.hit_weights,
        of.certain_total + of.values,
        of.hit_spreads,
        of.first,
        of.second,
        of.most_weight,
        of.least,
        of.most,
    )
    low, high = mean_bounds_of(hits, risk)
    hit = np.maximum(of.hits, 1)
    one = np.ones(len(hit))
    room = _room(of, of.sizes / hit, one, one)
    seen, rows = of.total / of.hits, of.hits + of.dropped
    ends = [(of.total + of.dropped * end) / rows for end in (of.low, of.high)]
    certain_low = np.where(of.hits > 0, np.minimum(seen, ends[0]), of.low) - room
    certain_high = np.where(of.hits > 0, np.maximum(seen, ends[1]), of.high) + room
    estimate = hits.values / hits.weights
    return _within(estimate, low - room, high + room, certain_low, certain_high)


def _room(of: Sums, sizes: Floats, hits: Floats, others: Floats) -> Floats:
    """What rounding can do to so many hits of these sizes and so many other rows."""
    size = np.maximum(np.abs(of.low), np.abs(of.high))
    return 64 * _EPSILON * (sizes + others * size) + _CUT * (hits + others)


def _within(
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


_KINDS: dict[str, Callable[[Sums, float], Answers]] = {
    "sum": _sum,
    "avg": _avg,
    "sum_of_hits": _sum_of_hits,
    "avg_of_hits": _avg_of_hits,
}

COLUMNS = {kind: len(fields(Sums)) for kind in _KINDS} | {
    "count": len(fields(Counts)),
    "distinct": len(fields(Different)),
}
"""How many sums each kind of answer is made of."""

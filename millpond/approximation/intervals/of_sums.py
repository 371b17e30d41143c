"""Answers from the sums of what a drop point keeps, one for each group: estimates and bounds.

The sums are those of docs/precision.md ("Rows of several rates"); a group has at least one dropped
row. What is asked for is one column: the estimate, or an end of the certain or confident bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from functools import lru_cache
from typing import Any

import numpy as np

from millpond.approximation.checks import Floats
from millpond.approximation.intervals.counts import count_of_distinct, count_of_hits
from millpond.approximation.intervals.cut import CUT, of_cut, without_cut
from millpond.approximation.intervals.kept import (
    Answers,
    Counts,
    Different,
    Squares,
    Sums,
    room_of,
    within,
)
from millpond.approximation.intervals.kept_percentiles import Ordered, percentile_of_kept
from millpond.approximation.intervals.variances import stddev, variance
from millpond.approximation.intervals.weighted import Weighted, mean_bounds_of


def answers_of(kind: str, columns: Sequence[Any], risk: float) -> Answers:
    """The answers of a kind: count, distinct; sum, avg, variance, stddev, percentile, or one of
    these ``_of_hits``; each over a window that may be shortened too. A column is of doubles, or of
    landmarks."""
    with np.errstate(all="ignore"):
        if kind.startswith(CUT):
            kind = kind.removeprefix(CUT)
            found = answers_of(kind, without_cut(kind, columns), risk)
            return of_cut(kind, columns, found)
        if kind in _PERCENTILES:
            return percentile_of_kept(Ordered(*columns), risk, kind.endswith(_OF_HITS))
        if kind == "distinct":
            return _distinct(Different(*columns), risk)
        if kind == "count":
            return _count(Counts(*columns), risk)
        if kind in _DEVIATIONS:
            of, is_filtered = Squares(*columns), kind.endswith(_OF_HITS)
            return _DEVIATIONS[kind](of, risk, is_filtered)
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
    return within(estimate, low, high, of.hits, of.hits + of.dropped)


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
    return within(np.rint(estimate), low, high, of.seen, of.seen + of.dropped)


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
    room = room_of(of, of.sizes, of.hits, of.population)
    return within(
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
    room = room_of(of, of.sizes / hit, one, one)
    seen, rows = of.total / of.hits, of.hits + of.dropped
    ends = [(of.total + of.dropped * end) / rows for end in (of.low, of.high)]
    certain_low = np.where(of.hits > 0, np.minimum(seen, ends[0]), of.low) - room
    certain_high = np.where(of.hits > 0, np.maximum(seen, ends[1]), of.high) + room
    estimate = hits.values / hits.weights
    return within(estimate, low - room, high + room, certain_low, certain_high)


_KINDS: dict[str, Callable[[Sums, float], Answers]] = {
    "sum": _sum,
    "avg": _avg,
    "sum_of_hits": _sum_of_hits,
    "avg_of_hits": _avg_of_hits,
}
_OF_HITS = "_of_hits"
_DEVIATIONS = {
    f"{name}{ending}": function
    for name, function in (("variance", variance), ("stddev", stddev))
    for ending in ("", _OF_HITS)
}

_PERCENTILES = ("percentile", f"percentile{_OF_HITS}")

_USUAL = {kind: len(fields(Sums)) for kind in _KINDS} | {
    **{kind: len(fields(Ordered)) for kind in _PERCENTILES},
    **{kind: len(fields(Squares)) for kind in _DEVIATIONS},
    "count": len(fields(Counts)),
    "distinct": len(fields(Different)),
}
COLUMNS = _USUAL | {f"{CUT}{kind}": sums + 1 for kind, sums in _USUAL.items()}
"""How many sums each kind of answer is made of."""

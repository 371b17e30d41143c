"""Variances and standard deviations from sums over kept rows, with bounds.

The mean of the squares of how far values are from their mean is bounded as any mean is, for each
mean that is not left out. docs/precision.md ("Variances") has the derivation.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

import numpy as np

from millpond.approximation.checks import Floats
from millpond.approximation.intervals.kept import (
    CUT,
    EPSILON,
    Answers,
    Squares,
    room_of,
    within,
)
from millpond.approximation.intervals.weighted import Weighted, mean_bounds_of


class _Pair(NamedTuple):
    low: Floats
    high: Floats


def variance(of: Squares, risk: float, is_filtered: bool) -> Answers:
    """The sample variance of hits; NULL where there cannot be two of them."""
    rows = _rows(of, is_filtered)
    certain = _certain(of, is_filtered)
    confident = _confident(_Moments.of(of), of, risk)
    found = within(
        _estimate(of, is_filtered),
        np.maximum(confident.low * _of_sample(rows.high), 0.0),
        confident.high * _of_sample(np.maximum(rows.low, 2.0)),
        *certain,
    )
    return Answers(*(np.where(rows.high < 2, np.nan, each) for each in astuple(found)))


def stddev(of: Squares, risk: float, is_filtered: bool) -> Answers:
    """The root of the sample variance."""
    return Answers(*map(np.sqrt, astuple(variance(of, risk, is_filtered))))


def _rows(of: Squares, is_filtered: bool) -> _Pair:
    """How many hits there are at least and at most: behind a filter none or all were dropped."""
    most = of.hits + of.dropped
    return _Pair(of.hits if is_filtered else most, most)


def _of_sample(rows: Floats) -> Floats:
    """By how much the variance of a sample of so many is more than the mean of squares."""
    return rows / (rows - 1)


@dataclass(frozen=True)
class _Moments:
    """Weighed means over kept hits: of values and squares, each row by w and then by w (w - 1)."""

    weights: Floats
    mean: Floats
    variance: Floats
    spreads: Floats
    spread_mean: Floats
    spread_variance: Floats
    lost: Floats
    """By so much rounding may have changed a variance."""

    @staticmethod
    def of(of: Squares) -> _Moments:
        """Those of the sums."""
        weights = of.hits - of.drawn_hits + of.hit_weights
        mean = (of.certain_total + of.values) / weights
        square = (of.certain_squares + of.weighted_squares) / weights
        is_drawn = of.hit_spreads > 0
        spread_mean = np.where(is_drawn, of.first / of.hit_spreads, mean)
        spread_square = np.where(is_drawn, of.second / of.hit_spreads, mean**2)
        size = np.maximum(np.abs(of.least), np.abs(of.most))
        rows = np.where(is_drawn, of.hits / of.hit_spreads, 0.0)
        return _Moments(
            weights,
            mean,
            square - mean**2,
            of.hit_spreads,
            spread_mean,
            spread_square - spread_mean**2,
            64 * EPSILON * size**2 + 4 * CUT * (1 + rows),
        )


def _estimate(of: Squares, is_filtered: bool) -> Floats:
    """What the weighed rows have, if there are two."""
    moments = _Moments.of(of)
    rows = np.maximum(moments.weights, 2.0) if is_filtered else of.hits + of.dropped
    found = np.maximum(moments.variance, 0.0) * _of_sample(rows)
    return np.where(of.hits > 1, found, np.nan)


def _confident(moments: _Moments, of: Squares, risk: float) -> _Pair:
    """Bounds of the mean of squares of how far hits are from their mean; they fail with the risk,
    half of which is that the mean is not where it is taken to be."""
    mean = _mean(moments, of, risk / 2)
    span = np.maximum(of.most - mean.low, mean.high - of.least) ** 2  # no square is more
    near, far = _away(mean, moments.spread_mean)
    first = _Pair(
        np.maximum(moments.spread_variance + near - moments.lost, 0.0),
        np.clip(moments.spread_variance + far + moments.lost, 0.0, span),
    )
    at_least = Weighted(
        moments.weights,
        moments.weights * np.maximum(moments.variance - moments.lost, 0.0),
        moments.spreads,
        moments.spreads * np.minimum(first.low, first.high),
        moments.spreads * first.high * span,
        of.most_weight,
        np.zeros(len(span)),
        span,
    )
    most = moments.variance + _away(mean, moments.mean).high + moments.lost
    at_most = replace(at_least, values=moments.weights * np.clip(most, 0.0, span))
    low, high = mean_bounds_of(at_least, risk / 2)[0], mean_bounds_of(at_most, risk / 2)[1]
    return _Pair(low - moments.lost, high + moments.lost)


def _mean(moments: _Moments, of: Squares, risk: float) -> _Pair:
    """Bounds of the mean of hits."""
    sampled = Weighted(
        moments.weights,
        moments.weights * moments.mean,
        of.hit_spreads,
        of.first,
        of.second,
        of.most_weight,
        of.least,
        of.most,
    )
    low, high = mean_bounds_of(sampled, risk)
    one = np.ones(len(low))
    room = room_of(of, of.sizes / np.maximum(of.hits, 1), one, one)
    return _Pair(low - room, high + room)


def _away(mean: _Pair, number: Floats) -> _Pair:
    """The least and the largest square of how far a mean may be from a number."""
    below, above = mean.low - number, mean.high - number
    nearest = np.maximum(np.maximum(below, -above), 0.0)
    return _Pair(nearest**2, np.maximum(below**2, above**2))


def _certain(of: Squares, is_filtered: bool) -> _Pair:
    """What the sample variance is at least and at most, whatever the dropped rows are."""
    rows = _rows(of, is_filtered)
    hits = np.maximum(of.hits, 1)
    mean = of.total / hits
    squares = np.maximum(of.squares - of.hits * mean**2, 0.0)
    away = _away(_Pair(of.low, of.high), mean)
    apart = of.hits * of.dropped / np.maximum(rows.high, 1)
    nearest = np.where(of.hits > 0, apart * away.low, 0.0)
    low = squares if is_filtered else squares + nearest
    farthest = np.where(of.hits > 0, of.dropped * away.high, np.inf)
    with_all = (squares + farthest) / (rows.high - 1)
    seen = np.where(of.hits > 1, squares / (of.hits - 1), np.inf)
    by_kept = np.maximum(seen, with_all) if is_filtered else with_all
    by_range = (of.most - of.least) ** 2 / 4 * _of_sample(np.maximum(rows.low, 2.0))
    size = np.maximum(np.abs(of.least), np.abs(of.most))
    room = 64 * EPSILON * size**2 * _of_sample(np.maximum(of.hits, 2.0)) + 8 * CUT
    high = np.minimum(by_kept, by_range) + room
    return _Pair(np.fmax(low / (rows.high - 1) - room, 0.0), high)

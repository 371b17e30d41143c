"""Sums and means of all rows, from a sample and what is known of the rest."""

import math

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats, check_risk, finite, require
from millpond.approximation.intervals.approximate import Approximate, bounded, exactly
from millpond.approximation.intervals.betting import mean_bounds
from millpond.approximation.intervals.counts import count_of_hits
from millpond.approximation.intervals.interval import UNBOUNDED, Interval
from millpond.approximation.intervals.rest import Rest

_EPSILON = float(np.finfo(np.float64).eps)

Bools = npt.NDArray[np.bool_]

BEYOND = 2.0**106
"""Values of this size count as infinite in the language's sums."""


def total(drawn: Floats, rest: Rest, risk: float) -> Approximate:
    """The sum of all rows: those drawn, **in the order of their draws**, and the rest.

    >>> total(np.array([3.0, 1.0, 2.0]), Rest(2, 1, 3), 0.05).certain
    Interval(low=8.0, high=12.0)
    """
    check_risk(risk)
    values = _summable(drawn)
    return _total(values, rest, _range(values, rest), risk)


def total_of_hits(drawn: Floats, is_hit: Bools, rest: Rest, risk: float) -> Approximate:
    """The sum of the rows that pass a filter or are in a group; ``rest`` is that of all rows.

    >>> total_of_hits(np.array([3.0, 9.0]), np.array([True, False]), Rest(2, 1, 8), 0.05).certain
    Interval(low=3.0, high=19.0)
    """
    check_risk(risk)
    values = _summable(drawn)
    around = _with_zero(_range(values, rest))
    others = Rest(rest.rows, min(rest.low, 0), max(rest.high, 0))
    return _total(np.where(is_hit, values, 0.0), others, around, risk)


def mean(drawn: Floats, rest: Rest, risk: float) -> Approximate:
    """The mean of all rows: those drawn, in the order of their draws, and the rest.

    >>> mean(np.array([3.0, 1.0]), Rest(2, 1, 3), 0.05).certain
    Interval(low=1.5, high=2.5)
    """
    require(len(drawn) + rest.rows > 0, "the mean of no rows")
    return total(drawn, rest, risk) / exactly(len(drawn) + rest.rows)


def mean_of_hits(drawn: Floats, is_hit: Bools, rest: Rest, risk: float) -> Approximate:
    """The mean of the rows that pass a filter, where it is not known how many do.

    It is the middle of the range, plus the sum of how far hits are off it over their number; each
    of the two may fail with half the risk. ``rest`` is that of all rows. Where the number of hits
    is known, counted before dropping, `mean` of the hits alone is tighter.
    """
    check_risk(risk)
    values, hits = _summable(drawn), np.asarray(is_hit, dtype=bool)
    require(bool(hits.any()), "the mean of hits, of which none was drawn: it has no bounds")
    certain, known = _certain_mean(values[hits], rest), math.fsum(values[hits]) / int(hits.sum())
    around = _range(values, rest)
    if not math.isfinite(around.width):
        return Approximate(certain.nearest(known), certain, certain, 0)
    middle = around.low + around.width / 2
    others = Rest(rest.rows, rest.low - middle, rest.high - middle)
    offsets = total_of_hits(values - middle, hits, others, risk / 2)
    count = count_of_hits(int(hits.sum()), len(values), rest.rows, risk / 2)
    confident = (exactly(middle) + offsets / count).confident
    room = 4 * _EPSILON * max(abs(around.low), abs(around.high))
    return bounded(known, certain, confident + Interval(-room, room), risk)


def _total(values: Floats, rest: Rest, around: Interval, risk: float) -> Approximate:
    """The sum of all rows, whose values are in a range."""
    known = math.fsum(values)
    if not rest.rows:
        return exactly(known)
    room = _rounding(values, rest)
    certain = Interval(known, known) + rest.total + Interval(-room, room)
    if not len(values):
        return Approximate(certain.nearest(0), certain, certain, 0)
    estimate = known / len(values) * (len(values) + rest.rows)
    return bounded(estimate, certain, _confident(values, rest.rows, around, risk), risk)


def _confident(values: Floats, dropped: int, around: Interval, risk: float) -> Interval:
    """The bounds by betting; none if the range is infinite."""
    population = len(values) + dropped
    if not math.isfinite(around.width):
        return UNBOUNDED
    low = high = 0.0
    if not around.is_exact:
        scaled = np.clip((values - around.low) / around.width, 0, 1)
        low, high = map(float, mean_bounds(scaled, population, risk))
    room = population * 64 * _EPSILON * max(abs(around.low), abs(around.high))
    ends = [population * (around.low + around.width * end) for end in (low, high)]
    return Interval(ends[0] - room, ends[1] + room)


def _certain_mean(hits: Floats, rest: Rest) -> Interval:
    """The mean of hits if none of the rest is one, or all are, at one end of their values."""
    known, room = math.fsum(hits), _rounding(hits, rest)
    now = Interval(known, known) + Interval(-room, room)
    everything, count, most = now + rest.total, len(hits), len(hits) + rest.rows
    return (now / Interval(count, count)).hull(everything / Interval(most, most))


def _rounding(values: Floats, rest: Rest) -> float:
    """What rounding can do to a sum; nothing if all that is added are integers and not too large.

    An infinite end stays infinite without it.
    """
    ends = [end for end in (rest.low, rest.high) if math.isfinite(end)] if rest.rows else []
    size = math.fsum(np.abs(values)) + rest.rows * max(map(abs, ends), default=0)
    is_whole = bool((values == np.floor(values)).all()) and all(end == int(end) for end in ends)
    return 0.0 if is_whole and size < 2**53 else 4 * _EPSILON * size


def _summable(drawn: Floats) -> Floats:
    values = finite(drawn)
    require(
        bool((np.abs(values) < BEYOND).all()),
        "a value of 2^106 or more, which counts as infinite: leave such rows out, count them apart",
    )
    return values


def _range(values: Floats, rest: Rest) -> Interval:
    """The range of all rows, the same whichever were drawn."""
    if not len(values):
        return Interval(rest.low, rest.high)
    seen = Interval(float(values.min()), float(values.max()))
    return seen.hull(Interval(rest.low, rest.high)) if rest.rows else seen


def _with_zero(around: Interval) -> Interval:
    return around.hull(Interval(0, 0))

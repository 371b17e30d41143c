"""Percentiles of all rows from the order statistics of a sample: no assumption about the values."""

import math

import numpy as np

from millpond.approximation.checks import Floats, check_risk, finite, require
from millpond.approximation.intervals.approximate import Approximate, bounded, exactly
from millpond.approximation.intervals.counts import first_that_holds, is_rare
from millpond.approximation.intervals.interval import Interval
from millpond.approximation.intervals.rest import Rest
from millpond.approximation.intervals.tails import (
    hypergeometric_at_least,
    hypergeometric_at_most,
)


def percentile(drawn: Floats, fraction: float, rest: Rest, risk: float) -> Approximate:
    """The percentile of all rows, interpolated between closest ranks as the language has it.

    >>> percentile(np.arange(100.0), 0.5, Rest(900, 0, 99), 0.05).confident
    Interval(low=40.0, high=59.0)
    """
    check_risk(risk)
    require(0 <= fraction <= 1, f"a percentile at {fraction}: it has to be from 0 to 1")
    values = np.sort(finite(drawn))
    population = len(values) + rest.rows
    require(population > 0, "a percentile of no rows")
    rank = fraction * (population - 1)
    low, high = math.floor(rank) + 1, math.ceil(rank) + 1
    if not rest.rows:
        return exactly(_between(values, fraction))
    certain = Interval(_lowest(values, low, rest), _highest(values, high, rest))
    if not len(values):
        return Approximate(certain.nearest(0), certain, certain, 0)
    confident = Interval(
        _from_below(values, low, population, risk / 2),
        _from_above(values, high, population, risk / 2),
    )
    return bounded(_between(values, fraction), certain, confident, risk)


def _between(values: Floats, fraction: float) -> float:
    """The percentile of sorted values."""
    rank = fraction * (len(values) - 1)
    low, high = float(values[math.floor(rank)]), float(values[math.ceil(rank)])
    return low if low == high else low + (high - low) * (rank - math.floor(rank))


def _lowest(values: Floats, rank: int, rest: Rest) -> float:
    """The least that the value of a rank, counted from one, can be: the rest is all low."""
    below = int(np.searchsorted(values, rest.low))
    if rank <= below:
        return float(values[rank - 1])
    return rest.low if rank <= below + rest.rows else float(values[rank - rest.rows - 1])


def _highest(values: Floats, rank: int, rest: Rest) -> float:
    """The most that the value of a rank can be: the rest is all high."""
    population = len(values) + rest.rows
    return -_lowest(-values[::-1], population + 1 - rank, Rest(rest.rows, -rest.high, -rest.low))


def _from_below(values: Floats, rank: int, population: int, risk: float) -> float:
    """The largest drawn value that the value of a rank is seldom below.

    The j-th smallest of those drawn is more than it only if fewer than j were drawn of the
    ``rank`` smallest.
    """

    def is_too_high(place: int) -> bool:
        return not is_rare(hypergeometric_at_most(place - 1, population, rank, len(values)), risk)

    place = first_that_holds(1, len(values) + 1, is_too_high) - 1
    return float(values[place - 1]) if place else -math.inf


def _from_above(values: Floats, rank: int, population: int, risk: float) -> float:
    """The smallest drawn value that the value of a rank is seldom above."""

    def is_high_enough(place: int) -> bool:
        tail = hypergeometric_at_least(place, population, rank - 1, len(values))
        return is_rare(tail, risk)

    place = first_that_holds(1, len(values) + 1, is_high_enough)
    return float(values[place - 1]) if place <= len(values) else math.inf

"""How many rows pass a filter or are in a group, and how many distinct keys there are.

The bounds invert a test (Clopper and Pearson 1934; for finite populations Wright 1991): a number
is left out only if what was seen, or anything further out, has at most half the risk under it.
"""

import math
from collections.abc import Callable
from statistics import NormalDist

from millpond.approximation.checks import check_risk, require
from millpond.approximation.intervals.approximate import Approximate, bounded, exactly
from millpond.approximation.intervals.interval import Interval
from millpond.approximation.intervals.tails import (
    binomial_at_least,
    binomial_at_most,
    hypergeometric_at_least,
    hypergeometric_at_most,
)

ROUNDING = 1e-9
"""Tails are taken to be larger by this part: more than their rounding can be."""


def count_of_hits(hits: int, drawn: int, dropped: int, risk: float) -> Approximate:
    """How many of all rows pass a filter, if so many of those drawn do.

    >>> count_of_hits(3, 10, 90, 0.05).confident
    Interval(low=8, high=63)
    """
    check_risk(risk)
    require(0 <= hits <= drawn, f"{hits} hits among {drawn} rows")
    require(dropped >= 0, f"{dropped} dropped rows: there cannot be fewer than none")
    if not dropped:
        return exactly(hits)
    population, half = drawn + dropped, risk / 2
    certain = Interval(hits, hits + dropped)
    if not drawn:
        return Approximate(0, certain, certain, 0)

    def is_too_many(marked: int) -> bool:
        return is_rare(hypergeometric_at_most(hits, population, marked, drawn), half)

    def is_too_few(marked: int) -> bool:
        return is_rare(hypergeometric_at_least(hits, population, marked, drawn), half)

    estimate = min(max(round(hits / drawn * population), hits), hits + dropped)
    away, step = _usual_width(hits, drawn, dropped, half)
    low = first_that_holds(
        *_around(hits, estimate, lambda marked: not is_too_few(marked), estimate - away, step)
    )
    first, last = estimate + 1, hits + dropped + 1
    high = first_that_holds(*_around(first, last, is_too_many, estimate + away, step)) - 1
    return bounded(hits / drawn * population, certain, Interval(low, high), risk)


def _usual_width(hits: int, drawn: int, dropped: int, risk: float) -> tuple[int, int]:
    """How far bounds are away by the normal approximation, and by how much that may be wrong: from
    there the search for them begins."""
    share, population = hits / drawn, drawn + dropped
    spread = math.sqrt(share * (1 - share) / drawn * dropped * population)
    away = int(NormalDist().inv_cdf(1 - risk) * spread)
    return away, max(1, away // 16)


def most_missing(drawn: int, dropped: int, risk: float) -> Approximate:
    """How many rows a group can have had of which no row was drawn.

    >>> most_missing(10, 90, 0.05).confident.high
    24
    """
    check_risk(risk)
    require(drawn >= 0 and dropped >= 0, "fewer rows than none")
    population, certain = drawn + dropped, Interval(0, dropped)

    def is_too_many(marked: int) -> bool:
        return is_rare(hypergeometric_at_most(0, population, marked, drawn), risk)

    most = first_that_holds(0, dropped + 1, is_too_many) - 1 if drawn and dropped else dropped
    return bounded(0, certain, Interval(0, most), risk)


def count_of_distinct(
    keys: int, rate: float, dropped_rows: int, risk: float, most_rate: float | None = None
) -> Approximate:
    """How many keys there are, if each is kept at this rate and so many were; or at some rate from
    this one up to the ``most_rate``.

    Rows are dropped by a hash of their key (universe sampling): all rows of a key, or none.

    >>> count_of_distinct(10, 0.1, 10_000, 0.05).confident
    Interval(low=51, high=179)
    >>> count_of_distinct(10, 0.1, 10_000, 0.05, most_rate=0.2).confident
    Interval(low=27, high=179)
    """
    check_risk(risk)
    most = rate if most_rate is None else most_rate
    require(keys >= 0 and dropped_rows >= 0, "fewer keys or rows than none")
    require(0 < rate <= most <= 1, f"a rate of {rate}: it has to be more than 0 and at most 1")
    certain, half = Interval(keys, keys + dropped_rows), risk / 2
    if rate == 1 or not dropped_rows:
        return bounded(keys, certain, Interval(keys, keys + dropped_rows), 0)
    ends = (min(max(round(keys / each), keys), keys + dropped_rows) for each in (most, rate))
    least_estimate, most_estimate = ends

    def is_too_many(there: int) -> bool:
        return is_rare(binomial_at_most(keys, there, rate), half)

    def is_too_few(there: int) -> bool:
        return is_rare(binomial_at_least(keys, there, most), half)

    low = first_that_holds(keys, least_estimate, lambda there: not is_too_few(there))
    high = first_that_holds(most_estimate + 1, keys + dropped_rows + 1, is_too_many) - 1
    estimate = (keys / rate + keys / most) / 2
    return bounded(estimate, certain, Interval(low, high), risk)


def is_rare(tail: float, risk: float) -> bool:
    """Whether a tail is at most the risk, whatever rounding has done to it."""
    return tail * (1 + ROUNDING) <= risk


def _around(
    low: int, high: int, holds: Callable[[int], bool], near: int, step: int
) -> tuple[int, int, Callable[[int], bool]]:
    """A shorter range with the first number for which something holds, looked for from ``near``.

    >>> _around(0, 1000, lambda number: number >= 507, near=500, step=5)[:2]
    (506, 510)
    """
    if not low < near < high:
        return low, high, holds
    if holds(near):
        high = near
        while (below := near - step) > low and holds(below):
            high, step = below, 2 * step
        return (low if below <= low else below + 1), high, holds
    low = near + 1
    while (above := near + step) < high and not holds(above):
        low, step = above + 1, 2 * step
    return low, min(high, above), holds


def first_that_holds(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number from ``low`` on for which something holds, or ``high``; it goes on holding.

    >>> first_that_holds(0, 100, lambda number: number >= 7)
    7
    """
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low

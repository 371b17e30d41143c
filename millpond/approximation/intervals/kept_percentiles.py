"""Percentiles from landmarks of what was kept: bounds by how many of the smallest rows were kept.

docs/precision.md ("Percentiles of what is kept") has the derivation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from millpond.approximation.checks import Floats
from millpond.approximation.intervals.counts import first_that_holds, is_rare
from millpond.approximation.intervals.kept import EPSILON, Answers, Counts, within
from millpond.approximation.intervals.landmarks import Landmarks, landmark_ranks
from millpond.approximation.intervals.tails import (
    binomial_at_least,
    binomial_at_most,
    hypergeometric_at_least,
    hypergeometric_at_most,
)


@dataclass(frozen=True)
class Ordered(Counts):
    """Counts, the least and largest value of rows that could have been dropped, or were; and the
    landmarks of hits, None where there is none."""

    low: Floats
    high: Floats
    landmarks: Sequence[bytes | None]


class _Group(NamedTuple):
    """What was counted of one group: hits, rows that could have been dropped, those that were."""

    fraction: float
    hits: int
    sure: int
    drawn: int
    dropped: int
    least_rate: float
    most_rate: float
    is_filtered: bool

    @property
    def population(self) -> int:
        """How many rows could have been dropped, or were."""
        return self.drawn + self.dropped

    @property
    def is_of_one_rate(self) -> bool:
        """Whether all of these had one chance."""
        return self.least_rate == self.most_rate

    @property
    def ranks(self) -> tuple[int, int]:
        """The two ranks between which the percentile is, if all that was dropped are hits."""
        rank = self.fraction * (self.hits + self.dropped - 1)
        return math.floor(rank) + 1, math.ceil(rank) + 1


def percentile_of_kept(of: Ordered, risk: float, is_filtered: bool) -> Answers:
    """The percentile of hits; exact where nothing was dropped."""
    found = np.empty((5, len(of.hits)))
    for place, written in enumerate(of.landmarks):
        dropped = int(of.dropped[place])
        if written is None:
            low, high = float(of.low[place]), float(of.high[place])
            none = (math.nan,) * 5
            found[:, place] = (math.nan, low, high, low, high) if dropped else none
            continue
        marks = Landmarks.of(written)
        if not dropped:
            found[:, place] = marks.percentile
            continue
        group = _Group(
            marks.fraction,
            marks.count,
            int(of.hits[place] - of.drawn_hits[place]),
            int(of.drawn[place]),
            dropped,
            1 / float(of.most_weight[place]),
            1 / float(of.least_weight[place]),
            is_filtered,
        )
        found[:, place] = _sides(marks, group, float(of.low[place]), float(of.high[place]), risk)
    return Answers(*found)


def _sides(marks: Landmarks, group: _Group, low: float, high: float, risk: float) -> Floats:
    """The estimate and bounds of one group."""
    certain = _certain(marks, group, low, high)
    below, above = _seldom_wrong(group, risk / 2)
    room = 4 * EPSILON * max(abs(end) if math.isfinite(end) else 0.0 for end in certain)
    ends = np.array([[marks.percentile, marks.at_most(below), marks.at_least(above), *certain]]).T
    ends[[2, 4]] += room  # by which a number between two may be rounded up
    return np.concatenate(astuple(within(*ends)))


def _certain(marks: Landmarks, group: _Group, low: float, high: float) -> tuple[float, float]:
    """The values of its ranks if all dropped rows are low, or high; none of them being a hit, if
    there is a filter."""
    lower, upper = group.ranks
    gone = group.dropped
    least = min(marks.at_most(lower), max(low, marks.at_most(lower - gone)))
    most = max(marks.at_least(upper - gone), min(high, marks.at_least(upper)))
    if not group.is_filtered:
        return least, most
    rank = group.fraction * (group.hits - 1)
    seen = marks.at_most(math.floor(rank) + 1), marks.at_least(math.ceil(rank) + 1)
    return min(least, seen[0]), max(most, seen[1])


@lru_cache(maxsize=4096)
def _seldom_wrong(group: _Group, risk: float) -> tuple[int, int]:
    """The last landmark whose value is seldom more than the percentile, and the first that is
    seldom less; 0 and one too many where there is none."""
    ranks = landmark_ranks(group.hits, group.fraction)
    few, many = _tails(group)
    places = len(ranks)
    below = first_that_holds(0, places, lambda place: not is_rare(few(ranks[place] - 1), risk))
    above = first_that_holds(0, places, lambda place: is_rare(many(ranks[place]), risk))
    return (0, *ranks)[below], (*ranks, group.hits + 1)[above]


def _tails(group: _Group) -> tuple[Callable[[int], float], Callable[[int], float]]:
    """The chances that at most, or at least, so many were kept of the rows that are no more, or
    less, than the percentile."""
    if group.is_filtered:
        is_known = group.hits > group.sure
        return _tails_of_hits(group) if is_known else _UNKNOWN
    lower, upper = group.ranks
    least = max(0, lower - group.population)
    most = min(group.sure, upper - 1)
    below, above = lower - least, upper - 1 - most  # of these, some could have been dropped
    if group.is_of_one_rate:
        size, drawn = group.population, group.drawn
        return (
            lambda kept: hypergeometric_at_most(kept - least, size, below, drawn),
            lambda kept: hypergeometric_at_least(kept - most, size, above, drawn),
        )
    return (
        lambda kept: binomial_at_most(kept - least, below, group.least_rate),
        lambda kept: binomial_at_least(kept - most, above, group.most_rate),
    )


def _one(_: int) -> float:
    return 1.0


_UNKNOWN = _one, _one


def _tails_of_hits(group: _Group) -> tuple[Callable[[int], float], Callable[[int], float]]:
    """The same, of hits of which it is not known how many there are (Hoeffding 1963)."""
    part, hits, sure = group.fraction, group.hits, group.sure
    drawn, most = hits - sure, hits + group.dropped
    below = (part - part / hits) * most / (most - sure)
    above = (part * (most - 1) + 1 - sure) / (most - sure) if sure else part + (1 - part) / hits

    ratio = group.least_rate / group.most_rate
    return (
        lambda kept: _few(kept, drawn, below, ratio),
        lambda kept: _few(drawn - (kept - sure), drawn, 1 - above, ratio),
    )


def _few(kept: int, drawn: int, part: float, ratio: float) -> float:
    """How rarely so few of those drawn are of a part of the rows, at most; ``ratio``: of the least
    chance of a row to the largest."""
    if part >= 1:
        return float(kept >= drawn)
    if kept >= part * drawn:
        return 1.0
    return _chernoff(kept / drawn, part, drawn) if ratio == 1 else _tilted(kept, drawn, part, ratio)


def _chernoff(seen: float, expected: float, trials: int) -> float:
    """How rarely a part is seen so far from what is expected, at most."""
    parts = ((seen, expected), (1 - seen, 1 - expected))
    return math.exp(-trials * sum(a * math.log(a / b) for a, b in parts if a > 0))


def _tilted(kept: int, drawn: int, part: float, ratio: float) -> float:
    """The same at several rates, by the best of some exponents."""
    odds = ratio * part / (1 - part)
    found = (
        math.log1p(-odds * math.expm1(-tilt)) * (drawn - kept) - tilt * kept for tilt in _TILTS
    )
    return min(1.0, len(_TILTS) * math.exp(-max(found)))


_TILTS = tuple(2.0**-power for power in range(-1, 9))

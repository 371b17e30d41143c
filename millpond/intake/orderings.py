"""How far tuples of a stream come behind larger ones, and which of them come too far behind.

Of ORDERED BY x WITHIN k a stream remembers its *peaks*: where x has risen above all before, as a
place (a sequence number, or a time) and a value. A tuple at place p must not be smaller than the
last peak before p - k. Peaks that no tuple to come can reach are forgotten but for the last one,
whose value is the *bound*: no tuple that comes from now on is smaller.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from millpond.catalog import Constraint
from millpond.kernels.groups import Bools, Ints

Peak: TypeAlias = tuple[int, int]
"""A place, and the largest value up to it."""


@dataclass(frozen=True)
class Ordering:
    """What is remembered of a stream for one constraint, and what was seen of it."""

    constraint: Constraint
    peaks: tuple[Peak, ...] = ()
    """Both places and values rise."""
    violations: int = 0
    measured: int = 0
    """How far a tuple came behind a larger one at most, as far as that is remembered."""

    def bound(self, least_place: int) -> int | None:
        """What no tuple at this place or later may be smaller than; None: anything may come."""
        known = bisect_left(self.peaks, (least_place - self.constraint.within,))
        return self.peaks[known - 1][1] if known else None

    def following(
        self, risen: Sequence[Peak], violations: int, measured: int, least_place: int
    ) -> Ordering:
        """What is remembered after more peaks, when no tuple comes before a place."""
        new = ((place, value) for place, value in risen)
        kept = self.in_reach([*self.peaks, *new], least_place)
        return replace(self, peaks=kept, violations=violations, measured=measured)

    def in_reach(self, peaks: Sequence[Peak], least_place: int) -> tuple[Peak, ...]:
        """Those of some peaks that forbid something at this place or later: all that are near
        enough, and the highest one before them."""
        known = rising(sorted(peaks))
        first = bisect_left(known, (least_place - self.constraint.within,))
        return tuple(known[max(0, first - 1) :])


def rising(peaks: Sequence[Peak]) -> list[Peak]:
    """Those of some peaks in order of place that are above all before.

    >>> rising([(1, 5), (2, 4), (3, 6)])
    [(1, 5), (3, 6)]
    """
    kept: list[Peak] = []
    for place, value in peaks:
        if not kept or value > kept[-1][1]:
            kept.append((place, value))
    return kept


@dataclass(frozen=True)
class Values:
    """The values of a column in order of arrival; of those that are not there nothing is asked."""

    numbers: Ints
    is_there: Bools


@dataclass(frozen=True)
class Looked:
    """Which constraint each tuple breaks (-1: none), and for each constraint what has risen, and
    how far a tuple came behind a larger one at most."""

    broken: Ints
    risen: tuple[tuple[Peak, ...], ...]
    measured: tuple[int, ...]


def looked_at(
    orderings: Sequence[Ordering], values: Sequence[Values], times: Ints, arrived: int
) -> Looked:
    """Looks at tuples in order of arrival; those that break a constraint get no sequence number."""
    seqs = np.arange(arrived, arrived + len(times), dtype=np.int64)
    quick = [
        _if_none_breaks(ordering, column, seqs if ordering.constraint.is_of_rows else times)
        for ordering, column in zip(orderings, values, strict=True)
    ]
    known = [each for each in quick if each is not None]
    if len(known) == len(quick):
        risen, measured = zip(*known, strict=True) if known else ((), ())
        return Looked(np.full(len(times), -1, dtype=np.int64), tuple(risen), tuple(measured))
    return _one_by_one(orderings, values, times, arrived)


def _if_none_breaks(
    ordering: Ordering, values: Values, places: Ints
) -> tuple[tuple[Peak, ...], int] | None:
    """What has risen and was measured if all tuples adhere and come in order of place."""
    at, column = places[values.is_there], values.numbers[values.is_there]
    old = np.array(ordering.peaks, dtype=np.int64).reshape(-1, 2)
    all_places = np.concatenate([old[:, 0], at])
    if np.any(all_places[1:] < all_places[:-1]):
        return None
    heights = np.maximum.accumulate(np.concatenate([old[:, 1], column]))
    before = np.searchsorted(all_places, at - ordering.constraint.within, "left")
    is_bound = before > 0
    if np.any(column[is_bound] < heights[before[is_bound] - 1]):
        return None
    above = np.searchsorted(heights, column, "right")
    is_behind = above < len(old) + np.arange(len(at))
    behind = at[is_behind] - all_places[above[is_behind]]
    rises = np.append(True, heights[1:] > heights[:-1])[: len(heights)]
    new = np.flatnonzero(rises)
    new = new[new >= len(old)]
    risen = tuple(zip(all_places[new].tolist(), heights[new].tolist(), strict=True))
    return risen, max(ordering.measured, int(behind.max(initial=0)))


def _one_by_one(
    orderings: Sequence[Ordering], values: Sequence[Values], times: Ints, arrived: int
) -> Looked:
    """The same for tuples of which some break a constraint, or that come in no order of time."""
    watches = [_Watch(ordering) for ordering in orderings]
    broken = np.full(len(times), -1, dtype=np.int64)
    for row, time in enumerate(times.tolist()):
        met = [
            (watch, arrived if watch.is_of_rows else time, int(column.numbers[row]))
            for watch, column in zip(watches, values, strict=True)
            if column.is_there[row]
        ]
        breaks = next((watch for watch, *at in met if watch.is_broken(*at)), None)
        if breaks is not None:
            broken[row] = watches.index(breaks)
            continue
        for watch, *at in met:
            watch.rise(*at)
        arrived += 1
    risen = tuple(tuple(watch.risen) for watch in watches)
    return Looked(broken, risen, tuple(watch.measured for watch in watches))


class _Watch:
    """The peaks of a constraint while tuples are looked at one after the other."""

    def __init__(self, ordering: Ordering) -> None:
        self._within = ordering.constraint.within
        self.is_of_rows = ordering.constraint.is_of_rows
        self._places = [place for place, _ in ordering.peaks]
        self._values = [value for _, value in ordering.peaks]
        self.measured = ordering.measured
        self.risen: list[Peak] = []

    def is_broken(self, place: int, value: int) -> bool:
        """Whether a tuple comes too far behind a larger one; of one that does it is measured how
        far the last peak is that forbids it, so that it does not matter what else is remembered."""
        before = bisect_left(self._places, place - self._within)
        is_broken = before > 0 and value < self._values[before - 1]
        above = before - 1 if is_broken else bisect_right(self._values, value)
        if above < len(self._places):
            self.measured = max(self.measured, place - self._places[above])
        return is_broken

    def rise(self, place: int, value: int) -> None:
        """A tuple has come."""
        at = bisect_right(self._places, place)
        if at and self._values[at - 1] >= value:
            return
        end = max(at, bisect_right(self._values, value))
        self._places[at:end], self._values[at:end] = [place], [value]
        self.risen.append((place, value))

"""How far tuples of a stream come behind larger ones, and which of them come too far behind.

Of ORDERED BY x WITHIN k a stream remembers its *peaks*: where x has risen above all before, as a
place (a sequence number, or a time) and a value. A tuple at place p must not be smaller than the
last peak before p - k, its *reach*. Peaks that no tuple to come can reach are forgotten but for the
last one, whose value is the *bound*: no tuple that comes from now on is smaller.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import Constraint
from millpond.intake.peaks import Peaks
from millpond.intake.widening import Widened
from millpond.kernels.columns import integers_of, mask_of
from millpond.kernels.groups import Bools, Ints
from millpond.storage.transitions import Noted

ANYTHING = int(np.iinfo(np.int64).min)
"""No value is smaller."""


@dataclass(frozen=True)
class Risen(Noted):
    """Peaks that tuples have made, and how large k is after them."""

    peaks: Peaks
    widened: Widened

    def to_data(self) -> tuple[Any, ...]:
        """As the log has it."""
        return self.peaks.packed(), self.widened.within, self.widened.before

    @staticmethod
    def read(told: Risen | Sequence[Any], declared: int) -> Risen:
        """What a log says; one of before has pairs, and knows of no k but the declared one."""
        if isinstance(told, Risen):
            return told
        if not told or not isinstance(told[0], str):
            return Risen(Peaks.read(told), Widened(declared))
        packed, *widened = told
        return Risen(Peaks.read(packed), Widened.read(widened))

    def in_reach(self, least_place: int) -> Risen:
        """With those peaks that forbid something at this place or later: all that are near
        enough, and the highest one before them."""
        first = int(self.peaks.places.searchsorted(self.widened.reach(least_place), "left"))
        return replace(self, peaks=self.peaks.since(max(0, first - 1)))


@dataclass(frozen=True)
class Ordering:
    """What is remembered of a stream for one constraint, and what was seen of it."""

    constraint: Constraint
    peaks: Peaks
    widened: Widened
    violations: int = 0
    measured: int = 0
    """How far a tuple came behind a larger one at most, as far as that is remembered."""

    @staticmethod
    def of(constraint: Constraint) -> Ordering:
        """Of a constraint of which nothing was seen yet."""
        return Ordering(constraint, Peaks(), Widened(constraint.within))

    @property
    def name(self) -> str:
        """By which it is known."""
        return self.constraint.name

    @property
    def facts(self) -> tuple[Risen, int, int]:
        """All that is known."""
        return Risen(self.peaks, self.widened), self.violations, self.measured

    def values(self, table: pa.Table) -> Values:
        """What it looks at of tuples."""
        return values_of(table.column(self.constraint.column))

    def watch(self) -> _Watch:
        """Looks at tuples one after the other."""
        return _Watch(self)

    def if_none_breaks(self, values: Values, places: Ints) -> tuple[Risen, int] | None:
        """What has risen and was measured, if all tuples adhere and come in order of place."""
        return _if_none_breaks(self, values, places)

    def bound(self, least_place: int) -> int | None:
        """What no tuple at this place or later may be smaller than; None: anything may come."""
        known = int(self.peaks.places.searchsorted(self.widened.reach(least_place), "left"))
        return int(self.peaks.values[known - 1]) if known else None

    def following(
        self, told: Risen | Sequence[Any], violations: int, measured: int, least_place: int
    ) -> Ordering:
        """What is remembered after more peaks, when no tuple comes before a place."""
        risen = Risen.read(told, self.constraint.within)
        widened = risen.widened.caught_up(least_place)
        kept = Risen(self.peaks.joined(risen.peaks), widened).in_reach(least_place)
        return Ordering(self.constraint, kept.peaks, widened, violations, measured)

    def in_reach(self, risen: Risen, least_place: int) -> Risen:
        """What is to be noted of what has risen: no more than forbids something."""
        return risen.in_reach(least_place)

    def declared_as(
        self, constraint: Constraint, least_place: int, after: int | None = None
    ) -> Ordering:
        """The same with another k, from a place on; its bounds say themselves after which time."""
        widened = self.widened.changed(constraint.within, least_place, None)
        return replace(self, constraint=constraint, widened=widened.caught_up(least_place))


@dataclass(frozen=True)
class Values:
    """The values of a column in order of arrival; of those that are not there nothing is asked."""

    numbers: Ints
    is_there: Bools | None = None
    """None: all are."""

    def there(self, places: Ints) -> tuple[Ints, Ints]:
        """The places of those that are there, and these."""
        if self.is_there is None:
            return places, self.numbers
        return places[self.is_there], self.numbers[self.is_there]

    def taken(self, order: Ints) -> Values:
        """The same in another order."""
        is_there = None if self.is_there is None else self.is_there[order]
        return Values(self.numbers[order], is_there)

    def at(self, row: int) -> int | None:
        """The value of a tuple, if it is there."""
        is_there = self.is_there is None or self.is_there[row]
        return int(self.numbers[row]) if is_there else None


def values_of(column: pa.ChunkedArray) -> Values:
    """The values of a column by which a stream is ordered."""
    numbers = column.cast(pa.int32()) if column.type == pa.date32() else column
    if not column.null_count:
        whole = numbers if numbers.type == pa.int64() else numbers.cast(pa.int64())
        return Values(np.asarray(whole.chunk(0) if whole.num_chunks == 1 else whole))
    return Values(integers_of(numbers)[:-1], mask_of(column)[:-1])


def _if_none_breaks(ordering: Ordering, values: Values, places: Ints) -> tuple[Risen, int] | None:
    """What has risen and was measured if all tuples adhere and come in order of place."""
    (at, column), old = values.there(places), ordering.peaks
    if not len(at):
        return Risen(Peaks(), ordering.widened), ordering.measured
    is_of_rows = ordering.constraint.is_of_rows  # then places rise
    if (not is_of_rows and np.any(at[1:] < at[:-1])) or (len(old) and at[0] < old.places[-1]):
        return None
    heights = _heights(old, column)
    if _breaks(old, at, heights, column, ordering.widened):
        return None
    risen = Risen(_new_peaks(old, at, heights), ordering.widened)
    is_dense = is_of_rows and int(at[-1] - at[0]) == len(at) - 1
    known = ordering.measured
    is_behind = (_would_break_densely if is_dense else _would_break)(
        old, at, heights, column, known
    )
    return risen, _farthest_behind(old, at, heights, column, is_behind, known)


def _heights(old: Peaks, column: Ints) -> Ints:
    """The highest value up to each tuple, and up to those before."""
    heights = np.maximum.accumulate(column)
    if len(old) and heights[0] < (last := old.values[-1]):
        heights[: heights.searchsorted(last)] = last
    return heights


def _new_peaks(old: Peaks, at: Ints, heights: Ints) -> Peaks:
    """Where tuples are above all before."""
    rises = np.empty(len(at), dtype=np.bool_)
    rises[0] = not len(old) or heights[0] > old.values[-1]
    np.greater(heights[1:], heights[:-1], out=rises[1:])
    rows = rises.nonzero()[0]
    return Peaks().plus(at[rows], heights[rows])


def _breaks(old: Peaks, at: Ints, heights: Ints, column: Ints, widened: Widened) -> bool:
    """Whether a tuple is smaller than it may be; the last one has the highest bound."""
    highest = _bound(old, at, heights, widened.reach(int(at[-1])))
    if highest == ANYTHING or column.min() >= highest:
        return False
    return bool(np.any(column < _bounds(old, at, heights, widened.reaches(at))))


def _bound(old: Peaks, at: Ints, heights: Ints, reach: int) -> int:
    """What a tuple of a reach must not be smaller than: the last peak before it."""
    before = int(at.searchsorted(reach, "left"))
    if before:
        return int(heights[before - 1])
    before = int(old.places.searchsorted(reach, "left"))
    return int(old.values[before - 1]) if before else ANYTHING


def _bounds(old: Peaks, at: Ints, heights: Ints, reaches: Ints) -> Ints:
    """The same of many."""
    before = at.searchsorted(reaches, "left")
    first = int(before.searchsorted(1))  # of those before it no new peak is in reach
    in_old = old.places.searchsorted(reaches[:first], "left")
    unbound = int(in_old.searchsorted(1))
    found = np.empty(len(reaches), dtype=np.int64)
    found[:unbound] = ANYTHING
    found[unbound:first] = old.values[in_old[unbound:] - 1]
    found[first:] = heights[before[first:] - 1]
    return found


def _farthest_behind(
    old: Peaks, at: Ints, heights: Ints, column: Ints, is_behind: Bools, known: int
) -> int:
    """How far a tuple comes behind the first peak above it at most, if it is farther than known:
    then it would break a constraint within that."""
    behind = np.flatnonzero(is_behind)
    if not len(behind):
        return known
    values = column[behind]
    above = old.values.searchsorted(values, "right")
    is_old = above < len(old)
    peaks = at[np.minimum(heights.searchsorted(values, "right"), len(at) - 1)]
    peaks[is_old] = old.places[above[is_old]]
    return max(known, int((at[behind] - peaks).max()))


def _would_break(old: Peaks, at: Ints, heights: Ints, column: Ints, within: int) -> Bools:
    """Which tuples would break a constraint within k."""
    return column < _bounds(old, at, heights, at - within)


def _would_break_densely(old: Peaks, at: Ints, heights: Ints, column: Ints, within: int) -> Bools:
    """The same where each place has a tuple: but for the first the peak of each is k + 1 back."""
    found = np.empty(len(at), dtype=np.bool_)
    first = min(len(at), within + 1)
    bounds = _bounds(old, at, heights, at[:first] - within)
    np.less(column[:first], bounds, out=found[:first])
    np.less(column[first:], heights[: len(at) - first], out=found[first:])
    return found


class _Watch:
    """The peaks of a constraint while tuples are looked at one after the other."""

    def __init__(self, ordering: Ordering) -> None:
        self._widened = ordering.widened
        self._widens = ordering.constraint.on_violation == "widen"
        self.is_of_rows = ordering.constraint.is_of_rows
        self._places = ordering.peaks.places.tolist()
        self._values = ordering.peaks.values.tolist()
        self.measured = ordering.measured
        self._risen: list[tuple[int, int]] = []

    def is_broken(self, place: int, value: int) -> bool:
        """Whether a tuple comes too far behind a larger one; of one that does it is measured how
        far the last peak is that forbids it, so that it does not matter what else is remembered."""
        before = bisect_left(self._places, self._widened.reach(place))
        is_broken = before > 0 and value < self._values[before - 1]
        above = before - 1 if is_broken else bisect_right(self._values, value)
        behind = place - self._places[above] if above < len(self._places) else 0
        self.measured = max(self.measured, behind)
        if is_broken and self._widens:
            self._widened = self._widened.after_violation(place, behind, self.is_of_rows)
        return is_broken

    def rise(self, place: int, value: int) -> None:
        """A tuple has come."""
        at = bisect_right(self._places, place)
        if at and self._values[at - 1] >= value:
            return
        end = max(at, bisect_right(self._values, value))
        self._places[at:end], self._values[at:end] = [place], [value]
        self._risen.append((place, value))

    @property
    def risen(self) -> Risen:
        """What has risen so far."""
        return Risen(Peaks.of(*_columns(self._risen)), self._widened)

    @property
    def grown(self) -> None:
        """How large k is, is among what has risen."""
        return None


def _columns(pairs: Iterable[tuple[int, int]]) -> tuple[Sequence[int], Sequence[int]]:
    places, values = zip(*pairs, strict=True) if pairs else ((), ())
    return places, values

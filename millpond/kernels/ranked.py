"""Percentiles, extremes of values that come and go, and different values.

A group's values are kept in order (``ordered``). A step that moves m values of a group moves the
rank by m places at most, so the values within some m places of it are all a step has to read; of
the others it counts those before them. Of different values it reads those that come or go in it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millpond.approximation.intervals.landmarks import landmark_ranks, packed
from millpond.kernels.columns import (
    Values,
    doubles_back,
    is_bytes,
    marked,
    mask_of,
    of_numbers,
    places_of,
)
from millpond.kernels.decimals import column_of, is_wide
from millpond.kernels.extremes import NOTHING, greatest_of_counts
from millpond.kernels.grouped import AggregateSpec, Group
from millpond.kernels.groups import Bools, Floats, Ints, distinct, encode, first_rows
from millpond.kernels.ordered import LEAST, MOST, MemberIndex, merged_members
from millpond.kernels.timeline import Changes, Timeline, order_of

ORDERED = ("min", "max", "percentile", "landmarks")
"""Aggregates that go by the order of their values."""


def is_ranked(spec: AggregateSpec, is_append_only: bool) -> bool:
    """Whether an aggregate keeps its values in order; texts and wide DECIMALs have no places for
    that."""
    if spec.definition is not None or spec.keeps_rows:
        return spec.keeps_rows
    if spec.function in ("percentile", "landmarks"):
        return True
    type_ = spec.argument_type
    if type_ is not None and (is_bytes(type_) or is_wide(type_)):
        return False
    return is_of_different(spec) or (spec.function in ("min", "max") and not is_append_only)


def is_of_different(spec: AggregateSpec) -> bool:
    """Whether equal values count once; they always do for an extreme, which needs no counting."""
    is_distinct = spec.distinct and spec.function not in ORDERED
    return is_distinct or spec.function == "approx_count_distinct"


@dataclass
class Ranked:
    """The kept values of a step's groups: for each argument one order of its own."""

    members: MemberIndex
    number: Ints
    """Of each group."""
    arguments: Sequence[int]
    """Which columns have values in order; a negative number is an aggregate that keeps rows."""
    moved: dict[int, pa.Table] = field(default_factory=dict)
    """Which values of each argument come and go."""

    def identities(self, argument: int) -> Ints:
        """The number of each group's values of an argument."""
        return self.number * len(self.arguments) + self.arguments.index(argument)

    def move(self, argument: int, code: Ints, place: Ints, weight: Ints) -> None:
        """Notes which values of an argument come and go, and in which groups."""
        if argument not in self.moved:
            real = marked(weight)
            self.moved[argument] = self._moved(argument, code[real], place[real], weight[real], {})

    def move_rows(self, slot: int, code: Ints, place: Ints, weight: Ints, rows: pa.Table) -> None:
        """Notes which rows that an aggregate keeps come and go, and in which groups."""
        columns = {name: rows[name] for name in rows.column_names}
        self.moved[slot] = self._moved(slot, code, place, weight, columns)

    def _moved(
        self,
        argument: int,
        code: Ints,
        place: Ints,
        weight: Ints,
        rows: Mapping[str, pa.ChunkedArray],
    ) -> pa.Table:
        schema = self.members.schema
        arrays = [pa.array(each) for each in (self.identities(argument)[code], place, weight)]
        others = (
            rows[field.name].cast(field.type)
            if field.name in rows
            else pa.nulls(len(code), field.type)
            for field in list(schema)[3:]
        )
        return merged_members([pa.Table.from_arrays([*arrays, *others], schema=schema)])

    def changes(self) -> pa.Table:
        """All values that come and go."""
        return merged_members([self.members.schema.empty_table(), *self.moved.values()])


@dataclass(frozen=True)
class _Near:
    """The kept values near a rank, ordered by group; and the changes in terms of them."""

    code: Ints
    place: Ints
    count: Ints
    passed: Ints
    """Of each group, how many values come before these."""
    change_place: Ints
    is_near: Bools
    """Whether a change is of a value among these."""
    is_before: Bools
    """Whether it is of one before these."""


def ranked_values(
    name: str, spec: AggregateSpec, group: Group, ranked: Ranked, column: pa.ChunkedArray
) -> Values:
    """The aggregate's value at every instant; leaves what comes and goes in ``ranked``."""
    changes = group.timeline.changes
    weight = np.where(mask_of(column)[changes.row], changes.weight, 0)
    before = group.initial(name + "count")
    count = group.total(name + "count", weight)
    near = _near(spec, group, ranked, places_of(column)[changes.row], weight, before)
    if spec.function == "percentile":
        return _percentile(spec, group, near, weight, count)
    if spec.function == "landmarks":
        return _landmarks(spec, group, near, weight, count)
    return _extreme(spec, group, near, weight)


def different_values(
    spec: AggregateSpec, group: Group, ranked: Ranked, column: pa.ChunkedArray
) -> Changes:
    """The changes of the set of different values: +1 when one appears, -1 when the last goes.

    Leaves what comes and goes in ``ranked``.
    """
    argument, changes = spec.argument or 0, group.timeline.changes
    weight = np.where(mask_of(column)[changes.row], changes.weight, 0)
    place = places_of(column)[changes.row]
    ranked.move(argument, changes.code, place, weight)
    real = marked(weight)
    pairs = _pairs(changes.code[real], place[real])
    example = real[first_rows(pairs)]
    code, place = changes.code[example], place[example]
    before = _counts(ranked.members, ranked.identities(argument)[code], place)
    line = Timeline.of(Changes.ordered(changes.row[real], pairs, changes.time[real], weight[real]))
    running = line.running(line.changes.weight, before)
    step = (running > 0).astype(np.int64) - (line.previous(running, before) > 0)
    at = marked(step)
    rows = line.changes.row[line.last[at]]
    return Changes(rows, code[line.code[at]], line.time[at], step[at])


def _counts(members: MemberIndex, identity: Ints, place: Ints) -> Ints:
    """How often each of some values is there; no two of them are the same."""
    order = order_of(identity, place)  # what is asked for in order is found quicker
    kept = members.between(identity[order], place[order], place[order])
    group, at, count = (kept[name].to_numpy() for name in ("_g", "_v", "_n"))
    pairs = _pairs(np.concatenate([identity, group]), np.concatenate([place, at]))
    found = np.zeros(int(pairs.max(initial=-1)) + 1, dtype=np.int64)
    found[pairs[len(identity) :]] = count
    return np.asarray(found[pairs[: len(identity)]])


def _pairs(one: Ints, other: Ints) -> Ints:
    """A number for each pair, the same for equal ones."""
    return encode([pa.chunked_array([pa.array(each)]) for each in (one, other)], len(one))


def values_at(place: Ints, type_: pa.DataType) -> pa.Array:
    """The values that have these places."""
    if pa.types.is_floating(type_):
        return doubles_back(place).cast(type_)
    if pa.types.is_boolean(type_):
        return pa.array(place.astype(np.bool_))
    if pa.types.is_decimal(type_):
        return column_of(place, type_)
    width = pa.int32() if type_.bit_width == 32 else pa.int64()
    return pa.array(place).cast(width).cast(type_)


def _near(
    spec: AggregateSpec, group: Group, ranked: Ranked, place: Ints, weight: Ints, before: Ints
) -> _Near:
    argument = spec.argument or 0
    changes, identity = group.timeline.changes, ranked.identities(argument)
    ranked.move(argument, changes.code, place, weight)
    moved = np.bincount(changes.code, np.abs(weight), group.groups).astype(np.int64)
    low, high, passed = _bounds(spec, ranked.members, identity, before, moved)
    some = marked(before)
    kept = ranked.members.between(identity[some], low[some], high[some])
    order = np.argsort(identity, kind="stable")
    code = order[np.searchsorted(identity[order], kept["_g"].to_numpy())]
    by_code = order_of(code, np.zeros(len(code), dtype=np.int64))
    is_before = (place < low[changes.code]) & (weight != 0)
    is_near = (place <= high[changes.code]) & (weight != 0) & ~is_before
    values, counts = (kept[name].to_numpy()[by_code] for name in ("_v", "_n"))
    return _Near(code[by_code], values, counts, passed, place, is_near, is_before)


def _bounds(
    spec: AggregateSpec, members: MemberIndex, identity: Ints, count: Ints, moved: Ints
) -> tuple[Ints, Ints, Ints]:
    """The first and the last place of each group to read, and how many values lie before them.

    Whatever ``moved`` values do, the ranks asked for lie from ``lowest`` to ``highest``, counted
    among the values before the step.
    """
    if spec.function == "landmarks":  # which are of all values
        whole = np.full(len(count), LEAST), np.full(len(count), MOST)
        return *whole, np.zeros(len(count), dtype=np.int64)
    fraction = _fraction(spec)
    lowest = np.floor(fraction * (count - moved - 1)).astype(np.int64) - moved - 1
    highest = np.floor(fraction * (count + moved - 1)).astype(np.int64) + moved + 2
    low, high = np.full(len(count), LEAST), np.full(len(count), MOST)
    passed = np.zeros(len(count), dtype=np.int64)
    rising, falling = marked(lowest > 0), marked(highest < count - 1)
    if len(rising) or len(falling):
        asked = np.concatenate([identity[rising], identity[falling]])
        first, end = members.around(asked, np.concatenate([lowest[rising], highest[falling]]))
        low[rising] = first[: len(rising)]
        ends = end[len(rising) :]
        high[falling] = np.where(ends == MOST, MOST, ends - 1)
        passed[rising] = members.before(identity[rising], low[rising])
    return low, high, passed


def _fraction(spec: AggregateSpec) -> float:
    return {"min": 0.0, "max": 1.0}.get(spec.function, float(spec.parameter or 0.0))


def _extreme(spec: AggregateSpec, group: Group, near: _Near, weight: Ints) -> Values:
    """By numbers for the places that occur, of which none is too small to be negated."""
    sign = 1 if spec.function == "max" else -1
    known = distinct(np.concatenate([near.place, near.change_place[near.is_near]]))
    value = np.searchsorted(known, near.change_place) * sign
    value[~near.is_near] = NOTHING
    kept = np.searchsorted(known, near.place) * sign
    found = greatest_of_counts(
        group.timeline, group.timeline.changes, value, near.code, kept, near.count
    )
    valid = found != NOTHING
    plain = np.where(valid, found, 0) * sign

    def to_arrow(at: Ints) -> pa.Array:
        some = valid[at]
        values = values_at(known[plain[at][some]], spec.type)
        return values.take(pa.array(np.cumsum(some) - 1, mask=~some))

    return Values(plain, valid, to_arrow)


def _percentile(
    spec: AggregateSpec, group: Group, near: _Near, weight: Ints, count: Ints
) -> Values:
    """By the values near its rank."""
    counts = count.tolist()
    chosen = [
        content.at_rank(_fraction(spec), counts[instant], before)
        for instant, (content, before) in enumerate(_walked(group, near, weight))
    ]
    low, high, share = (np.array(each) for each in zip(*chosen, strict=True)) if chosen else _NONE
    low, high = (_doubles(each, spec.argument_type) for each in (low, high))
    result = _between(low, high, share)
    return of_numbers(result, count > 0, spec.type)


def _landmarks(spec: AggregateSpec, group: Group, near: _Near, weight: Ints, count: Ints) -> Values:
    """Some of the values in order, packed; equal ones have one number."""
    known: dict[bytes, int] = {}
    fraction, counts, numbers = _fraction(spec), count.tolist(), []
    for instant, (content, _) in enumerate(_walked(group, near, weight)):
        ranks = landmark_ranks(counts[instant], fraction)
        values = _doubles(content.at_places([rank - 1 for rank in ranks]), spec.argument_type)
        numbers.append(known.setdefault(packed(values, fraction, counts[instant]), len(known)))
    data, valid, written = np.array(numbers, dtype=np.int64), count > 0, np.array([*known], object)
    return Values(data, valid, lambda at: pa.array(written[data[at]], pa.binary(), mask=~valid[at]))


def _walked(group: Group, near: _Near, weight: Ints) -> Iterator[tuple[_Sorted, int]]:
    """At each instant a sorted list of the group's values near a rank, one insertion or removal a
    change, and how many come before them."""
    timeline = group.timeline
    begins = np.searchsorted(near.code, np.arange(group.groups + 1)).tolist()
    passed = near.passed.tolist()
    places, weights = near.change_place.tolist(), weight.tolist()
    is_near, is_before = near.is_near.tolist(), near.is_before.tolist()
    codes, is_first = timeline.code.tolist(), timeline.is_first.tolist()
    content, before, position = _Sorted([]), 0, 0
    for instant, last in enumerate(timeline.last.tolist()):
        if is_first[instant]:
            own = slice(begins[codes[instant]], begins[codes[instant] + 1])
            content = _Sorted(np.repeat(near.place[own], near.count[own]).tolist())
            before = passed[codes[instant]]
        for at in range(position, last + 1):
            if is_near[at]:
                content.change(places[at], weights[at])
            elif is_before[at]:
                before += weights[at]
        position = last + 1
        content.take_out()
        yield content, before


_NONE = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _doubles(place: Ints, type_: pa.DataType | None) -> Floats:
    """The values at places as doubles; large integers are rounded."""
    if type_ is not None and pa.types.is_floating(type_):
        return np.asarray(doubles_back(place.astype(np.int64)))
    return place.astype(np.float64)


def _between(low: Floats, high: Floats, share: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        found: Floats = np.where(share == 0, low, low + (high - low) * share)
    return found


class _Sorted:
    """A sorted list in which a value may be taken away before it has come, within an instant."""

    def __init__(self, content: list[int]) -> None:
        self._content = content
        self._leaving: list[int] = []

    def change(self, value: int, weight: int) -> None:
        """Puts a value in, or notes that it goes."""
        for _ in range(weight):
            bisect.insort(self._content, value)
        for _ in range(-weight):
            self._leaving.append(value)

    def take_out(self) -> None:
        """Takes out what goes."""
        for value in self._leaving:
            del self._content[bisect.bisect_left(self._content, value)]
        self._leaving.clear()

    def at_places(self, places: Sequence[int]) -> Ints:
        """The values at some places."""
        return np.array([self._content[place] for place in places], dtype=np.int64)

    def at_rank(self, fraction: float, count: int, before: int) -> tuple[int, int, float]:
        """The two values around a fraction of a count, and how far it is to the second one."""
        if count <= 0:
            return 0, 0, 0.0
        rank = fraction * (count - 1)
        below = int(rank)
        low = self._content[below - before]
        if rank == below:
            return low, low, 0.0
        return low, self._content[below + 1 - before], rank - below

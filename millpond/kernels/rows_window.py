"""Rows windows: the last n elements of a stream or of each of its partitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import flat, integers, marked, with_first
from millpond.kernels.groups import Bools, Ints, encode, first_rows, stable_order
from millpond.kernels.kernel import Keyed
from millpond.kernels.ordered import MemberIndex, member_schema, merged_members, numbered
from millpond.kernels.timeline import order_of
from millpond.schema import FOREVER


@dataclass(frozen=True)
class RowsWindowKernel(Keyed):
    """Stream elements ``c0…`` with ``k0…`` (the partition) in; relation elements out.

    The i-th element of a partition enters when the count reaches the next multiple of the slide at
    or after i, and leaves when it reaches the next one at or after i + rows. ``rows`` is a number,
    or the data column that says it, the same in all elements of a partition.
    """

    types: tuple[pa.DataType, ...]
    rows: int | str
    slide: int
    is_base: bool

    @property
    def columns(self) -> list[str]:
        """The names of the data columns."""
        return [f"c{i}" for i in range(len(self.types))]

    @property
    def state_schema(self) -> pa.Schema:
        """One row a partition: how many elements so far, and its number."""
        numbers = [pa.field(n, pa.int64()) for n in ("_n", "_g")]
        return pa.schema(self.key_fields + numbers)

    @property
    def member_schema(self) -> pa.Schema:
        """The elements that have yet to leave: a partition's i-th is at place i."""
        kept = zip(self.columns, self.types, strict=True)
        return member_schema([pa.field(n, t) for n, t in kept])

    @property
    def output_schema(self) -> pa.Schema:
        """The elements put out."""
        return element_schema(self.types)

    def run_with_members(
        self,
        events: pa.Table,
        state: pa.Table,
        members: MemberIndex,
        after: int,
        until: int,
        fresh: int,
    ) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The elements of the step, the new counts of the partitions it touched, and the elements
        that stay beyond the step or leave in it."""
        if not self.is_base:
            events = events.take(
                pa.array(np.repeat(np.arange(events.num_rows), integers(events["_w"])))
            )
        keys = pa.concat_tables([events.select(self.keys), state.select(self.keys)])
        codes = encode([keys[name] for name in self.keys], events.num_rows + state.num_rows)
        own, old = codes[: events.num_rows], codes[events.num_rows :]
        before, number = numbered(state, old, int(codes.max(initial=-1)) + 1, fresh)
        order = self._order(events, own)
        own, time = own[order], integers(events["_ts"])[order]
        counts = np.bincount(own, minlength=len(before))
        offsets = with_first(0, np.cumsum(counts))[:-1]
        clock = _Clock(time, offsets, before, before + counts)
        lengths = self._lengths(events, codes[: events.num_rows], len(before))
        kept = self._needed(members, number, clock, lengths)
        at = np.argsort(number, kind="stable")
        kept_code = at[np.searchsorted(number[at], integers(kept["_g"]))]
        index = before[own] + 1 + np.arange(len(own)) - offsets[own]
        code = np.concatenate([kept_code, own])
        place = np.concatenate([integers(kept["_v"]), index])
        new = events.select(self.columns).take(pa.array(order))
        rows = pa.concat_tables(
            [kept.select(self.columns), new.cast(kept.select(self.columns).schema)]
        )
        enter, leave = self._next(place), self._next(place + lengths[code])
        output = self._output(rows, code, enter, leave, clock)
        was_kept = np.arange(len(code)) < len(kept_code)
        stays = leave > clock.now[code]
        moved = marked(was_kept != stays)
        sign = np.where(was_kept[moved], -1, 1)
        arrays = [pa.array(number[code[moved]]), pa.array(place[moved]), pa.array(sign)]
        taken = rows.take(pa.array(moved)).columns
        changes = pa.Table.from_arrays([*arrays, *taken], schema=self.member_schema)
        examples = pa.array(first_rows(codes)) if self.keys else pa.array([], pa.int64())
        groups = [flat(keys[name].take(examples)) for name in self.keys]
        groups += [pa.array(clock.now), pa.array(number)]
        new_state = pa.Table.from_arrays(groups, schema=self.state_schema)
        return output, new_state, merged_members([changes])

    def _lengths(self, events: pa.Table, codes: Ints, count: int) -> Ints:
        """How many rows the window of each partition holds; where nothing comes any will do."""
        if not isinstance(self.rows, str):
            return np.full(count, self.rows, np.int64)
        lengths = np.ones(count, np.int64)
        lengths[codes] = integers(events[self.rows])
        return lengths

    def _next(self, number: Ints) -> Ints:
        """The multiple of the slide at or after a count."""
        return -(-number // self.slide) * self.slide

    def _needed(self, members: MemberIndex, number: Ints, clock: _Clock, lengths: Ints) -> pa.Table:
        """The kept elements that enter or leave in the step.

        The count reaches multiples of the slide from the one after ``passed`` to ``reached``.
        """
        passed = clock.before // self.slide * self.slide
        reached = clock.now // self.slide * self.slide
        group = np.concatenate([number, number])
        low = np.concatenate([passed - lengths + 1, passed + 1])
        high = np.concatenate(
            [np.minimum(reached - lengths, passed), np.minimum(reached, clock.before)]
        )
        moving = marked(high >= low)
        return members.between(group[moving], low[moving], high[moving])

    def _order(self, events: pa.Table, codes: Ints) -> Ints:
        if self.is_base:
            arrived = stable_order(integers(events["_seq"]))
            return arrived[order_of(codes[arrived], integers(events["_ts"])[arrived])]
        table = events.select(["_ts", *self.columns]).append_column("_code", pa.array(codes))
        keys = [(name, "ascending", "at_start") for name in ("_code", "_ts", *self.columns)]
        return np.asarray(pc.sort_indices(table, sort_keys=keys)).astype(np.int64)

    def _output(
        self, rows: pa.Table, code: Ints, enter: Ints, leave: Ints, clock: _Clock
    ) -> pa.Table:
        came = clock.happens(code, enter)
        goes = clock.happens(code, leave)
        entering = marked(came)
        start = clock.time(code[entering], enter[entering])
        end = np.full(len(entering), FOREVER)
        both = goes[entering]
        end[both] = clock.time(code[entering][both], leave[entering][both])
        seen = end > start
        leaving = marked(goes & ~came)
        gone = clock.time(code[leaving], leave[leaving])
        taken = rows.take(pa.array(np.concatenate([leaving, entering[seen]])))
        arrays = [
            pa.array(np.concatenate([gone, start[seen]])),
            pa.array(np.concatenate([np.full(len(leaving), FOREVER), end[seen]])),
            pa.array(np.concatenate([np.full(len(leaving), -1), np.ones(int(seen.sum()), int)])),
        ]
        return pa.Table.from_arrays(arrays + taken.columns, schema=self.output_schema)


@dataclass(frozen=True)
class _Clock:
    """When the count of each partition reached a number, within this step."""

    times: Ints
    offsets: Ints
    before: Ints
    now: Ints

    def happens(self, code: Ints, count: Ints) -> Bools:
        """Whether the partition's count reaches this number in the step."""
        return (count > self.before[code]) & (count <= self.now[code])

    def time(self, code: Ints, count: Ints) -> Ints:
        """The time of the element that made it reach the number."""
        result: Ints = self.times[self.offsets[code] + count - self.before[code] - 1]
        return result

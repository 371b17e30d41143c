"""Rows windows: the last n elements of a stream or of each of its partitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import flat, integers
from millpond.kernels.groups import Bools, Ints, encode, first_rows, stable_order
from millpond.kernels.timeline import order_of
from millpond.schema import FOREVER


@dataclass(frozen=True)
class RowsWindowKernel:
    """Stream elements ``c0…`` with ``k0…`` (the partition) in; relation elements out.

    The i-th element of a partition enters when the count reaches the next multiple of the slide at
    or after i, and leaves when it reaches the next one at or after i + rows.
    """

    key_types: tuple[pa.DataType, ...]
    types: tuple[pa.DataType, ...]
    rows: int
    slide: int
    is_base: bool

    @property
    def keys(self) -> list[str]:
        """The names of the partition columns."""
        return [f"k{i}" for i in range(len(self.key_types))]

    @property
    def columns(self) -> list[str]:
        """The names of the data columns."""
        return [f"c{i}" for i in range(len(self.types))]

    @property
    def state_schema(self) -> pa.Schema:
        """One row a partition: how many elements so far, and those that have yet to leave."""
        fields = [pa.field(n, t) for n, t in zip(self.keys, self.key_types, strict=True)]
        fields += [pa.field("_n", pa.int64()), pa.field("_i", pa.list_(pa.int64()))]
        kept = zip(self.columns, self.types, strict=True)
        return pa.schema(fields + [pa.field(n, pa.list_(t)) for n, t in kept])

    @property
    def output_schema(self) -> pa.Schema:
        """The elements put out."""
        return element_schema(self.types)

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The elements of the step and the new state of the partitions it touched."""
        if not self.is_base:
            events = events.take(
                pa.array(np.repeat(np.arange(events.num_rows), integers(events["_w"])))
            )
        keys = pa.concat_tables([events.select(self.keys), state.select(self.keys)])
        codes = encode([keys[name] for name in self.keys], events.num_rows + state.num_rows)
        own, old = codes[: events.num_rows], codes[events.num_rows :]
        groups = int(codes.max(initial=-1)) + 1
        before = np.zeros(groups, dtype=np.int64)
        before[old] = integers(state["_n"])
        order = self._order(events, own)
        own, time = own[order], integers(events["_ts"])[order]
        counts = np.bincount(own, minlength=groups)
        offsets = np.append(0, np.cumsum(counts))[:-1]
        index = before[own] + 1 + np.arange(len(own)) - offsets[own]
        kept_code, kept_index, kept = self._kept(state, old)
        code = np.concatenate([kept_code, own])
        number = np.concatenate([kept_index, index])
        rows = pa.concat_tables([kept, events.select(self.columns).take(pa.array(order))])
        clock = _Clock(time, offsets, before, before + counts)
        enter, leave = self._next(number), self._next(number + self.rows)
        output = self._output(rows, code, enter, leave, clock)
        staying = np.flatnonzero(leave > clock.now[code])
        return output, self._state(keys, codes, rows, code, number, staying, clock.now)

    def _next(self, number: Ints) -> Ints:
        """The multiple of the slide at or after a count."""
        return -(-number // self.slide) * self.slide

    def _order(self, events: pa.Table, codes: Ints) -> Ints:
        if self.is_base:
            arrived = stable_order(integers(events["_seq"]))
            return arrived[order_of(codes[arrived], integers(events["_ts"])[arrived])]
        table = events.select(["_ts", *self.columns]).append_column("_code", pa.array(codes))
        keys = [(name, "ascending", "at_start") for name in ("_code", "_ts", *self.columns)]
        return np.asarray(pc.sort_indices(table, sort_keys=keys)).astype(np.int64)

    def _kept(self, state: pa.Table, codes: Ints) -> tuple[Ints, Ints, pa.Table]:
        empty = pa.schema([pa.field(n, t) for n, t in zip(self.columns, self.types, strict=True)])
        if state.num_rows == 0:
            none = np.zeros(0, dtype=np.int64)
            return none, none, empty.empty_table()
        lists = flat(state["_i"])
        lengths = np.asarray(lists.value_lengths()).astype(np.int64)
        columns = [flat(state[name]).flatten() for name in self.columns]
        index = np.asarray(lists.flatten()).astype(np.int64)
        return np.repeat(codes, lengths), index, pa.Table.from_arrays(columns, schema=empty)

    def _output(
        self, rows: pa.Table, code: Ints, enter: Ints, leave: Ints, clock: _Clock
    ) -> pa.Table:
        came = clock.happens(code, enter)
        goes = clock.happens(code, leave)
        entering = np.flatnonzero(came)
        start = clock.time(code[entering], enter[entering])
        end = np.full(len(entering), FOREVER)
        both = goes[entering]
        end[both] = clock.time(code[entering][both], leave[entering][both])
        seen = end > start
        leaving = np.flatnonzero(goes & ~came)
        gone = clock.time(code[leaving], leave[leaving])
        taken = rows.take(pa.array(np.concatenate([leaving, entering[seen]])))
        arrays = [
            pa.array(np.concatenate([gone, start[seen]])),
            pa.array(np.concatenate([np.full(len(leaving), FOREVER), end[seen]])),
            pa.array(np.concatenate([np.full(len(leaving), -1), np.ones(int(seen.sum()), int)])),
        ]
        return pa.Table.from_arrays(arrays + taken.columns, schema=self.output_schema)

    def _state(
        self,
        keys: pa.Table,
        codes: Ints,
        rows: pa.Table,
        code: Ints,
        number: Ints,
        staying: Ints,
        now: Ints,
    ) -> pa.Table:
        groups = len(now)
        staying = staying[np.argsort(code[staying], kind="stable")]
        counts = np.bincount(code[staying], minlength=groups)
        offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
        kept = rows.take(pa.array(staying))
        examples = pa.array(first_rows(codes)) if self.keys else pa.array([], pa.int64())
        arrays = [flat(keys[name].take(examples)) for name in self.keys]
        arrays.append(pa.array(now))
        arrays.append(pa.ListArray.from_arrays(offsets, pa.array(number[staying])))
        arrays += [pa.ListArray.from_arrays(offsets, flat(kept[n])) for n in self.columns]
        return pa.Table.from_arrays(arrays, schema=self.state_schema)


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

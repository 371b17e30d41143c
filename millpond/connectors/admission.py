"""What becomes of tuples that arrive: their times, their order, and which of them come too late.

A pure function of what a stream has taken so far and of the tuples, so that it can be computed
where the tuples are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.catalog import StreamEntry
from millpond.connectors.arrow import arrow_schema
from millpond.connectors.disorder import Disorder
from millpond.connectors.rows import row_position
from millpond.connectors.times import times_of
from millpond.schema import BEGINNING, Schema

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Breaks = Callable[[pa.Table, Ints, Ints], Bools]
"""Which tuples break a constraint, of those that are not late, with their times and their places
among all that came."""


Promised = Sequence[tuple[int, int]]
"""What is promised among tuples: how many come before, and the time that is over behind them."""


@lru_cache(maxsize=1024)
def stream_page_schema(schema: Schema) -> pa.Schema:
    """Pages of a base stream: time, order of arrival, then the declared columns as c0…"""
    numbers = [pa.field("_ts", pa.int64()), pa.field("_seq", pa.int64())]
    declared = [pa.field(f"c{i}", f.type) for i, f in enumerate(arrow_schema(schema))]
    return pa.schema(numbers + declared)


@dataclass(frozen=True)
class Admission:
    """How far a stream is: the largest time so far, how many tuples came, what was promised."""

    entry: StreamEntry
    tick_microseconds: int
    largest: int | None
    arrived: int
    heartbeat: int
    disorder: Disorder | None = None
    """What was seen of how far tuples come behind, if the delay follows that."""

    def admit(
        self,
        table: pa.Table,
        now: int,
        breaks: Breaks | None = None,
        promises: Promised = (),
    ) -> Admitted:
        """Gives tuples, in order of arrival, times and sequence numbers; ``now`` is in ticks.

        Those that ``breaks`` says are no part of the stream, but their times are seen.
        """
        times = self._times(table, now)
        over, disorder = self._over(times)
        heartbeat = int(over[-1])
        late = times <= np.maximum(over[:-1], self._promised(len(times), promises))
        aside = table.filter(pa.array(late)) if late.any() else None
        if aside is not None:
            table, times = table.filter(pa.array(~late)), times[~late]
        if len(times) == 0:
            return Admitted(None, aside, self.largest, self.arrived, heartbeat, disorder)
        largest = max(int(times.max()), BEGINNING if self.largest is None else self.largest)
        broken = np.zeros(len(times), np.bool_)
        if breaks is not None:
            broken = breaks(table, times, np.flatnonzero(~late))
        if broken.any():
            table, times = table.filter(pa.array(~broken)), times[~broken]
        page = self._page(table, times) if len(times) else None
        return Admitted(page, aside, largest, self.arrived + len(times), heartbeat, disorder)

    @property
    def delay_ticks(self) -> int:
        """How far a tuple may come behind now."""
        return self.entry.delay_ticks if self.disorder is None else self.disorder.delay

    def promise(self, largest: int | None) -> int:
        """What is promised when this is the largest time so far."""
        if largest is None:
            return self.heartbeat
        return max(self.heartbeat, largest - self.delay_ticks - 1)

    def _page(self, table: pa.Table, times: Ints) -> pa.Table:
        numbers = np.arange(self.arrived, self.arrived + len(times))
        columns = [pa.array(times), pa.array(numbers), *table.columns]
        page = pa.Table.from_arrays(columns, schema=stream_page_schema(self.entry.schema))
        if np.any(times[1:] < times[:-1]):
            page = page.take(pa.array(np.argsort(times, kind="stable")))
        return page

    def _times(self, table: pa.Table, now: int) -> Ints:
        position = self.entry.timestamp_column
        if position is None:
            at = max(now, self.heartbeat + 1, self.largest or BEGINNING)
            return np.full(table.num_rows, at, dtype=np.int64)
        column, name = table.column(position), self.entry.schema[position].name
        where = row_position(f"stream {self.entry.name}")
        return times_of(column, name, self.tick_microseconds, where)

    def _promised(self, count: int, promises: Promised) -> Ints:
        """What was promised before each of so many tuples."""
        promised = np.full(count, self.heartbeat, dtype=np.int64)
        for place, time in promises:
            np.maximum(promised[place:], time, out=promised[place:])
        return promised

    def _over(self, times: Ints) -> tuple[Ints, Disorder | None]:
        """The times that are over by the delay before each tuple and behind the last, and what was
        seen by then; what is over once stays over."""
        first = BEGINNING if self.largest is None else self.largest
        largest = np.maximum.accumulate(np.append(first, times))
        over = largest - self.delay_ticks - 1
        over[0] = self.promise(self.largest)
        disorder, at = self.disorder, 0
        while disorder is not None and at < len(times):
            end = min(len(times), at + disorder.tuples_left)
            over[at + 1 : end] = largest[at + 1 : end] - disorder.delay - 1
            disorder = disorder.followed(np.maximum(largest[at:end] - times[at:end], 0))
            over[end] = largest[end] - disorder.delay - 1
            at = end
        return np.maximum.accumulate(over), disorder


@dataclass(frozen=True)
class Admitted:
    """A page in order of time, the late tuples as they came, and how far the stream is now."""

    page: pa.Table | None
    late: pa.Table | None
    largest: int | None
    arrived: int
    heartbeat: int
    disorder: Disorder | None = None

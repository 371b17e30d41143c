"""Where tuples come in: times, order of arrival, lateness and heartbeats."""

import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import RelationEntry, StreamEntry
from millpond.connectors import arrow_schema
from millpond.connectors.admission import Admission, Admitted
from millpond.connectors.python_values import python_values
from millpond.errors import InputError, StateError
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.kernels.snapshots import still_open
from millpond.schema import BEGINNING, FOREVER, Schema
from millpond.storage.kept_pages import PageLog
from millpond.storage.pages import Page, concatenated
from millpond.storage.promises import Promises
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader

END = FOREVER - 1
"""The heartbeat of a source that has ended."""


def refuse_ended(name: str, queue: Queue) -> None:
    """Refuses rows for an input of which it was said that nothing will follow."""
    if queue.heartbeat >= END:
        raise StateError(
            f"{name} has ended: its source was read to its end, or finish() was called; "
            "nothing can follow"
        )


def relation_page_schema(schema: Schema) -> pa.Schema:
    """Pages of a base relation: elements."""
    return element_schema([f.type for f in arrow_schema(schema)])


@dataclass
class StreamIntake:
    """One base stream: gives each tuple its time and sequence number, and keeps late ones aside."""

    entry: StreamEntry
    queue: Queue
    tick_microseconds: int
    largest: int | None = None
    arrived: int = 0
    late_count: int = 0
    last_arrival_seconds: float = field(default_factory=time.monotonic)
    late_log: PageLog = field(default_factory=PageLog)
    """The last of the late tuples, as they came."""
    is_admitted_elsewhere: bool = False
    """Whether tuples are being admitted elsewhere: until they are here its clock stands still."""

    def __post_init__(self) -> None:
        if self.entry.timestamp_column is not None:
            self.queue.promises = Promises()

    def admit(self, table: pa.Table) -> Admitted:
        """What becomes of tuples that come now; nothing has happened yet."""
        if table.num_rows == 0:
            return Admitted(None, None, self.largest, self.arrived, self.queue.heartbeat)
        return self.admission.admit(table, self.now_ticks())

    def page_of(self, admitted: Admitted) -> Page | None:
        """The page for the queue."""
        if admitted.page is None:
            return None
        return Page.of(self.queue.store, admitted.page, is_sorted=True)

    def late_page_of(self, admitted: Admitted) -> Page | None:
        """The page of those that came too late."""
        return None if admitted.late is None else self._late_page(admitted.late)

    def _late_page(self, table: pa.Table) -> Page:
        return Page(
            self.queue.store,
            rows=table.num_rows,
            bytes_=table.nbytes,
            **self.late_place(table.num_rows),
            table=table,
        )

    def late_place(self, rows: int) -> dict[str, Any]:
        """What stands for the times of so many more late tuples: how many came before."""
        first, last = self.late_count, self.late_count + rows - 1
        return {"first": first, "last": last, "last_end": None, "is_sorted": True}

    @property
    def admission(self) -> Admission:
        """How far the stream is, by which tuples are admitted or late."""
        return Admission(
            self.entry, self.tick_microseconds, self.largest, self.arrived, self.queue.heartbeat
        )

    @property
    def promise(self) -> int:
        """Nothing at or before this time follows, by what has come and the delay."""
        return self.admission.promise(self.largest)

    def has_come(self, largest: int | None, arrived: int, heartbeat: int) -> None:
        """Tuples have come, and the stream is this far now."""
        self.last_arrival_seconds = time.monotonic()
        self.largest, self.arrived = largest, arrived
        self.queue.advance(heartbeat)

    def now_ticks(self) -> int:
        """The wall clock in ticks."""
        return time.time_ns() // 1000 // self.tick_microseconds

    @property
    def late(self) -> pa.Table:
        """The late rows that are kept, as they came."""
        return concatenated(self.late_log.kept, arrow_schema(self.entry.schema))

    def last_late(self, rows: int) -> pa.Table:
        """The last late tuples; no page is read for it that has none of them."""
        pages, wanted = self.late_log.kept, rows
        first = len(pages)
        while first and wanted > 0:
            first -= 1
            wanted -= pages[first].rows
        table = concatenated(pages[first:], arrow_schema(self.entry.schema))
        return table.slice(max(0, table.num_rows - rows))


@dataclass(frozen=True)
class Changing:
    """A change of a relation before it happens: its page for each queue, and what is true then."""

    pages: list[tuple[Queue, Page]]
    last_change: int
    changed_rows: int
    counts: Counter[Hashable] | None
    """How many of each row come or go, where that was looked at."""


@dataclass
class RelationIntake:
    """One base relation: its changes go to one queue for each time at which readers began."""

    entry: RelationEntry
    queues: list[Queue]
    reader: Reader
    """Keeps the relation's content."""
    last_change: int = BEGINNING
    changed_rows: int = 0
    """How many rows were put in or taken out so far."""
    _held: Counter[Hashable] | None = None

    @property
    def queue(self) -> Queue:
        """The queue that was there from the beginning."""
        return self.queues[0]

    def changing(self, rows: pa.Table, times: Ints, weights: Ints) -> Changing:
        """What adds (weight 1) and removes (weight -1) rows at times after the relation's promise;
        nothing has happened yet."""
        if rows.num_rows == 0:
            return Changing([], self.last_change, self.changed_rows, None)
        counts = self._checked(rows, times, weights)
        ends = np.full(rows.num_rows, FOREVER, dtype=np.int64)
        columns = [pa.array(times), pa.array(ends), pa.array(weights), *rows.columns]
        page = pa.Table.from_arrays(columns, schema=relation_page_schema(self.entry.schema))
        pages = [(queue, Page.of(queue.store, page)) for queue in self.queues]
        last = max(self.last_change, int(times.max()))
        return Changing(pages, last, self.changed_rows + rows.num_rows, counts)

    def has_changed(
        self, last_change: int, changed_rows: int, counts: Counter[Hashable] | None
    ) -> None:
        """Rows have come or gone."""
        self.last_change, self.changed_rows = last_change, changed_rows
        if self._held is not None:
            self._held.update(counts or {})

    def _checked(self, rows: pa.Table, times: Ints, weights: Ints) -> Counter[Hashable] | None:
        """How many of each row come or go, if that is looked at; what cannot be is refused."""
        earliest = int(times.min())
        if earliest <= self.queue.heartbeat:
            raise InputError(
                f"relation {self.entry.name}: a change at {earliest} comes after the promise that "
                f"nothing at or before {self.queue.heartbeat} will follow"
            )
        if self._held is None and not (weights < 0).any():
            return None
        held = self._held = self._content() if self._held is None else self._held
        changes: Counter[Hashable] = Counter()
        for row, weight, when in zip(rows_of(rows), weights.tolist(), times.tolist(), strict=True):
            changes[row] += weight
            if held[row] + changes[row] < 0:
                raise InputError(
                    f"relation {self.entry.name}: at {when} a row is removed that is not there: "
                    f"{row}"
                )
        return changes

    def _content(self) -> Counter[Hashable]:
        held: Counter[Hashable] = Counter()
        table = self.changes()
        weights = integers(table["_w"]).tolist()
        for row, weight in zip(
            rows_of(table.select(range(3, table.num_columns))), weights, strict=True
        ):
            held[row] += weight
        return held

    def content(self, until: int = END) -> pa.Table:
        """The rows there are after all changes up to a time, each once with its number."""
        changes = self.changes()
        past = changes.filter(pa.array(integers(changes["_ts"]) <= until))
        return still_open(past, past.column_names[3:], END)

    def changes(self) -> pa.Table:
        """The changes that are remembered; older ones are summed up in one."""
        return concatenated(self.queue.content(END), self.queue.schema)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as tuples."""
    columns: Sequence[list[Any]] = [python_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows

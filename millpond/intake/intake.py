"""Where tuples come in: times, order of arrival, lateness and heartbeats."""

import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import VIOLATES, RelationEntry, StreamEntry
from millpond.connectors import arrow_schema
from millpond.connectors.admission import Admission, Admitted
from millpond.connectors.python_values import python_values
from millpond.errors import InputError, StateError
from millpond.intake.orderings import Ordering, Peak, Values, looked_at
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import integers, integers_of, mask_of
from millpond.kernels.groups import Bools, Ints
from millpond.kernels.snapshots import still_open
from millpond.schema import BEGINNING, FOREVER, Schema
from millpond.storage.bounds import Bounds
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


@dataclass(frozen=True)
class Violations:
    """What was seen when tuples were looked at: for each constraint what has risen, how many
    violations there are by then, and how far a tuple came behind; and the tuples that broke one."""

    seen: dict[str, tuple[tuple[Peak, ...], int, int]]
    rows: pa.Table | None
    broken: tuple[str, ...]
    """The constraints that were broken."""


class Looking:
    """Looks at tuples by the constraints of their stream, while they are admitted."""

    def __init__(self, orderings: list[Ordering], arrived: int) -> None:
        self._orderings, self._arrived = orderings, arrived
        self.found: Violations | None = None
        """What was seen, once tuples were looked at."""

    def broken(self, table: pa.Table, times: Ints) -> Bools:
        """Which tuples break a constraint."""
        values = [_values(table.column(each.constraint.column)) for each in self._orderings]
        looked = looked_at(self._orderings, values, times, self._arrived)
        counts = np.bincount(looked.broken[looked.broken >= 0], minlength=len(self._orderings))
        names = [each.constraint.name for each in self._orderings]
        self.found = Violations(
            {
                each.constraint.name: (risen, each.violations + int(count), measured)
                for each, risen, count, measured in zip(
                    self._orderings, looked.risen, counts, looked.measured, strict=True
                )
            },
            _violating(table, looked.broken, names),
            tuple(name for name, count in zip(names, counts, strict=True) if count),
        )
        return np.asarray(looked.broken >= 0)


def _values(column: pa.ChunkedArray) -> Values:
    numbers = column.cast(pa.int32()) if column.type == pa.date32() else column
    return Values(integers_of(numbers)[:-1], mask_of(column)[:-1])


def _violating(table: pa.Table, broken: Ints, names: list[str]) -> pa.Table | None:
    at = np.flatnonzero(broken >= 0)
    if not len(at):
        return None
    told = pa.array([names[number] for number in broken[at].tolist()], pa.string())
    columns = [*table.take(pa.array(at)).columns, told]
    schema = table.schema.append(pa.field(VIOLATES, pa.string()))
    return pa.Table.from_arrays(columns, schema=schema)


def violating_log_name(stream: str) -> str:
    """What the log of a store calls the tuples of a stream that broke a constraint."""
    return f"{stream}#{VIOLATES}"


def violating_schema(schema: Schema) -> pa.Schema:
    """The columns of tuples that broke a constraint."""
    return arrow_schema(schema).append(pa.field(VIOLATES, pa.string()))


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
    orderings: dict[str, Ordering] = field(default_factory=dict)
    """What is remembered of it for its constraints, by their names."""
    violating_count: int = 0
    violating_log: PageLog = field(default_factory=PageLog)
    """The last of the tuples that broke a constraint, each with its name."""
    is_admitted_elsewhere: bool = False
    """Whether tuples are being admitted elsewhere: until they are here its clock stands still."""

    def __post_init__(self) -> None:
        if self.entry.timestamp_column is not None:
            self.queue.promises = Promises()
        self.use_constraints()

    def use_constraints(self) -> None:
        """Its entry may have other constraints; of those that stay it is remembered what was."""
        known, self.orderings = self.orderings, {}
        self.queue.bounds.clear()
        for each in self.entry.constraints:
            before = known.get(each.name)
            is_same = before is not None and before.constraint == each
            self.orderings[each.name] = before if before and is_same else Ordering(each)
        self._bound()

    def looking(self) -> Looking | None:
        """Who looks at tuples by its constraints, if it has any."""
        return Looking(list(self.orderings.values()), self.arrived) if self.orderings else None

    def admit(self, table: pa.Table, looking: Looking | None = None) -> Admitted:
        """What becomes of tuples that come now; nothing has happened yet."""
        if table.num_rows == 0:
            return Admitted(None, None, self.largest, self.arrived, self.queue.heartbeat)
        breaks = None if looking is None else looking.broken
        return self.admission.admit(table, self.now_ticks(), breaks)

    def seen(self, violations: Violations | None, admitted: Admitted) -> dict[str, Any]:
        """What is noted of tuples that were looked at: of what has risen no more than those to
        come can break."""
        if violations is None:
            return {}
        heartbeat = max(self.queue.heartbeat, admitted.heartbeat)
        noted = {}
        for name, (risen, *rest) in violations.seen.items():
            ordering = self.orderings[name]
            least = admitted.arrived if ordering.constraint.is_of_rows else heartbeat + 1
            noted[name] = (ordering.in_reach(risen, least), *rest)
        return noted

    def has_been_looked_at(self, seen: Mapping[str, Sequence[Any]]) -> None:
        """Tuples have come that were looked at: what has risen, and what was seen of each
        constraint."""
        for name, (risen, violations, measured) in seen.items():
            ordering = self.orderings[name]
            least = self._least_place(ordering)
            self.orderings[name] = ordering.following(risen, violations, measured, least)
        self._bound()

    def _least_place(self, ordering: Ordering) -> int:
        """No tuple that is to come has a smaller place."""
        return self.arrived if ordering.constraint.is_of_rows else self.queue.heartbeat + 1

    def _bound(self) -> None:
        """What tuples that are to come are not smaller than holds after the largest time so far."""
        for ordering in self.orderings.values():
            bound = ordering.bound(self._least_place(ordering))
            if bound is not None and self.largest is not None:
                history = self.queue.bounds.setdefault(ordering.constraint.column, Bounds())
                history.note(self.largest, bound)

    def violating_page_of(self, violations: Violations | None) -> Page | None:
        """The page of those that broke a constraint."""
        if violations is None or violations.rows is None:
            return None
        place = self._place_after(self.violating_count, violations.rows.num_rows)
        return self._aside_page(violations.rows, place)

    def violating(self, last_rows: int | None = None) -> pa.Table:
        """The tuples that broke a constraint, each with the name of that: the last, or all that
        are kept."""
        schema = violating_schema(self.entry.schema)
        if last_rows is None:
            return concatenated(self.violating_log.kept, schema)
        return _last_rows(self.violating_log.kept, schema, last_rows)

    def page_of(self, admitted: Admitted) -> Page | None:
        """The page for the queue."""
        if admitted.page is None:
            return None
        return Page.of(self.queue.store, admitted.page, is_sorted=True)

    def late_page_of(self, admitted: Admitted) -> Page | None:
        """The page of those that came too late."""
        if admitted.late is None:
            return None
        return self._aside_page(admitted.late, self.late_place(admitted.late.num_rows))

    def _aside_page(self, table: pa.Table, place: dict[str, Any]) -> Page:
        rows, size = table.num_rows, table.nbytes
        return Page(self.queue.store, rows=rows, bytes_=size, **place, table=table)

    def late_place(self, rows: int) -> dict[str, Any]:
        """What stands for the times of so many more late tuples: how many came before."""
        return self._place_after(self.late_count, rows)

    def _place_after(self, count: int, rows: int) -> dict[str, Any]:
        return {"first": count, "last": count + rows - 1, "last_end": None, "is_sorted": True}

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
        return _last_rows(self.late_log.kept, arrow_schema(self.entry.schema), rows)


def _last_rows(pages: Sequence[Page], schema: pa.Schema, rows: int) -> pa.Table:
    """The last rows of some pages, of which no other is read."""
    first, wanted = len(pages), rows
    while first and wanted > 0:
        first -= 1
        wanted -= pages[first].rows
    table = concatenated(pages[first:], schema)
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

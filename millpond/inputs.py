"""All inputs of an engine: streams, relations, their sources, and the promises they make.

Every change ends in ``arrived(queue)``, by which the engine tells its running operators.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import Catalog, RelationEntry, StreamEntry
from millpond.connectors import Progress, Source, to_arrow
from millpond.connectors.changes import WEIGHTS, listed_changes
from millpond.connectors.times import as_ticks
from millpond.errors import StateError
from millpond.intake import (
    END,
    RelationIntake,
    StreamIntake,
    refuse_ended,
    relation_page_schema,
    stream_page_schema,
)
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.planning.physical import Graph
from millpond.reading import ReadLimits, is_read, refuse_endless_content
from millpond.schema import BEGINNING
from millpond.settings import Settings
from millpond.storage.pages import PageStore
from millpond.storage.queues import Queue, Reader

Report = Callable[[str, Progress], None]
"""Called while sources are read: the name of the input and how far it is."""


class Inputs:
    """The base queues and what fills them; names are in lower case."""

    def __init__(
        self, catalog: Catalog, store: PageStore, arrived: Callable[[Queue], None]
    ) -> None:
        self.queues: dict[str, Queue] = {}
        """All queues of the engine: those of inputs, and those that operators add."""
        self.streams: dict[str, StreamIntake] = {}
        self.relations: dict[str, RelationIntake] = {}
        self.sources: dict[str, tuple[Source, Iterator[pa.Table]]] = {}
        self.since: dict[int, dict[str, int]] = {}
        """For each epoch the times after which its queries read the streams."""
        self._catalog = catalog
        self._store = store
        self._tell = arrived
        self._epoch = 0
        self._moved = False

    # -- which there are -------------------------------------------------------------------

    def add_stream(self, entry: StreamEntry, source: Source) -> None:
        """A new stream."""
        key = entry.name.lower()
        schema = stream_page_schema(entry.schema)
        queue = Queue(f"stream:{key}", schema, self._store, is_stream=True)
        self.queues[queue.name] = queue
        self.streams[key] = StreamIntake(entry, queue, self._catalog.tick_microseconds)
        if entry.source.name != "push":
            self.sources[key] = (source, source.pages())

    def add_relation(self, entry: RelationEntry, source: Source) -> None:
        """A new relation; without timestamps its content is there from the beginning."""
        key = entry.name.lower()
        queue = self._relation_queue(entry, "")
        queue.readers.append(Reader(BEGINNING - 1, lambda page: page.last, needs_content=True))
        intake = self.relations[key] = RelationIntake(entry, [queue])
        if entry.has_changes and entry.source.name != "push":
            self.sources[key] = (source, source.pages())
        elif entry.source.name != "push":
            refuse_endless_content(entry, source)
            for page in source.pages():
                self.change(intake, page, self.change_time(intake), 1)

    def _relation_queue(self, entry: RelationEntry, suffix: str) -> Queue:
        name = f"relation:{entry.name.lower()}{suffix}"
        queue = Queue(name, relation_page_schema(entry.schema), self._store, is_stream=False)
        self.queues[name] = queue
        return queue

    def drop(self, key: str) -> None:
        """Forgets a stream or relation, if there is one of this name."""
        self.sources.pop(key, None)
        dropped = [self.streams.pop(key).queue] if key in self.streams else []
        dropped += self.relations.pop(key).queues if key in self.relations else []
        for queue in dropped:
            self.queues.pop(queue.name).close()

    def relation(self, name: str) -> RelationIntake:
        """The relation of a name."""
        if name.lower() in self.relations:
            return self.relations[name.lower()]
        known = ", ".join(sorted([*self.streams, *self.relations])) or "none"
        raise StateError(f'no stream or relation "{name}"; known: {known}')

    def late(self, stream: str) -> pa.Table:
        """The tuples of a stream that came too late, as they came."""
        if stream.lower() not in self.streams:
            raise StateError(f'no stream "{stream}"; known: {", ".join(sorted(self.streams))}')
        return self.streams[stream.lower()].late

    # -- epochs ----------------------------------------------------------------------------

    @property
    def next_epoch(self) -> int:
        """The epoch a query registered now would belong to."""
        return self._epoch + self._moved

    def epoch(self) -> int:
        """The epoch of a query that is registered now: it sees what comes from now on."""
        if self._moved:
            self._moved = False
            self._epoch += 1
            self.since[self._epoch] = {
                intake.queue.name: intake.queue.heartbeat for intake in self.streams.values()
            }
            for intake in self.relations.values():
                intake.queues.append(self._from_now_on(intake))
        return self._epoch

    def _from_now_on(self, intake: RelationIntake) -> Queue:
        """A queue of a relation in which what has happened so far holds from the beginning."""
        queue = self._relation_queue(intake.entry, f"@{self._epoch}")
        promised, changes = intake.queue.heartbeat, intake.changes()
        queue.append(_from_the_beginning(intake.content(promised)))
        queue.append(changes.filter(pa.array(integers(changes["_ts"]) > promised)))
        queue.advance(promised)
        return queue

    def forget_epochs(self, in_use: set[int]) -> None:
        """Closes the relations' queues of past epochs to which no operator belongs any more."""
        over = self.since.keys() - in_use - {self._epoch}
        for epoch in over:
            del self.since[epoch]
        names = tuple(f"@{epoch}" for epoch in over)
        for intake in self.relations.values() if names else ():
            for queue in [q for q in intake.queues if q.name.endswith(names)]:
                intake.queues.remove(queue)
                self.queues.pop(queue.name).close()

    # -- tuples and changes ----------------------------------------------------------------

    def push(self, name: str, rows: Any) -> None:
        """Adds tuples to a stream, or rows to a relation at the current time."""
        key = name.lower()
        if key in self.streams:
            intake = self.streams[key]
            refuse_ended(intake.entry.name, intake.queue)
            self._accept(intake, to_arrow(rows, intake.entry.schema, intake.entry.name))
            return
        relation = self.relation(name)
        refuse_ended(relation.entry.name, relation.queue)
        table = to_arrow(rows, relation.entry.schema, relation.entry.name)
        self.change(relation, table, self.change_time(relation), 1)

    def _accept(self, intake: StreamIntake, table: pa.Table) -> None:
        intake.accept(table)
        self._arrived([intake.queue])

    def push_changes(self, name: str, changes: Iterable[tuple[Any, str, Any]]) -> None:
        """Adds ``(ts, '+' or '-', row)`` to a relation; ts None means the beginning."""
        intake = self.relation(name)
        listed = listed_changes(changes, intake.entry.name)
        times = [
            BEGINNING if ts is None else self._ticks(ts, f"{name}, row {number}")
            for number, (ts, _, _) in enumerate(listed, start=1)
        ]
        table = to_arrow([row for _, _, row in listed], intake.entry.schema, intake.entry.name)
        weights = np.array([WEIGHTS[op] for _, op, _ in listed], dtype=np.int64)
        self._apply(intake, table, np.array(times, dtype=np.int64), weights)

    def _apply(self, intake: RelationIntake, rows: pa.Table, times: Ints, weights: Ints) -> None:
        if rows.num_rows == 0:
            return
        intake.change(rows, times, weights)
        for queue in intake.queues:
            queue.advance(int(times.max()) - 1)
        self._arrived(intake.queues)

    def change(self, intake: RelationIntake, rows: pa.Table, at: int, weight: int) -> None:
        """Adds (weight 1) or removes (-1) rows of a relation at a time."""
        times, weights = np.full(rows.num_rows, at), np.full(rows.num_rows, weight)
        intake.change(rows, times.astype(np.int64), weights.astype(np.int64))
        self._arrived(intake.queues, moved=at > BEGINNING)  # what is there from the start, all see

    def change_time(self, intake: RelationIntake) -> int:
        """The current time: the largest any input has reached, and after every promise."""
        reached = [i.largest for i in self.streams.values() if i.largest is not None]
        promised = [i.queue.heartbeat for i in self.streams.values()]
        promised += [queue.heartbeat for queue in intake.queues]
        after = max(promised, default=BEGINNING - 1) + 1
        now = max([*reached, after, intake.last_change])
        return max(now, 0) if now > BEGINNING else BEGINNING

    def _arrived(self, queues: Iterable[Queue], moved: bool = True) -> None:
        self._moved = self._moved or moved
        for queue in queues:
            self._tell(queue)

    # -- sources ---------------------------------------------------------------------------

    def sources_of(self, graph: Graph) -> list[str]:
        """The sources that are not at their end and that an operator reads."""
        return [name for name in self.sources if is_read(graph, self._queues_of(name))]

    def limit(self, limits: ReadLimits) -> None:
        """From now on the sources end at these limits."""
        if limits == ReadLimits():
            return
        for name, (source, pages) in self.sources.items():
            self.sources[name] = (source, limits.apply(source, pages))

    def _queues_of(self, name: str) -> list[str]:
        if name in self.streams:
            return [self.streams[name].queue.name]
        return [queue.name for queue in self.relations[name].queues]

    def read(self, report: Report | None, names: Iterable[str]) -> None:
        """One page of the source furthest behind; at its end the promise that nothing follows."""
        name = min(names, key=self._reached)
        source, pages = self.sources[name]
        page = next(pages, None)
        if report is not None:
            report(self._catalog.entries[name].name, source.progress())
        if page is None:
            del self.sources[name]
            self._advance(name, END)
        elif name in self.streams:
            self._accept(self.streams[name], page)
        else:
            times = np.asarray(page["ts"]).astype(np.int64)
            weights = np.asarray(page["weight"]).astype(np.int64)
            rows = page.select(page.column_names[2:])
            self._apply(self.relations[name], rows, times, weights)

    def _reached(self, name: str) -> int:
        return (self.streams.get(name) or self.relations[name]).queue.heartbeat

    # -- heartbeats ------------------------------------------------------------------------

    def advance(self, name: str, timestamp: Any) -> None:
        """A heartbeat: promises that nothing at or before the time will follow."""
        self._advance(name, self._ticks(timestamp, name))

    def _advance(self, name: str, ticks: int) -> None:
        key = name.lower()
        is_stream = key in self.streams
        queues = [self.streams[key].queue] if is_stream else self.relation(name).queues
        for queue in queues:
            queue.advance(ticks)
        self._arrived(queues)

    def end(self) -> None:
        """Promises that nothing will follow, except in sources that nobody has read."""
        for name in [*self.streams, *self.relations]:
            if name not in self.sources:
                self._advance(name, END)

    def _ticks(self, time: Any, place: str) -> int:
        return as_ticks(time, self._catalog.tick_microseconds, place)

    def promise(self, settings: Settings) -> None:
        """Heartbeats on demand: from the wall clock, and from the streams for quiet relations."""
        for intake in self.streams.values():
            if intake.entry.timestamp_column is None and intake.queue.heartbeat < END:
                self._raise([intake.queue], intake.now_ticks() - 1)
        if settings.clock == "wall":
            self._time_out(settings.heartbeat_timeout_seconds)
        for relation in self.relations.values():
            if not relation.entry.has_changes:
                self._raise(relation.queues, max(self._furthest, relation.last_change))
            relation.queue.readers[0].cursor = relation.queue.heartbeat

    @property
    def _furthest(self) -> int:
        return max((i.queue.heartbeat for i in self.streams.values()), default=BEGINNING)

    def _time_out(self, seconds: float) -> None:
        """A stream that stays quiet too long follows the others."""
        reached, now = self._furthest, time.monotonic()
        for intake in self.streams.values():
            if now - intake.last_arrival_seconds > seconds:
                self._raise([intake.queue], reached)

    def _raise(self, queues: list[Queue], heartbeat: int) -> None:
        for queue in queues:
            if heartbeat > queue.heartbeat:
                queue.advance(heartbeat)
                self._tell(queue)


def _from_the_beginning(content: pa.Table) -> pa.Table:
    """The same rows, there from the beginning."""
    times = pa.array(np.full(content.num_rows, BEGINNING))
    return content.set_column(content.schema.get_field_index("_ts"), "_ts", times)

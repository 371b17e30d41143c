"""All inputs of an engine: streams, relations, their sources, and the promises they make.

Every change ends in ``arrived(queue)``, by which the engine tells its running operators.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import Catalog, RelationEntry, StreamEntry
from millpond.connectors import Progress, Source, arrow_schema, to_arrow
from millpond.connectors.admission import Admission, stream_page_schema
from millpond.connectors.changes import WEIGHTS, listed_changes
from millpond.connectors.sources import OpenPages, is_live
from millpond.connectors.times import as_ticks
from millpond.errors import StateError
from millpond.identities import epoch_of, input_of, input_queue, relation_queue, stream_queue
from millpond.intake.intake import (
    END,
    RelationIntake,
    StreamIntake,
    refuse_ended,
    relation_page_schema,
)
from millpond.intake.reading import is_read, refuse_endless_content
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.planning.nodes import ONE_ROW
from millpond.planning.physical import Graph
from millpond.schema import BEGINNING, FOREVER
from millpond.settings import Settings
from millpond.storage.journal import Journal
from millpond.storage.kept_pages import Keeper
from millpond.storage.pages import Page
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader
from millpond.storage.store import Store


def is_one_row(queue: str) -> bool:
    """Whether a queue is of the relation of one row; those are made anew in every run."""
    return input_of(queue) == ONE_ROW.name.lower()


MOST_KEYS = 10_000
"""So many keys of pushes are remembered."""

ROW_BYTES = 64
"""A row of a text file has about so many bytes, as long as none was read."""

Report = Callable[[str, Progress], None]
"""Called while sources are read: the name of the input and how far it is."""


@dataclass(eq=False)
class SourceReading:
    """One page of a source about to be read, and what has come of it."""

    name: str
    source: Source
    pages: OpenPages
    taken: int
    """So many rows were taken of the source."""
    is_limited: bool
    """Whether not all of a page may be taken."""
    admission: Admission | None = None
    """How far the stream was when a page was read elsewhere, where its rows were admitted."""
    page: pa.Table | None = None
    """The page; None at the source's end."""
    line: dict[str, Any] | None = None
    """What is known of a page that was read elsewhere."""
    error: BaseException | None = None
    is_over: bool = False
    """Whether it was read, with or without success."""

    @property
    def can_be_elsewhere(self) -> bool:
        """Whether it reads files that every host sees, and a page is taken whole."""
        return getattr(self.source, "reads_files", False) and not self.is_limited

    def read(self) -> None:
        """Reads the page here."""
        self.page = self.pages.behind(self.taken)

    @property
    def rows(self) -> int:
        """How many rows were read; none at the end."""
        if self.line is not None:
            return max(0, int(self.line["taken"]) - self.taken)
        return 0 if self.page is None else self.page.num_rows

    def cut(self, rows: int) -> SourceReading:
        """Cuts the first rows of the page off: a reading of those."""
        if self.page is None:
            raise StateError("internal: a page is cut that is not here")
        first, self.page = self.page.slice(0, rows), self.page.slice(rows)
        return replace(self, page=first)

    @property
    def rows_left(self) -> float:
        """About how many rows are to come, judged by those taken; 0 if that cannot be told."""
        progress = self.source.progress()
        if progress.total is None:
            return 0
        if not progress.done:
            return progress.total / (1 if progress.unit == "rows" else ROW_BYTES)
        return self.taken * (progress.total - progress.done) / progress.done


@dataclass(frozen=True)
class Arrival:
    """Something that is noted and about to come; nothing can go wrong any more when it does."""

    pages: list[Page]
    come: Callable[[], None]

    def give_up(self) -> None:
        """Gives the arrival up: it does not come after all."""
        for page in self.pages:
            page.free()


Coming = list[Arrival]
"""What comes together, in order."""


class Inputs:
    """The base queues and what fills them; names are in lower case."""

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        journal: Journal,
        arrived: Callable[[Queue], None],
        keeper: Keeper,
    ) -> None:
        self.queues: dict[str, Queue] = {}
        """All queues of the engine: those of inputs, and those that operators add."""
        self.streams: dict[str, StreamIntake] = {}
        self.relations: dict[str, RelationIntake] = {}
        self.sources: dict[str, tuple[Source, OpenPages]] = {}
        self.since: dict[int, dict[str, int]] = {}
        """For each epoch the times after which its queries read the streams, and see relations
        change."""
        self._catalog = catalog
        self._store = store
        self._journal = journal
        self._tell = arrived
        self._keeper = keeper
        self.read_rows: dict[str, int] = {}
        """How many rows of each source were taken; -1 at its end."""
        self.taken_before: dict[str, int] = {}
        """How many rows of each source earlier runs have taken, until a run has counted them."""
        self.held: set[str] = set()
        """The sources that are held back, as there is no room for what they have."""
        self.keys: dict[tuple[str, str], None] = {}
        """The last pushes that had a key: the name of the input and the key, oldest first."""
        self._epoch = 0
        self._moved = False

    # -- which there are -------------------------------------------------------------------

    def add_stream(self, entry: StreamEntry, source: Source | None) -> None:
        """A new stream; without a source yet, if it is one of an earlier run."""
        key = entry.name.lower()
        schema = stream_page_schema(entry.schema)
        queue = Queue(stream_queue(key), schema, self._store, is_stream=True)
        self.queues[queue.name] = queue
        intake = StreamIntake(entry, queue, self._catalog.tick_microseconds)
        intake.late_log.books = self._keeper.books
        self.streams[key] = intake
        if entry.source.name != "push" and source is not None:
            self.sources[key] = (source, OpenPages(source.pages()))

    def add_relation(self, entry: RelationEntry, source: Source | None) -> None:
        """A new relation; without timestamps its content is there from the beginning.

        Of an earlier run it has no source yet, and its content follows from the log.
        """
        key = entry.name.lower()
        queue = self._relation_queue(entry)
        reader = queue.subscribe(Reader(BEGINNING - 1, needs_content=True, works=False))
        intake = self.relations[key] = RelationIntake(entry, [queue], reader)
        if source is None or entry.source.name == "push":
            return
        if entry.has_changes:
            self.sources[key] = (source, OpenPages(source.pages()))
        else:
            refuse_endless_content(entry, source)
            for page in source.pages():
                with self.ahead(flushes=False) as coming:
                    self.change(intake, [(page, 1)], self.change_time(intake), coming)

    def _relation_queue(self, entry: RelationEntry, epoch: int = 0) -> Queue:
        name = relation_queue(entry.name, epoch)
        queue = Queue(name, relation_page_schema(entry.schema), self._store, is_stream=False)
        self.queues[name] = queue
        return queue

    def drop(self, key: str) -> list[str]:
        """Forgets a stream or relation, if there is one of this name; its queues."""
        self.sources.pop(key, None)
        self.held.discard(key)
        self.read_rows.pop(key, None)
        self.keys = {pair: None for pair in self.keys if pair[0] != key}
        if key in self.streams:
            late = self.streams[key].late_log
            late.pass_pages(len(late.kept))
        dropped = [self.streams.pop(key).queue] if key in self.streams else []
        dropped += self.relations.pop(key).queues if key in self.relations else []
        for queue in dropped:
            self.queues.pop(queue.name).close()
        return [queue.name for queue in dropped]

    def relation(self, name: str) -> RelationIntake:
        """The relation of a name."""
        if name.lower() in self.relations:
            return self.relations[name.lower()]
        known = ", ".join(sorted([*self.streams, *self.relations])) or "none"
        raise StateError(f'no stream or relation "{name}"; known: {known}')

    def late(self, stream: str, last_rows: int | None = None) -> pa.Table:
        """The tuples of a stream that came too late, as they came: the last, or all that are
        kept."""
        if stream.lower() not in self.streams:
            raise StateError(f'no stream "{stream}"; known: {", ".join(sorted(self.streams))}')
        intake = self.streams[stream.lower()]
        return intake.late if last_rows is None else intake.last_late(last_rows)

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
            self.since[self._epoch] = self.since_of(self._epoch)
        return self._epoch

    def epoch_after(self, since: dict[str, int]) -> int:
        """An epoch of its own for a query that reads streams, by their queues, after times."""
        self.moved()  # who registers next sees what comes from now on
        self._epoch += 1
        self.since[self._epoch] = since
        return self._epoch

    @contextmanager
    def holding(self, since: dict[str, int]) -> Iterator[None]:
        """Keeps queues from freeing what came after these times, meanwhile."""
        held = [
            (queue, queue.subscribe(Reader(time, works=False)))
            for queue, time in ((self.queues[name], time) for name, time in since.items())
        ]
        try:
            yield
        finally:
            for queue, reader in held:
                queue.unsubscribe(reader)

    def epoch_from(self, time: int) -> int:
        """An epoch of its own for a query that sees the streams from a time on."""
        return self.epoch_after({queue.name: time - 1 for queue in self._stream_queues()})

    def _stream_queues(self) -> list[Queue]:
        return [intake.queue for intake in self.streams.values()]

    def since_of(self, epoch: int) -> dict[str, int]:
        """After which times the queries of an epoch read the streams, of one to come too."""
        if epoch == 0 or epoch in self.since:
            return self.since.get(epoch, {})
        return {queue.name: queue.heartbeat for queue in self._stream_queues()}

    def provide(self, queues: Iterable[str]) -> None:
        """Has queues of relations that operators of the present epoch read."""
        for name in queues:
            found = input_queue(name)
            if is_one_row(name):
                if name not in self.queues or not self.queues[name].rows:
                    self._add_one_row(name)  # those that have read it before need it no more
            elif found is not None and found.is_copy and name not in self.queues:
                intake = self.relations[found.name]
                intake.queues.append(self._from_now_on(intake, found.epoch))

    def _add_one_row(self, name: str) -> None:
        schema = relation_page_schema(ONE_ROW.schema)
        queue = self.queues[name] = Queue(name, schema, self._store, is_stream=False)
        row = {"_ts": [BEGINNING], "_te": [FOREVER], "_w": [1], "c0": [1]}
        queue.append(pa.table(row, schema=schema))
        queue.advance(END)

    def moved(self) -> None:
        """Something has come or was read: who registers from now on belongs to another epoch."""
        self._note_moved()
        self._moved = True

    def _note_moved(self) -> None:
        if not self._moved:
            self._journal.note("moved")

    def epochs(self) -> dict[str, Any]:
        """The epochs, as plain data."""
        return {
            "epoch": self._epoch,
            "moved": self._moved,
            "since": {str(epoch): times for epoch, times in self.since.items()},
            "queues": {
                key: [queue.name for queue in intake.queues[1:]]
                for key, intake in self.relations.items()
            },
        }

    def restore_epochs(
        self,
        epoch: int,
        moved: bool,
        since: dict[str, dict[str, int]],
        queues: dict[str, list[str]],
    ) -> None:
        """Takes what ``epochs`` gave."""
        self._epoch, self._moved = epoch, moved
        self.since.update({int(number): times for number, times in since.items()})
        for key, names in queues.items():
            intake = self.relations[key]
            copies = [self._relation_queue(intake.entry, epoch_of(name)) for name in names]
            intake.queues += copies

    def _from_now_on(self, intake: RelationIntake, epoch: int) -> Queue:
        """A queue of a relation in which what has happened so far holds from the beginning."""
        if self._journal.is_replaying:  # its pages and its promise follow from the log
            return self._copy(intake, epoch)
        promised, changes = intake.queue.heartbeat, intake.changes()
        past = _from_the_beginning(intake.content(promised))
        coming = changes.filter(pa.array(integers(changes["_ts"]) > promised))
        queue = self._copy(intake, epoch)  # from here on nothing can go wrong
        for page in (queue.append(past), queue.append(coming)):
            if page is not None and self._journal.is_durable:
                self._journal.note("page", queue=queue.name, page=page)
        self._beat(queue, promised)
        return queue

    def _copy(self, intake: RelationIntake, epoch: int) -> Queue:
        queue = self._relation_queue(intake.entry, epoch)
        self.since.setdefault(epoch, {})[queue.name] = intake.queue.heartbeat
        return queue

    def _note_page(self, queue: Queue, page: Page) -> None:
        if self._journal.is_durable:
            self._journal.note("page", queue=queue.name, page=page.reference())

    def forget_epochs(self, in_use: set[int]) -> list[str]:
        """Closes the relations' queues of past epochs to which no operator belongs any more."""
        over = self.since.keys() - in_use - {self._epoch}
        for epoch in over:
            del self.since[epoch]
        closed = []
        for intake in self.relations.values() if over else ():
            for queue in [q for q in intake.queues[1:] if epoch_of(q.name) in over]:
                intake.queues.remove(queue)
                self.queues.pop(queue.name).close()
                closed.append(queue.name)
        rows = [relation_queue(ONE_ROW.name, epoch) for epoch in over]
        for name in rows:
            if name in self.queues:
                self.queues.pop(name).close()
                closed.append(name)
        return closed

    def forget_copy(self, name: str) -> None:
        """Nobody reads a relation's queue of a past epoch any more."""
        queue = self.queues.pop(name)
        self.relations[input_of(name)].queues.remove(queue)
        queue.close()

    # -- tuples and changes ----------------------------------------------------------------

    @contextmanager
    def ahead(self, flushes: bool = True) -> Iterator[Coming]:
        """What is put into the list inside is noted there, and in the log at the end; then it
        comes. Or nothing does: neither notes nor files stay.

        Without ``flushes`` the notes wait for those that follow.
        """
        coming: Coming = []
        before = self._journal.length
        try:
            yield coming
            if flushes:
                self._journal.flush()
        except BaseException:
            self._journal.take_back(before)
            for each in coming:
                each.give_up()
            raise
        for each in coming:
            each.come()

    def push(self, name: str, rows: Any, coming: Coming) -> None:
        """Adds tuples to a stream, or rows to a relation at the current time."""
        key = name.lower()
        if key in self.streams:
            intake = self.streams[key]
            refuse_ended(intake.entry.name, intake.queue)
            table = to_arrow(rows, intake.entry.schema, intake.entry.name)
            self._accept(key, intake, table, coming)
            return
        relation = self.relation(name)
        refuse_ended(relation.entry.name, relation.queue)
        table = to_arrow(rows, relation.entry.schema, relation.entry.name)
        self.change(relation, [(table, 1)], self.change_time(relation), coming)

    def is_new(self, name: str, key: str) -> bool:
        """Whether nothing was pushed to an input with a key, as far as that is remembered."""
        return (name.lower(), key) not in self.keys and ("", key) not in self.keys

    def remember(self, name: str, key: str, coming: Coming) -> None:
        """Something is pushed with a key: in the log that is together with the rows."""
        pair = name.lower(), key
        self._journal.note("pushed", keys=[list(pair)])
        coming.append(Arrival([], lambda: self.restore_keys([pair])))

    def restore_keys(self, keys: Iterable[tuple[str, str]]) -> None:
        """Takes keys; the oldest are forgotten when there are too many."""
        self.keys.update(dict.fromkeys(keys))
        for key in list(islice(self.keys, max(0, len(self.keys) - MOST_KEYS))):
            del self.keys[key]

    def _accept(self, key: str, intake: StreamIntake, table: pa.Table, coming: Coming) -> None:
        admitted = intake.admit(table)
        page, late = intake.page_of(admitted), intake.late_page_of(admitted)

        def come() -> None:
            intake.take(admitted, page, late)
            self._tidy_late(key, intake)
            self._arrived([intake.queue])

        coming.append(Arrival([each for each in (page, late) if each is not None], come))
        if page is not None:
            self._note_page(intake.queue, page)
        self._journal.note(**intake.noted_after(key, admitted), late=self._referring(late))
        self._note_moved()

    def _referring(self, page: Page | None) -> dict[str, Any] | None:
        is_told = page is not None and self._journal.is_durable
        return page.reference() if page is not None and is_told else None

    def _tidy_late(self, key: str, intake: StreamIntake) -> None:
        self._keeper.tidy(intake.late_log, late=key)

    def push_changes(
        self, name: str, changes: Iterable[tuple[Any, str, Any]], coming: Coming
    ) -> None:
        """Adds ``(ts, '+' or '-', row)`` to a relation; ts None means the beginning."""
        intake = self.relation(name)
        listed = listed_changes(changes, intake.entry.name)
        times = [
            BEGINNING if ts is None else self._ticks(ts, f"{name}, row {number}")
            for number, (ts, _, _) in enumerate(listed, start=1)
        ]
        table = to_arrow([row for _, _, row in listed], intake.entry.schema, intake.entry.name)
        weights = np.array([WEIGHTS[op] for _, op, _ in listed], dtype=np.int64)
        self._apply(intake, table, np.array(times, dtype=np.int64), weights, coming)

    def _apply(
        self, intake: RelationIntake, rows: pa.Table, times: Ints, weights: Ints, coming: Coming
    ) -> None:
        if rows.num_rows:
            self._change(intake, rows, times, weights, True, coming)
            self._promise(intake.queues, int(times.max()) - 1, coming)

    def _change(
        self,
        intake: RelationIntake,
        rows: pa.Table,
        times: Ints,
        weights: Ints,
        moved: bool,
        coming: Coming,
    ) -> None:
        change = intake.changing(rows, times, weights)

        def come() -> None:
            intake.take(change)
            self._arrived(intake.queues, moved)

        coming.append(Arrival([page for _, page in change.pages], come))
        for queue, page in change.pages:
            self._note_page(queue, page)
        self._journal.note(**intake.noted_after(intake.entry.name.lower(), change))
        if moved:
            self._note_moved()

    def _promise(self, queues: list[Queue], heartbeat: int, coming: Coming) -> None:
        """A promise for some queues is about to come."""
        later = [queue for queue in queues if heartbeat > queue.heartbeat]
        for queue in later:
            self._journal.note("heartbeat", queue=queue.name, time=heartbeat)

        def come() -> None:
            for queue in later:
                queue.advance(heartbeat)
            self._arrived(queues)

        coming.append(Arrival([], come))
        self._note_moved()

    def _beat(self, queue: Queue, heartbeat: int) -> None:
        if heartbeat > queue.heartbeat:
            queue.advance(heartbeat)
            self._journal.note("heartbeat", queue=queue.name, time=heartbeat)

    def change(
        self, intake: RelationIntake, parts: list[tuple[pa.Table, int]], at: int, coming: Coming
    ) -> None:
        """Adds (weight 1) or removes (-1) rows of a relation at a time."""
        schema = arrow_schema(intake.entry.schema)
        tables = [pa.Table.from_arrays(rows.columns, schema=schema) for rows, _ in parts]
        weights = [np.full(rows.num_rows, weight, dtype=np.int64) for rows, weight in parts]
        rows = pa.concat_tables(tables)
        times = np.full(rows.num_rows, at, dtype=np.int64)
        moved = at > BEGINNING  # what is there from the start, all see
        self._change(intake, rows, times, np.concatenate(weights), moved, coming)

    def change_time(self, intake: RelationIntake) -> int:
        """The current time: the largest any input has reached, and after every promise."""
        reached = [i.largest for i in self.streams.values() if i.largest is not None]
        promised = [i.queue.heartbeat for i in self.streams.values()]
        promised += [queue.heartbeat for queue in intake.queues]
        after = max(promised, default=BEGINNING - 1) + 1
        now = max([*reached, after, intake.last_change])
        return max(now, 0) if now > BEGINNING else BEGINNING

    def _arrived(self, queues: Iterable[Queue], moved: bool = True) -> None:
        self._moved = self._moved or moved  # noted before it came
        for queue in queues:
            self._tell(queue)

    # -- sources ---------------------------------------------------------------------------

    def sources_of(self, graph: Graph) -> list[str]:
        """The sources that an operator reads and that are not at their end."""
        return [name for name in self.sources if self._is_read(graph, name)]

    def _is_read(self, graph: Graph, name: str) -> bool:
        return is_read(graph, (queue.name for queue in self.queues_of(name)))

    def queues_of(self, name: str) -> list[Queue]:
        """The queues that an input fills."""
        intake = self.streams.get(name.lower())
        return self.relation(name).queues if intake is None else [intake.queue]

    def reading(self, name: str, is_limited: bool) -> SourceReading:
        """A page of a source, to be read without the lock."""
        return SourceReading(name, *self.sources[name], self.read_rows.get(name, 0), is_limited)

    def admission(self, reading: SourceReading) -> Admission:
        """What the rows of a page are admitted by that is about to be read elsewhere."""
        intake = self.streams[reading.name]
        intake.is_admitted_elsewhere = True
        reading.admission = intake.admission
        return reading.admission

    def give_up(self, reading: SourceReading) -> None:
        """Forgets what was read."""
        if reading.admission is not None and reading.name in self.streams:
            self.streams[reading.name].is_admitted_elsewhere = False
        line = reading.line or {}
        self._store.remove(tuple(line[key] for key in ("name", "late") if key in line))

    def is_current(self, reading: SourceReading, most_rows: float) -> bool:
        """Whether what was read may be taken: the source and what was admitted are as they were.

        A page that was read elsewhere is taken whole.
        """
        is_whole = reading.line is None or reading.rows <= most_rows
        if not self.is_of(reading) or not is_whole:
            return False
        admission = reading.admission
        return admission is None or admission == self.streams[reading.name].admission

    def is_of(self, reading: SourceReading) -> bool:
        """Whether a page is one of the source that there is, and not of one of the same name."""
        return self.sources.get(reading.name, (None, None))[1] is reading.pages

    def take(self, reading: SourceReading, report: Report | None) -> None:
        """Takes a page of a source; at its end the promise that nothing follows."""
        if reading.line is not None:
            self._take_line(reading.name, reading.line, report)
            return
        name, page = reading.name, reading.page
        self.report(name, report, reading.source.progress())
        taken = -1 if page is None else self.read_rows.get(name, 0) + page.num_rows
        with self.ahead(flushes=False) as coming:
            self._journal.note("source", name=name, rows=taken)
            self._read(name, page, coming)
        self.read_rows[name] = taken
        if page is None:
            del self.sources[name]

    def _read(self, name: str, page: pa.Table | None, coming: Coming) -> None:
        """A page of a source comes, or its end."""
        if page is None:
            self._promise(self.queues_of(name), END, coming)
        elif name in self.streams:
            self._accept(name, self.streams[name], page, coming)
        else:
            times = np.asarray(page["ts"]).astype(np.int64)
            weights = np.asarray(page["weight"]).astype(np.int64)
            rows = page.select(page.column_names[2:])
            self._apply(self.relations[name], rows, times, weights, coming)

    def _take_line(self, name: str, line: dict[str, Any], report: Report | None) -> None:
        """Takes a page of a stream's source that was read and written elsewhere."""
        self.report(name, report, Progress(*line["progress"]))
        self.read_rows[name] = line["taken"]
        self._journal.note("source", name=name, rows=line["taken"])
        if line["taken"] < 0:
            del self.sources[name]
            self._advance(name, END)
            return
        intake = self.streams[name]
        intake.is_admitted_elsewhere = False
        self._store.note_line(line, "name", "sum")
        self._store.note_line(line, "late", "late_sum")
        if "name" in line:
            page = Page.referred(self._store, line | {"names": [line["name"]], "sorted": True})
            intake.queue.add(page)
            self._note_page(intake.queue, page)
        late = self._late_page(intake, line) if "late" in line else None
        if late is not None:
            intake.add_late(late)
        intake.has_come(line["largest"], line["arrived"], line["heartbeat"])
        self._journal.note(**intake.noted(name), late=self._referring(late))
        self._note_moved()
        self._tidy_late(name, intake)
        self._arrived([intake.queue])

    def _late_page(self, intake: StreamIntake, line: dict[str, Any]) -> Page:
        name, rows = line["late"], line["late_rows"]
        bytes_ = self._store.path(name).stat().st_size
        place = intake.late_place(rows)
        return Page(self._store, rows=rows, bytes_=bytes_, names=(name,), **place)

    def report(self, name: str, report: Report | None, progress: Progress) -> None:
        """Tells how far a source is, if that is asked for."""
        if report is not None:
            report(self._catalog.entries[name].name, progress)

    def reached(self, name: str) -> int:
        """How far a source is."""
        return (self.streams.get(name) or self.relations[name]).queue.heartbeat

    def is_timed(self, name: str) -> bool:
        """Whether the times of an input are its own, and not those at which it is read."""
        intake = self.streams.get(name)
        return intake is None or intake.entry.timestamp_column is not None

    # -- heartbeats ------------------------------------------------------------------------

    def advance(self, name: str, timestamp: Any, coming: Coming) -> None:
        """A heartbeat: promises that nothing at or before the time will follow."""
        self._promise(self.queues_of(name), self._ticks(timestamp, name), coming)

    def promise_all(self, heartbeat: int, coming: Coming) -> None:
        """Promises that nothing at or before a time will follow anywhere."""
        for name in [*self.streams, *self.relations]:
            self._promise(self.queues_of(name), heartbeat, coming)

    def _advance(self, name: str, ticks: int) -> None:
        with self.ahead(flushes=False) as coming:
            self._promise(self.queues_of(name), ticks, coming)

    def use_delay(self, key: str) -> None:
        """The delay of a stream is another one: with a smaller one time may be over at once.

        What was promised with the one of before stays promised.
        """
        intake, entry = self.streams[key], self._catalog.get(key)
        if isinstance(entry, StreamEntry):
            intake.entry = entry
        if intake.promise > intake.queue.heartbeat and not self._journal.is_replaying:
            self._advance(key, intake.promise)  # else it follows from the log

    def end(self, graph: Graph) -> None:
        """Promises that nothing will follow, except in sources that nobody reads."""
        for name in [*self.streams, *self.relations]:
            if name in self.sources and not self._is_read(graph, name):
                continue
            self.held.discard(name)
            if self.sources.pop(name, None) is not None:  # read up to its limit
                self.read_rows[name] = -1
                self._journal.note("source", name=name, rows=-1)
            self._advance(name, END)

    def _ticks(self, time: Any, place: str) -> int:
        return as_ticks(time, self._catalog.tick_microseconds, place)

    def promise(self, settings: Settings) -> None:
        """Heartbeats on demand: from the wall clock, and from the streams for quiet relations."""
        for intake in self.streams.values():
            follows = intake.entry.timestamp_column is None and not intake.is_admitted_elsewhere
            if follows and intake.queue.heartbeat < END:
                self._raise([intake.queue], intake.now_ticks() - 1)
        if settings.clock == "wall":
            self._time_out(settings.heartbeat_timeout_seconds)
        for relation in self.relations.values():
            if not relation.entry.has_changes:
                self._raise(relation.queues, max(self._furthest, relation.last_change))
            relation.reader.cursor = relation.queue.heartbeat

    @property
    def _furthest(self) -> int:
        return max((i.queue.heartbeat for i in self.streams.values()), default=BEGINNING)

    def _time_out(self, seconds: float) -> None:
        """A stream that stays quiet too long follows the others."""
        reached, now = self._furthest, time.monotonic()
        for name, intake in self.streams.items():
            has_more = name in self.held or self._always_has_more(name)
            if not has_more and now - intake.last_arrival_seconds > seconds:
                self._raise([intake.queue], reached)

    def _always_has_more(self, name: str) -> bool:
        return name in self.sources and not is_live(self.sources[name][0])

    def _raise(self, queues: list[Queue], heartbeat: int) -> None:
        for queue in queues:
            if heartbeat > queue.heartbeat:
                self._beat(queue, heartbeat)
                self._tell(queue)

    # -- after a restart -------------------------------------------------------------------

    def file_names(self) -> set[str]:
        """The files of all queues and of the late tuples."""
        pages = [page for queue in self.queues.values() for page in queue.all_pages]
        pages += [page for intake in self.streams.values() for page in intake.late_log.kept]
        return {name for page in pages for name in page.names}

    def resume(self, key: str, source: Source) -> None:
        """Goes on with a source behind the rows that an earlier run has taken of it."""
        taken = self.read_rows.get(key, 0)
        if taken >= 0:
            self.taken_before[key] = taken
            self.sources[key] = (source, OpenPages.of(source, taken))


def _from_the_beginning(content: pa.Table) -> pa.Table:
    """The same rows, there from the beginning."""
    times = pa.array(np.full(content.num_rows, BEGINNING))
    return content.set_column(content.schema.get_field_index("_ts"), "_ts", times)

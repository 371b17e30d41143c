"""All inputs of an engine: streams, relations, their sources, and the promises they make.

Every change ends in ``arrived(queue)``, by which the engine tells its running operators.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from millpond.catalog import Catalog, RelationEntry, StreamEntry
from millpond.connectors import Progress, Source, arrow_schema, to_arrow
from millpond.connectors.admission import stream_page_schema
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.changes import WEIGHTS, listed_changes
from millpond.connectors.sources import OpenPages, Taken, as_page, close_source, is_live
from millpond.connectors.times import as_ticks
from millpond.errors import StateError
from millpond.identities import InputId, QueueId, RelationId
from millpond.intake.epochs import Epochs, Times
from millpond.intake.intake import (
    END,
    RelationIntake,
    StreamIntake,
    refuse_ended,
    relation_page_schema,
    violating_log_name,
)
from millpond.intake.reading import is_read, refuse_endless_content
from millpond.intake.transitions import (
    BadRowsCame,
    HeartbeatCame,
    KeysPushed,
    PageCame,
    RelationChanged,
    RelationCopied,
    SourceRead,
    StreamCame,
)
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.planning.graph import Graph
from millpond.planning.nodes import ONE_ROW
from millpond.schema import BEGINNING, FOREVER
from millpond.settings import Settings
from millpond.storage.journal import Journal
from millpond.storage.kept_pages import Keeper, PageLog
from millpond.storage.pages import Page
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader
from millpond.storage.store import Store
from millpond.storage.transitions import Transition


def is_one_row(queue: QueueId) -> bool:
    """Whether a queue is of the relation of one row; those are made anew in every run."""
    return queue.relation == ONE_ROW.name


Report = Callable[[str, Progress], None]
"""Called while sources are read: the name of the input and how far it is."""


Coming = list[Transition]
"""What comes together, in order."""

Stopping = Callable[[StreamEntry, Sequence[str]], Iterable[Transition]]
"""Says what follows when constraints of a stream are broken."""


class Aside(Protocol):
    """Keeps what could not be read, and hands it on."""

    def add_bad_rows(self, stream: str, page: Page) -> None:
        """Bad rows of a stream have come."""

    def tidy_bad_rows(self, stream: str) -> None:
        """Lets old ones go."""


class Inputs:
    """The base queues and what fills them; names are in lower case."""

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        journal: Journal,
        arrived: Callable[[Queue], None],
        keeper: Keeper,
        aside: Aside,
    ) -> None:
        self.queues: dict[QueueId, Queue] = {}
        """All queues of the engine: those of inputs, and those that operators add."""
        self.streams: dict[InputId, StreamIntake] = {}
        self.relations: dict[InputId, RelationIntake] = {}
        self.sources: dict[InputId, tuple[Source, OpenPages]] = {}
        self.epochs = Epochs(self._heartbeats)
        """From when on queries see them."""
        self.catalog, self.store = catalog, store
        self._journal = journal
        self._tell = arrived
        self._keeper, self._aside = keeper, aside
        self.read_rows: dict[InputId, int] = {}
        """How many rows of each source were taken; -1 at its end."""
        self.bad_rows: dict[InputId, int] = {}
        """How many rows of each source were put aside."""
        self.source_positions: dict[InputId, Any] = {}
        """Where each source goes on that knows it."""
        self.taken_before: dict[InputId, int] = {}
        """How many rows of each source earlier runs have taken, until a run has counted them."""
        self.held: set[InputId] = set()
        """The sources that are held back, as there is no room for what they have."""
        self.stopping: Stopping = lambda entry, broken: ()
        """What follows for queries when constraints of a stream are broken."""
        self.done: Callable[[Transition], None] = lambda each: each.apply(self)
        """Does what has come; some of it is about queries."""
        self.keys: dict[tuple[str, str], None] = {}
        """The last pushes that had a key: the name of the input and the key, oldest first."""

    # -- which there are -------------------------------------------------------------------

    def add_stream(self, entry: StreamEntry) -> None:
        """A new stream, without a source yet."""
        key = entry.identity
        schema = stream_page_schema(entry.schema)
        queue = Queue(key.queue, schema, self.store, is_stream=True)
        self.queues[queue.name] = queue
        intake = StreamIntake(entry, queue, self.catalog.tick_microseconds)
        intake.late_log.books = intake.violating_log.books = self._keeper.books
        self.streams[key] = intake

    def add_relation(self, entry: RelationEntry) -> None:
        """A new relation, with no content yet."""
        intake = self._new_relation(entry)
        self.relations[entry.identity] = intake
        self.queues[intake.queue.name] = intake.queue

    def _new_relation(self, entry: RelationEntry) -> RelationIntake:
        queue = self._relation_queue(entry)
        reader = queue.subscribe(Reader(BEGINNING - 1, needs_content=True, works=False))
        return RelationIntake(entry, [queue], reader)

    def content_of(self, entry: RelationEntry, source: Source) -> Coming:
        """What the source of a relation without timestamps holds: there from the beginning, or
        from now on. The relation need not be there yet."""
        refuse_endless_content(entry, source)
        trial, coming = self._new_relation(entry), Coming()
        try:
            for page in map(as_page, source.pages()):
                change = self.change(trial, [(page.rows, 1)], self.change_time(trial), coming)
                trial.has_changed(change.last_change, change.changed_rows, change.counts)
        except BaseException:
            give_up(coming)
            raise
        return coming

    def read_from(self, entry: StreamEntry | RelationEntry, source: Source) -> None:
        """An input has a source from now on, unless it has given all it has."""
        if entry.source.name != "push" and not is_read_at_once(entry):
            self.sources[entry.identity] = (source, OpenPages.of(source, Taken()))

    def _relation_queue(self, entry: RelationEntry, epoch: int = 0) -> Queue:
        name = entry.identity.queue(epoch)
        return Queue(name, relation_page_schema(entry.schema), self.store, is_stream=False)

    def drop(self, key: InputId) -> list[QueueId]:
        """Forgets a stream or relation, if there is one of this name; its queues."""
        if key in self.sources:
            close_source(self.sources.pop(key)[0])
        self.held.discard(key)
        for known in (self.read_rows, self.bad_rows, self.source_positions):
            known.pop(key, None)
        self.keys = {pair: None for pair in self.keys if pair[0] != key}
        if key in self.streams:
            for log in (self.streams[key].late_log, self.streams[key].violating_log):
                log.pass_pages(len(log.kept))
        dropped = [self.streams.pop(key).queue] if key in self.streams else []
        dropped += self.relations.pop(key).queues if key in self.relations else []
        for queue in dropped:
            self.queues.pop(queue.name).close()
        return [queue.name for queue in dropped]

    def relation(self, name: str) -> RelationIntake:
        """The relation of a name."""
        if InputId(name) in self.relations:
            return self.relations[InputId(name)]
        known = ", ".join(sorted([*self.streams, *self.relations])) or "none"
        raise StateError(f'no stream or relation "{name}"; known: {known}')

    def late(self, stream: str, last_rows: int | None = None) -> pa.Table:
        """The tuples of a stream that came too late, as they came: the last, or all that are
        kept."""
        intake = self._stream(stream)
        return intake.late if last_rows is None else intake.last_late(last_rows)

    def violating(self, stream: str, last_rows: int | None = None) -> pa.Table:
        """The tuples of a stream that broke a constraint, with its name: the last, or all that are
        kept."""
        return self._stream(stream).violating(last_rows)

    def aside_log(self, name: str) -> PageLog:
        """The log of a stream's late tuples, or of those that broke a constraint."""
        stream, _, is_violating = name.partition("#")
        intake = self.streams[InputId(stream)]
        return intake.violating_log if is_violating else intake.late_log

    def _stream(self, name: str) -> StreamIntake:
        if InputId(name) not in self.streams:
            raise StateError(f'no stream "{name}"; known: {", ".join(sorted(self.streams))}')
        return self.streams[InputId(name)]

    # -- epochs ----------------------------------------------------------------------------

    def _heartbeats(self) -> Times:
        return {each.queue.name: each.queue.heartbeat for each in self.streams.values()}

    def provide(self, queues: Iterable[QueueId]) -> None:
        """Has the relation of one row for operators that read it."""
        for name in queues:
            if is_one_row(name) and (name not in self.queues or not self.queues[name].rows):
                self._add_one_row(name)  # those that have read it before need it no more

    def _add_one_row(self, name: QueueId) -> None:
        schema = relation_page_schema(ONE_ROW.schema)
        queue = self.queues[name] = Queue(name, schema, self.store, is_stream=False)
        row = {"_ts": [BEGINNING], "_te": [FOREVER], "_w": [1], "c0": [1]}
        queue.append(pa.table(row, schema=schema))
        queue.advance(END)

    def add_copy(self, relation: InputId, epoch: int) -> Queue:
        """A queue of a relation for queries of a later epoch."""
        intake = self.relations[relation]
        queue = self._relation_queue(intake.entry, epoch)
        self.queues[queue.name] = queue
        intake.queues.append(queue)
        return queue

    def copied(self, name: QueueId) -> RelationCopied:
        """A queue of a relation in which what has happened so far holds from the beginning."""
        intake = self.relations[name.input]
        promised, changes = intake.queue.heartbeat, intake.changes()
        past = _from_the_beginning(intake.content(promised))
        coming = changes.filter(pa.array(integers(changes["_ts"]) > promised))
        pages = (Page.of(self.store, table) for table in (past, coming) if table.num_rows)
        return RelationCopied(name, tuple(pages), promised)

    def forget_epochs(self, in_use: set[int]) -> list[QueueId]:
        """Closes the relations' queues of past epochs to which no operator belongs any more."""
        over = self.epochs.forget(in_use)
        closed: list[QueueId] = []
        for intake in self.relations.values() if over else ():
            for queue in [q for q in intake.queues[1:] if q.name.epoch in over]:
                intake.queues.remove(queue)
                self.queues.pop(queue.name).close()
                closed.append(queue.name)
        rows = [RelationId(ONE_ROW.name).queue(epoch) for epoch in over]
        for name in rows:
            if name in self.queues:
                self.queues.pop(name).close()
                closed.append(name)
        return closed

    def forget_copy(self, name: QueueId) -> None:
        """Nobody reads a relation's queue of a past epoch any more."""
        queue = self.queues.pop(name)
        self.relations[name.input].queues.remove(queue)
        queue.close()

    # -- tuples and changes ----------------------------------------------------------------

    @contextmanager
    def ahead(self, flushes: bool = True) -> Iterator[Coming]:
        """What is put into the list inside is in the log at the end; then it comes. Or nothing
        does: neither notes nor files stay.

        Without ``flushes`` the notes wait for those that follow.
        """
        coming: Coming = []
        try:
            yield coming
            with self._journal.ahead(flushes):
                for each in coming:
                    self._journal.note(each)
        except BaseException:
            give_up(coming)
            raise
        for each in coming:
            self.done(each)
        self.tell(coming)

    def tell(self, come: Iterable[Transition]) -> None:
        """Tells whoever reads them what has come to inputs."""
        for each in come:
            match each:
                case StreamCame(name):
                    self._keeper.tidy(self.streams[name].late_log, late=name)
                    self._keeper.tidy(
                        self.streams[name].violating_log, late=violating_log_name(name)
                    )
                    self._tell(self.streams[name].queue)
                case BadRowsCame(name):
                    self._aside.tidy_bad_rows(name)
                case RelationChanged(name):
                    for queue in self.relations[name].queues:
                        self._tell(queue)
                case HeartbeatCame(queue=queue):
                    self._tell(self.queues[queue])

    def push(self, name: str, rows: Any, coming: Coming) -> None:
        """Adds tuples to a stream, or rows to a relation at the current time."""
        key = InputId(name)
        if key in self.streams:
            intake = self.streams[key]
            refuse_ended(intake.entry.name, intake.queue)
            table = to_arrow(rows, intake.entry.schema, intake.entry.name)
            self.accept(key, intake, table, coming)
            return
        relation = self.relation(name)
        refuse_ended(relation.entry.name, relation.queue)
        table = to_arrow(rows, relation.entry.schema, relation.entry.name)
        self.change(relation, [(table, 1)], self.change_time(relation), coming)

    def late_count(self, name: str) -> int:
        """How many tuples of a stream came too late so far; a relation has none."""
        intake = self.streams.get(InputId(name))
        return 0 if intake is None else intake.late_count

    def is_new(self, name: str, key: str) -> bool:
        """Whether nothing was pushed to an input with a key, as far as that is remembered."""
        return (InputId(name), key) not in self.keys

    def remember(self, name: str, key: str, coming: Coming) -> None:
        """Something is pushed with a key: in the log that is together with the rows."""
        coming.append(KeysPushed(((InputId(name), key),)))

    def accept(self, key: InputId, intake: StreamIntake, table: pa.Table, coming: Coming) -> None:
        """Tuples of a stream are about to come."""
        looking = intake.looking()
        admitted = intake.admit(table, looking)
        looked = None if looking is None else looking.found
        page, late = intake.page_of(admitted), intake.late_page_of(admitted)
        violating = intake.violating_page_of(looked)
        if looked is not None and looked.broken:
            coming += self.stopping(intake.entry, looked.broken)
        if page is not None:
            coming.append(PageCame(intake.queue.name, page))
        if page is not None or late is not None or violating is not None:
            coming.append(
                StreamCame(
                    key,
                    admitted.largest,
                    admitted.arrived,
                    intake.late_count + (0 if late is None else late.rows),
                    max(intake.queue.heartbeat, admitted.heartbeat),
                    late,
                    violating_count=intake.violating_count + (violating.rows if violating else 0),
                    violating=violating,
                    seen=intake.seen(looked, admitted),
                )
            )

    def put_aside(self, key: InputId, bad: Sequence[BadRow]) -> BadRowsCame:
        """Rows of a stream's source that could not be read are about to be put aside."""
        now = self.streams[key].now_ticks()
        columns = [list(column) for column in zip(*(each.values for each in bad), strict=True)]
        numbers = [np.full(len(bad), value, np.int64) for value in (now, 1)]
        told = [pa.array(column, pa.string()) for column in columns]
        names = ["_ts", "_w", *(f"c{position}" for position in range(len(told)))]
        table = pa.table([*map(pa.array, numbers), *told], names=names)
        return BadRowsCame(key, Page.of(self.store, table))

    def has_put_aside(self, stream: InputId, page: Page) -> None:
        """Bad rows of a stream's source are put aside."""
        self._aside.add_bad_rows(stream, page)

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
        self.apply_changes(intake, table, np.array(times, dtype=np.int64), weights, coming)

    def apply_changes(
        self, intake: RelationIntake, rows: pa.Table, times: Ints, weights: Ints, coming: Coming
    ) -> None:
        """Changes of a relation at times are about to come."""
        if rows.num_rows:
            self._change(intake, rows, times, weights, True, coming)
            self.promise_to(intake.queues, int(times.max()) - 1, coming)

    def _change(
        self,
        intake: RelationIntake,
        rows: pa.Table,
        times: Ints,
        weights: Ints,
        moves: bool,
        coming: Coming,
    ) -> RelationChanged:
        change = intake.changing(rows, times, weights)
        coming += [PageCame(queue.name, page) for queue, page in change.pages]
        name = intake.entry.identity
        counted = change.last_change, change.changed_rows, moves, change.counts
        changed = RelationChanged(name, *counted)
        coming.append(changed)
        return changed

    def promise_to(self, queues: list[Queue], heartbeat: int, coming: Coming) -> None:
        """A promise for some queues is about to come."""
        later = (queue.name for queue in queues if heartbeat > queue.heartbeat)
        coming += [HeartbeatCame(name, heartbeat) for name in later]

    def change(
        self, intake: RelationIntake, parts: list[tuple[pa.Table, int]], at: int, coming: Coming
    ) -> RelationChanged:
        """Adds (weight 1) or removes (-1) rows of a relation at a time."""
        schema = arrow_schema(intake.entry.schema)
        tables = [pa.Table.from_arrays(rows.columns, schema=schema) for rows, _ in parts]
        weights = [np.full(rows.num_rows, weight, dtype=np.int64) for rows, weight in parts]
        rows = pa.concat_tables(tables)
        times = np.full(rows.num_rows, at, dtype=np.int64)
        moves = at > BEGINNING  # what is there from the start, all see
        return self._change(intake, rows, times, np.concatenate(weights), moves, coming)

    def change_time(self, intake: RelationIntake) -> int:
        """The current time: the largest any input has reached, and after every promise."""
        reached = [i.largest for i in self.streams.values() if i.largest is not None]
        promised = [i.queue.heartbeat for i in self.streams.values()]
        promised += [queue.heartbeat for queue in intake.queues]
        after = max(promised, default=BEGINNING - 1) + 1
        now = max([*reached, after, intake.last_change])
        return max(now, 0) if now > BEGINNING else BEGINNING

    # -- sources ---------------------------------------------------------------------------

    def sources_of(self, graph: Graph) -> list[InputId]:
        """The sources that an operator reads and that are not at their end."""
        return [name for name in self.sources if self._is_read(graph, name)]

    def _is_read(self, graph: Graph, name: InputId) -> bool:
        return is_read(graph, (queue.name for queue in self.queues_of(name)))

    def queues_of(self, name: str) -> list[Queue]:
        """The queues that an input fills."""
        intake = self.streams.get(InputId(name))
        return self.relation(name).queues if intake is None else [intake.queue]

    def reached(self, name: InputId) -> int:
        """How far a source is."""
        return (self.streams.get(name) or self.relations[name]).queue.heartbeat

    def is_timed(self, name: InputId) -> bool:
        """Whether the times of an input are its own, and not those at which it is read."""
        intake = self.streams.get(name)
        return intake is None or intake.entry.timestamp_column is not None

    # -- heartbeats ------------------------------------------------------------------------

    def advance(self, name: str, timestamp: Any, coming: Coming) -> None:
        """A heartbeat: promises that nothing at or before the time will follow."""
        self.promise_to(self.queues_of(name), self._ticks(timestamp, name), coming)

    def promise_all(self, heartbeat: int, coming: Coming) -> None:
        """Promises that nothing at or before a time will follow anywhere."""
        for name in [*self.streams, *self.relations]:
            self.promise_to(self.queues_of(name), heartbeat, coming)

    def _advance(self, name: InputId, ticks: int) -> None:
        with self.ahead(flushes=False) as coming:
            self.promise_to(self.queues_of(name), ticks, coming)

    def use_entry(self, key: InputId) -> None:
        """A stream has another delay or other constraints; what was promised stays promised."""
        entry = self.catalog.get(key)
        if isinstance(entry, StreamEntry):
            self.streams[key].entry = entry
            self.streams[key].use_constraints()

    def keep_promise(self, key: InputId) -> None:
        """A stream has another delay: with a smaller one time may be over at once."""
        intake = self.streams[key]
        if intake.promise > intake.queue.heartbeat:
            self._advance(key, intake.promise)

    def end(self, graph: Graph) -> None:
        """Promises that nothing will follow, except in sources that nobody reads."""
        for name in [*self.streams, *self.relations]:
            if name in self.sources and not self._is_read(graph, name):
                continue
            self.held.discard(name)
            with self.ahead(flushes=False) as coming:
                if name in self.sources:  # read up to its limit
                    coming.append(SourceRead(name, -1, self.bad_rows.get(name, 0)))
                self.promise_to(self.queues_of(name), END, coming)

    def _ticks(self, time: Any, place: str) -> int:
        return as_ticks(time, self.catalog.tick_microseconds, place)

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

    def _always_has_more(self, name: InputId) -> bool:
        return name in self.sources and not is_live(self.sources[name][0])

    def _raise(self, queues: list[Queue], heartbeat: int) -> None:
        later = [queue.name for queue in queues if heartbeat > queue.heartbeat]
        if later:
            with self.ahead(flushes=False) as coming:
                coming += [HeartbeatCame(name, heartbeat, moves=False) for name in later]

    def close(self) -> None:
        """Has no source wait any more."""
        for source, _ in self.sources.values():
            close_source(source)

    # -- after a restart -------------------------------------------------------------------

    def file_names(self) -> set[str]:
        """The files of all queues and of the late tuples."""
        pages = [page for queue in self.queues.values() for page in queue.all_pages]
        for intake in self.streams.values():
            pages += [*intake.late_log.kept, *intake.violating_log.kept]
        return {name for page in pages for name in page.names}

    def resume(self, key: InputId, source: Source) -> None:
        """Goes on with a source behind the rows that an earlier run has taken of it."""
        taken = self.read_rows.get(key, 0)
        if taken >= 0:
            self.taken_before[key] = taken
            position = self.source_positions.get(key)
            read = Taken(taken, self.bad_rows.get(key, 0), position)
            self.sources[key] = (source, OpenPages.of(source, read))


def _from_the_beginning(content: pa.Table) -> pa.Table:
    """The same rows, there from the beginning."""
    times = pa.array(np.full(content.num_rows, BEGINNING))
    return content.set_column(content.schema.get_field_index("_ts"), "_ts", times)


def is_read_at_once(entry: StreamEntry | RelationEntry) -> bool:
    """Whether an input has all that its source holds when it is declared: a relation without
    timestamps has."""
    has_content = isinstance(entry, RelationEntry) and not entry.has_changes
    return has_content and entry.source.name != "push"


def give_up(coming: Coming) -> None:
    """What was decided does not come after all."""
    for each in coming:
        for page in each.carried:
            page.free()

"""All inputs of an engine: streams, relations, their sources, and the promises they make.

Every change ends in ``arrived(queue)``, by which the engine tells its running operators.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from millpond.catalog import (
    Catalog,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    Tolerance,
    kept_entry,
)
from millpond.connectors import Progress, Source
from millpond.connectors.admission import Admitted, stream_page_schema
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.nested import outside_table
from millpond.connectors.sources import OpenPages, Taken, close_source, forget, say_committed
from millpond.connectors.times import as_ticks
from millpond.cql.algebra import ONE_ROW
from millpond.cql.patterns import Pattern
from millpond.errors import StateError
from millpond.identities import InputId, QueueId, StreamId
from millpond.intake.ahead import without_ahead
from millpond.intake.drop_point import DropPoint, dropped_in, percent_of
from millpond.intake.epochs import Epochs, Times
from millpond.intake.intake import (
    RelationIntake,
    StreamIntake,
    relation_page_schema,
    violating_log_name,
)
from millpond.intake.kept_windows import KeptWindows
from millpond.intake.punctuations import Contradictions, promised_by, without_carried
from millpond.intake.reading import is_read
from millpond.intake.transitions import (
    BadRowsCame,
    Contradicted,
    HeartbeatCame,
    KeysPushed,
    PageCame,
    Punctuated,
    RelationChanged,
    StreamCame,
    WaitingThinned,
)
from millpond.planning.graph import Graph
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


Contradicting = Callable[[StreamEntry, Sequence[Sequence[int]], Coming], Iterable[Transition]]
"""Says what follows when punctuations that name some columns of a stream are contradicted, beside
what comes anyway."""


Missing = Callable[[StreamEntry, Coming], str]
"""Names the queries that go on without tuples of a stream, beside those that stop by what comes."""


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
        self._forgetting: list[threading.Thread] = []
        """Who has sources forget inputs that are dropped."""
        self.epochs = Epochs(self._heartbeats)
        """From when on queries see them."""
        self.catalog, self.store = catalog, store
        self._journal = journal
        self._tell = arrived
        self._keeper, self._aside = keeper, aside
        journal.on_written = self._say_committed
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
        self.contradicted: Contradicting = lambda entry, columns, coming: ()
        """What follows for queries when punctuations of a stream are contradicted."""
        self.missed_by: Missing = lambda entry, coming: ""
        """Which queries go on without tuples of a stream that are put aside."""
        self.done: Callable[[Transition], None] = lambda each: each.apply(self)
        """Does what has come; some of it is about queries."""
        self.watched: dict[InputId, frozenset[int]] = {}
        """The columns of streams by which queries would free rows if they were ordered."""
        self.kept: dict[InputId, dict[StreamId, Tolerance]] = {}
        """By the names of streams what drop points keep of them, and what is needed of that."""
        self.kept_because: dict[InputId, str] = {}
        """By the names of streams why they keep as many tuples as they do, since this run began."""
        self.settings: Callable[[], Settings] = Settings
        """The settings there are."""
        self.windows = KeptWindows(catalog, self.queues, self._present_settings)
        """Which windows are shortened now."""
        self.follows_values = False
        """Whether it is also seen how far equal values come apart."""
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
        self._link()
        intake.use_targets()

    def _link(self) -> None:
        """Has streams know which others they reference, and are referenced by."""
        for intake in self.streams.values():
            intake.referring, intake.targets = {}, {}
        for intake in self.streams.values():
            for each in intake.entry.constraints:
                target = self.streams.get(StreamId(each.target)) if each.target else None
                if target is not None:
                    intake.targets[each.name] = target
                    target.referring[f"{intake.entry.name}.{each.name}"] = intake, each.name

    def add_kept(self, tolerance: Tolerance) -> bool:
        """A query needs what is kept of a stream; whether no other did yet."""
        stream, name = StreamId(tolerance.stream), StreamId(tolerance.kept)
        known = self.kept.setdefault(stream, {})
        if name in known:
            return False
        whole = self.streams[stream]
        for each in tolerance.all_kept:
            self.add_stream(kept_entry(whole.entry, each))
            intake = self.streams[StreamId(each)]
            intake.has_come(whole.largest, whole.arrived, whole.queue.heartbeat)
            known[intake.entry.identity] = tolerance
        return True

    def fill_kept(self, tolerance: Tolerance) -> Coming:
        """What of a stream has come that no time was promised for: a query that begins sees it."""
        queue = self.streams[StreamId(tolerance.stream)].queue
        spans = queue.between(queue.heartbeat, FOREVER)
        pages = [each.table() for each in spans]
        whole = DropPoint.of(tolerance, 0, 1.0)
        name = StreamId(tolerance.kept).queue
        return [
            PageCame(name, Page.of(self.store, whole.kept(page), is_sorted=True)) for page in pages
        ]

    def forget_kept(self) -> list[QueueId]:
        """Forgets what drop points keep that no query needs any more; the queues of that."""
        entries = self.catalog.of_kind(QueryEntry)
        tolerated = [each.tolerates for each in entries if each.tolerates is not None]
        needed = {StreamId(name) for each in tolerated for name in each.all_kept}
        unneeded = [name for known in self.kept.values() for name in known if name not in needed]
        for name in unneeded:
            del self.kept[name.whole][name]
            self.windows.forget(name)
        self.kept = {stream: known for stream, known in self.kept.items() if known}
        return [queue for name in unneeded for queue in self.drop(name)]

    def _present_settings(self) -> Settings:
        return self.settings()

    def rate(self, stream: InputId) -> float:
        """The rate at which tuples of a stream are kept for queries that tolerate it."""
        return percent_of(self.catalog, self.streams[stream].entry, self.settings()) / 100

    def add_relation(self, entry: RelationEntry) -> None:
        """A new relation, with no content yet."""
        intake = self.new_relation(entry)
        self.relations[entry.identity] = intake
        self.queues[intake.queue.name] = intake.queue

    def new_relation(self, entry: RelationEntry) -> RelationIntake:
        """A relation that is not among the inputs yet."""
        queue = self._relation_queue(entry)
        reader = queue.subscribe(Reader(BEGINNING - 1, needs_content=True, works=False))
        return RelationIntake(entry, [queue], reader)

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
            source, _ = self.sources.pop(key)
            close_source(source)
            if (thread := forget(source)) is not None:
                self._forgetting.append(thread)
        self.held.discard(key)
        for known in (
            self.read_rows,
            self.bad_rows,
            self.source_positions,
            self.kept_because,
        ):
            known.pop(key, None)
        self.keys = {pair: None for pair in self.keys if pair[0] != key}
        if key in self.streams:
            for log in (self.streams[key].late_log, self.streams[key].violating_log):
                log.pass_pages(len(log.kept))
        dropped = [self.streams.pop(key).queue] if key in self.streams else []
        dropped += self.relations.pop(key).queues if key in self.relations else []
        for intake in self.streams.values():
            intake.forget_remnants_of(key)
        for queue in dropped:
            self.queues.pop(queue.name).close()
        self._link()
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
        found = intake.late if last_rows is None else intake.last_late(last_rows)
        return outside_table(found, intake.entry.schema.types)

    def violating(self, stream: str, last_rows: int | None = None) -> pa.Table:
        """The tuples of a stream that broke a constraint, with its name: the last, or all that are
        kept."""
        intake = self._stream(stream)
        return outside_table(intake.violating(last_rows), intake.entry.schema.types)

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

    def add_copy(self, relation: InputId, epoch: int) -> Queue:
        """A queue of a relation for queries of a later epoch."""
        intake = self.relations[relation]
        queue = self._relation_queue(intake.entry, epoch)
        self.queues[queue.name] = queue
        intake.queues.append(queue)
        return queue

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
                case WaitingThinned(name):
                    self._tell(self.streams[name].queue)
                case BadRowsCame(name):
                    self._aside.tidy_bad_rows(name)
                case RelationChanged(name):
                    for queue in self.relations[name].queues:
                        self._tell(queue)
                case HeartbeatCame(queue=queue):
                    self._tell(self.queues[queue])

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

    def accept(
        self,
        key: InputId,
        intake: StreamIntake,
        table: pa.Table,
        coming: Coming,
        taken: int | None = None,
    ) -> None:
        """Tuples of a stream are about to come, and punctuations among them; of its source, if it
        is that, so many rows were ``taken`` before."""
        table, carried = without_carried(intake.entry, table, taken)
        if carried.unread:
            coming.append(self.put_aside(key, carried.unread))
        now = intake.now_ticks() * intake.tick_microseconds
        table, carried, ahead = without_ahead(
            intake.entry, table, carried, now, intake.tick_microseconds
        )
        looking = intake.looking()
        looking_first = Contradictions(intake.entry, intake.punctuations, carried, looking)
        admitted = intake.admit(table, looking_first)
        looked = None if looking is None else looking.found
        page, late = intake.page_of(admitted), intake.late_page_of(admitted)
        aside = looking_first.with_violating(None if looked is None else looked.rows)
        if looked is not None and looked.broken:
            coming += self.stopping(intake.entry, looked.broken)
        if looking_first.found:
            coming += self.contradicted(intake.entry, looking_first.stopping, coming)
        missed_by = "" if aside is None else self.missed_by(intake.entry, coming)
        violating = intake.violating_page_of(aside, missed_by, ahead)
        if page is not None:
            coming.append(PageCame(intake.queue.name, page))
        if page is not None or late is not None or violating is not None:
            coming += self._kept_of(key, admitted)
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
                    disorder=() if admitted.disorder is None else admitted.disorder.data(),
                    watched=intake.watches_after(
                        admitted.page, self._arrived if self.follows_values else None
                    ),
                )
            )
        coming += _punctuated(key, intake, looking_first)
        coming += promised(self.queues_of(key), _carried_promise(intake, looking_first))

    def punctuate(self, name: str, pattern: Pattern, on_violation: str, coming: Coming) -> None:
        """A punctuation of a stream is about to come; one of nothing but time is a heartbeat."""
        intake = self._stream(name)
        coming.append(Punctuated(intake.entry.identity, (pattern.data(),), on_violation))
        until = promised_by(intake.entry, pattern, self.catalog.tick_microseconds)
        if until is not None:
            self.promise_to(self.queues_of(name), until, coming)

    def _kept_of(self, key: InputId, admitted: Admitted) -> Coming:
        """What drop points keep of tuples that come."""
        coming: Coming = []
        for name, tolerance in self.kept.get(key, {}).items():
            if name != StreamId(tolerance.kept):  # it comes with that
                continue
            intake = self.streams[name]
            count, until = intake.dropped_count, intake.dropped_until
            for each, kept in self._parts(key, tolerance, admitted.page):
                coming.append(PageCame(each.queue, Page.of(self.store, kept, is_sorted=True)))
                gone, last = dropped_in(kept)
                count += gone
                until = max((at for at in (until, last) if at is not None), default=None)
            heartbeat = max(intake.queue.heartbeat, admitted.heartbeat)
            for each in map(StreamId, tolerance.all_kept):
                come = StreamCame(each, admitted.largest, admitted.arrived, 0, heartbeat)
                dropped = (count, until) if each == name else (0, None)
                coming.append(replace(come, dropped_count=dropped[0], dropped_until=dropped[1]))
        return coming

    def _parts(
        self, key: InputId, tolerance: Tolerance, page: pa.Table | None
    ) -> Iterator[tuple[StreamId, pa.Table]]:
        """What is kept of a page for queries with the same needs, and under which names."""
        if page is None:
            return
        point = DropPoint.of(tolerance, self.settings().seed, self.rate(key))
        kept = point.kept(page)
        if not self.windows.is_shortened(tolerance):
            yield StreamId(tolerance.kept), kept
            return
        for name, part in zip(tolerance.all_kept, point.parted(kept), strict=True):
            if part.num_rows:
                yield StreamId(name), part

    def _arrived(self) -> dict[str, int]:
        """How many tuples of each stream have come."""
        return {key: intake.arrived for key, intake in self.streams.items()}

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

    def promise_to(self, queues: list[Queue], heartbeat: int, coming: Coming) -> None:
        """A promise for the queues of an input is about to come."""
        relation = self.relations.get(queues[0].name.input)
        if relation is not None:
            relation.refuse_conflict(heartbeat)
        coming += promised(queues, heartbeat)

    # -- sources ---------------------------------------------------------------------------

    def sources_of(self, graph: Graph) -> list[InputId]:
        """The sources that an operator reads and that are not at their end."""
        return [name for name in self.sources if self.is_read(graph, name)]

    def is_read(self, graph: Graph, name: InputId) -> bool:
        """Whether an operator reads an input."""
        return is_read(graph, (queue.name for queue in self.queues_of(name)))

    def queues_of(self, name: str) -> list[Queue]:
        """The queues that an input fills."""
        intake = self.streams.get(InputId(name))
        if intake is None:
            return self.relation(name).queues
        kept = (self.streams[each].queue for each in self.kept.get(InputId(name), ()))
        return [intake.queue, *kept]

    def reached(self, name: InputId) -> int:
        """How far a source is."""
        return (self.streams.get(name) or self.relations[name]).queue.heartbeat

    def is_timed(self, name: InputId) -> bool:
        """Whether the times of an input are its own, and not those at which it is read."""
        intake = self.streams.get(name)
        return intake is None or intake.entry.timestamp_column is not None

    # -- heartbeats ------------------------------------------------------------------------

    @property
    def names(self) -> list[InputId]:
        """The streams and relations; what is kept of a stream goes with it."""
        streams = [name for name, intake in self.streams.items() if not intake.is_kept]
        return [*streams, *self.relations]

    def use_entry(self, key: InputId, altered: str = "") -> None:
        """A stream has another delay or other constraints, of which one may be ``altered``; what
        was promised stays promised."""
        entry = self.catalog.get(key)
        if isinstance(entry, StreamEntry):
            for intake in self.streams.values():
                intake.forget_remnants()
            self.streams[key].entry = entry
            self._link()
            self.streams[key].use_delay()
            self.streams[key].use_constraints(altered)
            self.streams[key].watch(self.watched.get(key, ()))
            for name in self.kept.get(key, {}):
                self.streams[name].entry = kept_entry(entry, self.streams[name].entry.name)

    def watch(self, watched: Mapping[InputId, frozenset[int]]) -> None:
        """Has these columns of streams be watched, and no others."""
        changed = {*self.watched, *watched}
        self.watched = dict(watched)
        for key in changed & self.streams.keys():
            self.streams[key].watch(watched.get(key, ()))

    def ticks(self, time: Any, place: str) -> int:
        """A time that a user gives, in ticks."""
        return as_ticks(time, self.catalog.tick_microseconds, place)

    def close(self) -> None:
        """Has no source wait any more."""
        for source, _ in self.sources.values():
            close_source(source)

    def wait_until_forgotten(self, until: float) -> None:
        """Waits for the sources of dropped inputs to have forgotten them, until a moment."""
        for thread in self._forgetting:
            thread.join(max(0.0, until - time.monotonic()))

    def _say_committed(self) -> None:
        """What is noted is in the log: so sources need not keep what comes before."""
        for name, (source, _) in self.sources.items():
            say_committed(source, self.source_positions.get(name))

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


def _punctuated(key: InputId, intake: StreamIntake, looking: Contradictions) -> Coming:
    """What tuples of a page contradict, and the punctuations that it carries."""
    coming = Coming()
    if looking.found:
        counts = Counter(intake.contradicted) + Counter(looking.counts)
        coming.append(Contradicted(key, dict(counts)))
    if looking.carried.patterns:
        policy, patterns = intake.entry.punctuations_violated, looking.carried.patterns
        coming.append(Punctuated(key, tuple(each.data() for each in patterns), policy))
    return coming


def _carried_promise(intake: StreamIntake, looking: Contradictions) -> int:
    """Until when no tuples follow, by the punctuations that a page carries."""
    promises = looking.promises(intake.tick_microseconds)
    return max((time for _, time in promises), default=BEGINNING - 1)


def promised(queues: list[Queue], heartbeat: int) -> Coming:
    """A promise for queues, of which some may have had it."""
    later = (queue.name for queue in queues if heartbeat > queue.heartbeat)
    return [HeartbeatCame(name, heartbeat) for name in later]


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

"""What happens to inputs: pages, changes, promises, and epochs that begin."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from millpond.connectors import Source
from millpond.connectors.disorder import Disorder
from millpond.connectors.sources import OpenPages
from millpond.cql.patterns import Pattern, PatternData
from millpond.identities import InputId, QueueId, StreamId
from millpond.intake.epochs import Epochs, Times
from millpond.intake.intake import RelationIntake, StreamIntake
from millpond.intake.keys import Bags
from millpond.intake.remnants import Remnant
from millpond.intake.watching import Watches
from millpond.storage.pages import Page
from millpond.storage.punctuations import Remembered
from millpond.storage.queues import Queue
from millpond.storage.transitions import UNLOGGED, Transition

MOST_KEYS = 10_000
"""So many keys of pushes are remembered."""


class Filled(Protocol):
    """The inputs that something comes to."""

    queues: dict[str, Queue]
    streams: dict[InputId, StreamIntake]
    relations: dict[InputId, RelationIntake]
    sources: dict[InputId, tuple[Source, OpenPages]]
    read_rows: dict[InputId, int]
    bad_rows: dict[InputId, int]
    source_positions: dict[InputId, Any]
    keys: dict[tuple[str, str], None]
    epochs: Epochs

    def add_copy(self, relation: InputId, epoch: int) -> Queue:
        """A queue of a relation for queries of a later epoch."""

    def has_put_aside(self, stream: InputId, page: Page) -> None:
        """Bad rows of a stream's source are put aside."""


@dataclass(frozen=True)
class PageCame(Transition, kind="page", to="inputs"):
    """A queue of an input has a page more."""

    queue: QueueId
    page: Page

    def apply(self, part: Filled) -> None:
        """Adds the page."""
        queue = part.queues[self.queue]
        queue.latest.came(self.page)
        queue.add(self.page)


@dataclass(frozen=True)
class StreamCame(Transition, kind="stream", to="inputs"):
    """Tuples of a stream have come, and it is this far; some may have come too late."""

    name: InputId
    largest: int | None
    arrived: int
    late_count: int
    heartbeat: int
    late: Page | None = None
    moves: bool = True
    violating_count: int = 0
    violating: Page | None = None
    """Tuples that broke a constraint."""
    seen: dict[str, Any] = field(default_factory=dict)
    """What was seen by each constraint."""
    watched: Watches | None = field(default=None, compare=False, metadata=UNLOGGED)
    """What was seen of columns of which nothing is said."""
    """Of each constraint what has risen, the violations by then, and the farthest behind."""
    dropped_count: int = 0
    """How many tuples a drop point has dropped so far, if this is what it keeps of a stream."""
    dropped_until: int | None = None
    """The largest time of one."""
    disorder: tuple[Any, ...] = ()
    """What was seen of how far tuples come behind, if the delay follows that."""

    def apply(self, part: Filled) -> None:
        """Has the stream be this far."""
        intake = part.streams[self.name]
        intake.disorder = Disorder.read(self.disorder)
        if self.watched is None:
            intake.watch_anew()
        else:
            intake.watches = self.watched
        if self.late is not None:
            intake.late_log.append(self.late)
        if self.violating is not None:
            intake.violating_log.append(self.violating)
        intake.late_count, intake.violating_count = self.late_count, self.violating_count
        intake.dropped_count, intake.dropped_until = self.dropped_count, self.dropped_until
        intake.has_come(self.largest, self.arrived, self.heartbeat)
        intake.has_been_looked_at(self.seen)
        part.epochs.has_moved |= self.moves


@dataclass(frozen=True)
class WaitingThinned(Transition, kind="thin", to="inputs"):
    """So many tuples were dropped so far of what a drop point keeps of a stream: some waited."""

    name: InputId
    dropped_count: int
    dropped_until: int | None

    def apply(self, part: Filled) -> None:
        """Counts them."""
        intake = part.streams[self.name]
        intake.dropped_count, intake.dropped_until = self.dropped_count, self.dropped_until


@dataclass(frozen=True)
class ConstraintLeft(Transition, kind="left", to="inputs"):
    """A constraint is dropped that has freed rows: what it forbids still of the tuples of a
    stream."""

    name: InputId
    remnant: Remnant | tuple[Any, ...]

    def apply(self, part: Filled) -> None:
        """Has it be forbidden."""
        remnant = Remnant.read(self.remnant)
        owner = part.streams[StreamId(remnant.stream)]
        part.streams[self.name].remnants[remnant.name] = remnant, owner


@dataclass(frozen=True)
class Punctuated(Transition, kind="punctuated", to="inputs"):
    """Punctuations of a stream have come."""

    name: InputId
    patterns: tuple[PatternData, ...]
    on_violation: str = "stop"

    def apply(self, part: Filled) -> None:
        """Remembers them."""
        intake = part.streams[self.name]
        before = intake.punctuations.get(self.on_violation, Remembered())
        remembered = before.followed(map(Pattern.of, self.patterns))
        intake.has_been_punctuated(self.on_violation, remembered)


@dataclass(frozen=True)
class Contradicted(Transition, kind="contradicted", to="inputs"):
    """So many tuples of a stream have contradicted punctuations of each policy so far."""

    name: InputId
    counts: dict[str, int]

    def apply(self, part: Filled) -> None:
        """Counts them."""
        part.streams[self.name].contradicted = dict(self.counts)


@dataclass(frozen=True)
class RelationChanged(Transition, kind="relation", to="inputs"):
    """Rows of a relation have come or gone; ``moves``: not all see them as there from the start."""

    name: InputId
    last_change: int
    changed_rows: int
    moves: bool
    counts: Counter[Hashable] | None = field(default=None, compare=False, metadata=UNLOGGED)
    """How many of each row come or go, where that was looked at."""
    bags: Bags | None = field(default=None, compare=False, metadata=UNLOGGED)
    """The rows of the keys that are touched, where that was looked at."""

    def apply(self, part: Filled) -> None:
        """Counts the change."""
        changed = self.last_change, self.changed_rows, self.counts, self.bags
        part.relations[self.name].has_changed(*changed)
        part.epochs.has_moved |= self.moves


@dataclass(frozen=True)
class HeartbeatCame(Transition, kind="heartbeat", to="inputs"):
    """Nothing at or before a time will follow in a queue."""

    queue: QueueId
    time: int
    moves: bool = True

    def apply(self, part: Filled) -> None:
        """Advances the queue."""
        part.queues[self.queue].advance(self.time)
        relation = part.relations.get(self.queue.input)
        if relation is not None:
            relation.reader.cursor = relation.queue.heartbeat
        part.epochs.has_moved |= self.moves


@dataclass(frozen=True)
class SourceRead(Transition, kind="source", to="inputs"):
    """So many rows of a source were taken in all; -1: it has ended. And so many bad ones; some
    sources say where they go on."""

    name: InputId
    rows: int
    bad: int = 0
    position: Any = None

    def apply(self, part: Filled) -> None:
        """Counts them."""
        part.read_rows[self.name] = self.rows
        part.bad_rows[self.name] = self.bad
        part.source_positions[self.name] = self.position
        if self.rows < 0:
            part.sources.pop(self.name, None)


@dataclass(frozen=True)
class BadRowsCame(Transition, kind="bad_rows", to="inputs"):
    """Rows of a source could not be read and are put aside."""

    name: InputId
    page: Page

    def apply(self, part: Filled) -> None:
        """Puts them aside."""
        part.has_put_aside(self.name, self.page)


@dataclass(frozen=True)
class KeysPushed(Transition, kind="pushed", to="inputs"):
    """Something was pushed to inputs with keys; of too many the oldest are forgotten."""

    keys: tuple[tuple[str, str], ...]

    def apply(self, part: Filled) -> None:
        """Remembers the keys."""
        part.keys.update(dict.fromkeys(self.keys))
        for key in list(islice(part.keys, max(0, len(part.keys) - MOST_KEYS))):
            del part.keys[key]


@dataclass(frozen=True)
class EpochBegan(Transition, kind="epoch", to="inputs"):
    """An epoch begins, whose queries read the streams after these times; one that ``is_of_now`` is
    that of all who register before anything else comes."""

    number: int
    since: Times
    is_of_now: bool

    def apply(self, part: Filled) -> None:
        """Begins it."""
        part.epochs.begin(self.number, self.since, self.is_of_now)


@dataclass(frozen=True)
class RelationCopied(Transition, kind="copy", to="inputs"):
    """A relation has a queue for an epoch, in which what has happened so far holds from the
    beginning."""

    queue: QueueId
    pages: tuple[Page, ...]
    heartbeat: int

    def apply(self, part: Filled) -> None:
        """Adds and fills the queue."""
        copy = self.queue
        queue = part.add_copy(copy.input, copy.epoch)
        part.epochs.since.setdefault(copy.epoch, {})[queue.name] = self.heartbeat
        for page in self.pages:
            queue.add(page)
        queue.advance(self.heartbeat)


# -- as it is in a checkpoint ----------------------------------------------------------------


@dataclass(frozen=True)
class EpochsKept(Transition, kind="epochs", to="inputs"):
    """All epochs, and the copies of relations."""

    last: int
    has_moved: bool
    since: tuple[tuple[int, Times], ...]
    copies: tuple[str, ...]

    def apply(self, part: Filled) -> None:
        """Has them back; what copies hold is said later."""
        part.epochs.last, part.epochs.has_moved = self.last, self.has_moved
        part.epochs.since.update(self.since)
        for copy in map(QueueId, self.copies):
            part.add_copy(copy.input, copy.epoch)


@dataclass(frozen=True)
class LateKept(Transition, kind="late", to="inputs"):
    """The tuples of a stream that came too late, or broke a constraint, and are kept."""

    name: InputId
    kept: tuple[Page, ...]
    violating: tuple[Page, ...] = ()

    def apply(self, part: Filled) -> None:
        """Has them back."""
        for page in self.kept:
            part.streams[self.name].late_log.append(page)
        for page in self.violating:
            part.streams[self.name].violating_log.append(page)


@dataclass(frozen=True)
class PunctuationsKept(Transition, kind="punctuations", to="inputs"):
    """The punctuations of a stream that are remembered, and how much is forgotten."""

    name: InputId
    on_violation: str
    patterns: tuple[PatternData, ...]
    forgotten: int = 0

    def apply(self, part: Filled) -> None:
        """Has them remembered again."""
        remembered = Remembered(tuple(map(Pattern.of, self.patterns)), self.forgotten)
        part.streams[self.name].has_been_punctuated(self.on_violation, remembered)


@dataclass(frozen=True)
class QueueKept(Transition, kind="queue", to="inputs"):
    """What a queue holds, with the time from which on each page counts."""

    name: QueueId
    heartbeat: int
    freed_until: int
    placed: tuple[tuple[Page, int], ...]
    base: Page | None
    base_time: int

    def apply(self, part: Filled) -> None:
        """Has it hold that."""
        queue = part.queues[self.name]
        queue.restore(
            self.heartbeat, self.freed_until, list(self.placed), self.base, self.base_time
        )
        relation = part.relations.get(self.name.input)
        if relation is not None:
            relation.reader.cursor = relation.queue.heartbeat

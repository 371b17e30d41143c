"""What happens to running operators, and what a run of the engine begins with."""

from dataclasses import dataclass, field
from typing import Any

from millpond import version
from millpond.errors import StateError
from millpond.identities import OperatorId, QueueId
from millpond.intake.transitions import Filled
from millpond.planning.convergence import Merge
from millpond.planning.parts import Cut
from millpond.planning.physical import OutputOperator
from millpond.sharing.queries import Queries
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction
from millpond.storage.transitions import UNLOGGED, Transition


@dataclass(frozen=True)
class Opened(Transition, kind="open", to="queries"):
    """A run of the engine with these settings, on which times and samples depend."""

    run: int
    keeps: bool
    tick: int
    seed: int
    millpond: str = ""
    """The version that opened the store; empty: one of before that was said."""

    def apply(self, part: Queries) -> None:
        """Refuses to go on with other settings."""
        now = opened(part, self.run, self.keeps)
        for name in ("tick", "seed"):
            was, is_ = getattr(self, name), getattr(now, name)
            if was != is_:
                raise StateError(
                    f"the store was opened with {name} = {was}, now with {name} = {is_}; set the "
                    "same or another store"
                )
        part.ground.store.run = self.run
        part.keep_results(self.keeps)


def opened(queries: Queries, run: int, keeps: bool) -> Opened:
    """A run of the engine with the settings of now."""
    given = queries.ground.given
    return Opened(run, keeps, given.tick_microseconds, given.seed, version.VERSION)


@dataclass(frozen=True)
class Stepped(Transition, kind="step", to="queries"):
    """An operator has done a step: it has come to a time, and has put out a page, or nothing."""

    operator: OperatorId
    until: int
    page: Page | None = None
    state: Any = None
    """What its state is now, if it has one."""
    tags: str | None = None
    """Whose the rows of the page are, if it is that of a group."""

    def apply(self, part: Queries) -> None:
        """Publishes it."""
        log = part.log_of_output(self.operator)
        if log is not None:
            log.know_tags(self.page, self.tags)
        part.ground.inputs.epochs.moved()
        part.runtime.replay(self.operator, self.until, self.page, self.state)
        operator = part.graph.operators[self.operator]
        if isinstance(operator, OutputOperator):
            part.ground.deliveries.put_out(operator.query, self.page, self.until)


@dataclass(frozen=True)
class CutMade(Transition, kind="cut", to="queries"):
    """A part of an operator is one itself, or a part again."""

    part: OperatorId
    is_cut: bool
    at: int

    def apply(self, part: Queries) -> None:
        """Cuts it off, or fuses it."""
        part.runtime.cut(Cut(self.part, self.is_cut, self.at))


@dataclass(frozen=True)
class Merged(Transition, kind="merge", to="queries"):
    """Whoever has read one queue reads another one."""

    queue: QueueId
    into: QueueId
    at: int

    def apply(self, part: Queries) -> None:
        """Has them read it."""
        merge = Merge(self.queue, self.into, self.at)
        part.runtime.merge(merge)
        part.merged(merge)


@dataclass(frozen=True)
class Compacted(Transition, kind="compact", to="inputs"):
    """Pages of a queue are replaced by one."""

    queue: QueueId
    page: Page | None
    replaced: tuple[str, ...]
    """The files of the pages."""
    until: int | None
    change: Compaction | None = field(default=None, compare=False, metadata=UNLOGGED)
    """The same with the pages themselves, which have no files where nothing is to last."""

    def apply(self, part: Filled) -> None:
        """Replaces them, unless nobody needs any of them: so it was written once."""
        target, names = part.queues[self.queue], set(self.replaced)
        if self.change is not None:
            target.compact(self.change)
            return
        pages = tuple(each for each in target.pages if names.intersection(each.names))
        if pages or self.page is None or self.until is not None:
            target.compact(Compaction(self.page, pages, self.until))
            target.free()
        else:
            self.page.free()


@dataclass(frozen=True)
class OperatorKept(Transition, kind="operator", to="queries"):
    """How far an operator is, and what it keeps."""

    name: OperatorId
    cursor: int
    state: Any = None
    since: dict[QueueId, int] = field(default_factory=dict)
    """After which times it reads queues that others read before."""

    def apply(self, part: Queries) -> None:
        """Has it be that far."""
        part.runtime.replay(self.name, self.cursor, None, self.state)
        operator = part.graph.operators[self.name]
        if isinstance(operator, OutputOperator):
            part.ground.deliveries.put_out(operator.query, None, self.cursor)
        part.runtime.running[self.name].read_since(self.since)


@dataclass(frozen=True)
class QueuesPlaced(Transition, kind="queues", to="queries"):
    """Where a user has put queues in, or taken them out."""

    by_hand: dict[OperatorId, bool]

    def apply(self, part: Queries) -> None:
        """Puts them there."""
        for operator, has_queue in self.by_hand.items():
            part.place_queue(operator, has_queue)

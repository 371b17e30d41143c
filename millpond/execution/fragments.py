"""Fragments: what an operator reads, fused down to the queues below it.

A fragment answers three questions about its relation, each for a step (after, until]: which
elements *started*, which *ended* (of those that had started before), and which were *alive* at the
step's beginning. Over a windowed stream all three are ranges of the stream's own pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from millpond.cql.expressions import Expression
from millpond.cql.node import Node
from millpond.execution.surroundings import Surroundings
from millpond.identities import QueueId
from millpond.kernels.branches import MARKS, ArrowBranch, can_evaluate
from millpond.kernels.offenders import Offenders, can_find
from millpond.planning.attempts import may_fail
from millpond.planning.branches import Branch, Outputs, branches
from millpond.planning.predicates import substitute
from millpond.planning.window_times import WindowTimes
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.pages import Page, Span, concatenated, total_rows
from millpond.storage.portions import FileSpan, Portion
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader, Retention

STARTED, ENDED, ALIVE = "started", "ended", "alive"


class Fragment:
    """One input of a running operator."""

    def __init__(self, node: Node, around: Surroundings, outputs: Outputs) -> None:
        self.node = node
        self._around = around
        self._outputs = outputs
        self._open = [ReadBranch(branch, around, outputs) for branch in branches(node)]
        self._past: list[tuple[ReadBranch, Reader]] = []
        """Queues that are read up to a time, for what windows still need of before."""
        self._branches = list(self._open)
        self.subscriptions: list[tuple[Queue, Reader]] = []

    @property
    def is_local(self) -> bool:
        """Whether all of it can be evaluated without Spark."""
        return all(branch.is_local for branch in self._branches)

    def read(self, modes: Iterable[str], after: int, until: int) -> Reading:
        """The parts of pages that a step reads; nothing is opened yet."""
        return Reading(
            self._branches,
            {mode: [b.spans(mode, after, until) for b in self._branches] for mode in modes},
        )

    def whole_at(self, time: int) -> Reading | None:
        """All elements that are alive at a time, if their pages are there: those of windows over
        streams are until they leave."""
        if self._past or not all(branch.holds_its_window for branch in self._open):
            return None
        return self.read((ALIVE,), time, time)

    @property
    def past(self) -> list[tuple[Queue, Reader]]:
        """The queues that are read up to a time only."""
        return [(branch.queue, reader) for branch, reader in self._past]

    def subscribe(self, cursor: int, needs: frozenset[str]) -> None:
        """Registers this fragment with its queues, stating what it will need again."""
        self.subscriptions = [branch.subscribe(cursor, needs) for branch in self._open]

    # -- reading other queues from a time on -----------------------------------------------

    def can_reread(self, node: Node, at: int) -> bool:
        """Whether what it reads can be told by pages into what is up to a time and what follows."""
        gone, _ = self._changed(node)
        queues = [self._open[index].queue for index in gone]
        return all(queue.is_stream or not queue.is_cut_by(at) for queue in queues)

    def reread(self, node: Node, at: int, needs: frozenset[str]) -> None:
        """Reads another fragment of the same meaning, for what is later than a time; its operator
        has come just there."""
        gone, new = self._changed(node)
        added = [ReadBranch(branch, self._around, self._outputs, at) for branch in new]
        subscribed = [branch.subscribe(at, needs) for branch in added]
        for index in gone:
            (queue, reader), branch = self.subscriptions[index], self._open[index]
            branch.through = at
            self._past.append((branch, queue.bound(reader, at)))
        kept = [index for index in range(len(self._open)) if index not in gone]
        self._open = [self._open[index] for index in kept] + added
        self.subscriptions = [self.subscriptions[index] for index in kept] + subscribed
        self.node = node
        self._branches = [*self._open, *(branch for branch, _ in self._past)]

    def _changed(self, node: Node) -> tuple[list[int], list[Branch]]:
        """Which branches another fragment has not, and which it has that are new."""
        new, gone = branches(node), []
        for index, branch in enumerate(self._open):
            if branch.branch in new:
                new.remove(branch.branch)
            else:
                gone.append(index)
        return gone, new

    def let_go(self) -> list[QueueId]:
        """Forgets what is read up to a time and needed no more; the names of those queues."""
        over = []
        for branch, reader in self._past:
            branch.queue.free()
            if not branch.queue.is_held_by(reader):
                over.append((branch, reader))
        for branch, reader in over:
            branch.queue.unsubscribe(reader)
            self._past.remove((branch, reader))
        self._branches = [*self._open, *(branch for branch, _ in self._past)]
        return [branch.queue.name for branch, _ in over]

    def waiting(self, cursor: int, until: int) -> int:
        """About how many rows a step up to ``until`` would start with."""
        rows = 0
        for branch in self._branches:
            rows += branch.waiting(cursor, until)
        return rows

    def ending(self, after: int, until: int) -> int:
        """About how many rows end within the step."""
        return sum(branch.ending(after, until) for branch in self._branches)


@dataclass(frozen=True)
class Reading:
    """What one step reads of a fragment: parts of pages, for each mode and branch."""

    branches: list[ReadBranch]
    spans: dict[str, list[list[Span]]]

    @property
    def pages(self) -> list[Page]:
        """All pages read, some perhaps more than once."""
        return [s.page for spans in self.spans.values() for part in spans for s in part]

    def rows(self, *modes: str) -> int:
        """About how many rows are read."""
        return sum(total_rows(part) for mode in modes for part in self.spans.get(mode, ()))

    def with_fresh(self, fresh: Mapping[QueueId, Page], after: int, until: int) -> Reading:
        """The reading with pages that are in no queue yet: what starts in them.

        Nothing of what starts in a step has ended or was alive when it began.
        """
        started = [
            spans + branch.fresh_spans(fresh.get(branch.queue.name), after, until)
            for branch, spans in zip(self.branches, self.spans[STARTED], strict=True)
        ]
        return Reading(self.branches, self.spans | {STARTED: started})

    def limited(self, after: int, until: int) -> Reading:
        """The reading up to an earlier time."""
        spans = {
            mode: [
                [branch.limited(mode, span, after, until) for span in part]
                for branch, part in zip(self.branches, parts, strict=True)
            ]
            for mode, parts in self.spans.items()
        }
        return Reading(self.branches, spans)

    def fresh_portions(self, queue: QueueId, after: int, until: int) -> list[Portion]:
        """What is made of rows that are to come into a queue, by whoever has them."""
        return [
            portion
            for branch in self.branches
            if branch.queue.name == queue
            for portion in branch.fresh_portion(after, until)
        ]

    def evaluated(self, modes: Sequence[str]) -> pa.Table | None:
        """The rows of these modes without Spark; None if an expression needs Spark."""
        tables = [
            branch.evaluated(mode, spans)
            for mode in modes
            for branch, spans in zip(self.branches, self.spans[mode], strict=True)
        ]
        found = [table for table in tables if table is not None]
        if len(found) < len(tables):
            return None
        return pa.concat_tables([table for table in found if table.num_rows] or found[:1])

    def portions(self, modes: Sequence[str]) -> list[Portion] | None:
        """What others must know to evaluate these modes without Spark; None if they cannot."""
        found = [
            branch.portion(mode, spans)
            for mode in modes
            for branch, spans in zip(self.branches, self.spans[mode], strict=True)
        ]
        known = [portion for portion in found if portion is not None]
        return known if len(known) == len(found) else None

    def offending_here(self, most: int) -> list[str] | None:
        """Some of the rows that start on which an expression fails, as text; None if an expression
        needs Spark."""
        found: list[str] = []
        for branch, spans in zip(self.branches, self.spans[STARTED], strict=True):
            rows = branch.offending_here(spans, most)
            if rows is None:
                return None
            found += rows
        return found[:most]


class ReadBranch:
    """A branch bound to its queue, with its selections prepared; it reads what is later than
    ``since`` and not later than ``through``."""

    def __init__(
        self, branch: Branch, around: Surroundings, outputs: Outputs, since: int | None = None
    ) -> None:
        self.queue = around.queues[branch.leaf.queue]
        self.window = branch.window
        self.through = FOREVER
        self.branch = branch
        began = around.since.get(self.queue.name) if self.queue.is_stream else None
        known = [time for time in (since, began) if time is not None]
        self._since = max(known, default=None)
        self.outputs = outputs
        self.seed = around.limits.seed
        expressions = [
            branch.below,
            branch.predicate,
            *(substitute(e, branch.expressions) for e, _ in outputs.expressions),
        ]
        self.failing = [e for e in expressions if e is not None and may_fail(e)]
        """The expressions that have no value on some rows."""
        self._here = (
            ArrowBranch(branch, outputs, around.limits.seed)
            if can_evaluate(branch, outputs)
            else None
        )
        self._nothing: dict[bool, pa.Table] = {}
        """What comes of no rows: most steps read nothing in one mode or another."""

    @property
    def is_local(self) -> bool:
        """Whether its expressions can be evaluated without Spark."""
        return self._here is not None

    @property
    def holds_its_window(self) -> bool:
        """Whether it reads a stream's tuples again when they leave, so that they are there."""
        has_end = self.window is not None and self.window.length is not None
        return self.queue.is_stream and has_end and self.through == FOREVER

    def subscribe(self, cursor: int, needs: frozenset[str]) -> tuple[Queue, Reader]:
        """Registers it with its queue."""
        queue = self.queue
        content, scans = ALIVE in needs and not queue.is_stream, ALIVE in needs and queue.is_stream
        reader = Reader(cursor, retention(queue, self.window, needs), content, scans)
        if self._since is not None:
            reader.since = self._since
        return queue, queue.subscribe(reader)

    def spans(self, mode: str, after: int, until: int) -> list[Span]:
        """The parts of the queue's pages that a mode asks for."""
        queue = self.queue
        if queue.is_stream:
            low, high = self._tuple_times(mode, after, until)
            if low >= high:
                return []
            if mode != ALIVE:
                return queue.between(low, high)
            return queue.covering(low, high, BEGINNING - 1 if self._since is None else self._since)
        if mode == STARTED:
            low, high = self._starting(after, until)
            return queue.between(low, high) if low < high else []
        return queue.content(after) if mode == ALIVE else self._ending(after, until)

    def _ending(self, after: int, until: int) -> list[Span]:
        """The elements that end, of those it reads; no page lies on both sides of its bounds."""
        found = self.queue.ending(after, until)
        if self._since is None and self.through == FOREVER:
            return found
        since = BEGINNING - 1 if self._since is None else self._since
        return [s for s in found if s.page.first > since and s.page.last <= self.through]

    def limited(self, mode: str, span: Span, after: int, until: int) -> Span:
        """A part of a page for a step that goes less far."""
        if mode == ALIVE:
            return span
        high = self._tuple_times(mode, after, until)[1] if self.queue.is_stream else until
        return span if high >= span.until else replace(span, until=high)

    def fresh_spans(self, page: Page | None, after: int, until: int) -> list[Span]:
        """What of a page that comes into the queue starts within the step."""
        low, high = self._starting(after, until)
        if page is None or low >= high or page.last <= low or page.first > high:
            return []
        return [Span(page, low, high)]

    def fresh_portion(self, after: int, until: int) -> list[Portion]:
        """The same of rows that others have."""
        low, high = self._starting(after, until)
        if low >= high:
            return []
        span = FileSpan("", low, high, ends=False, is_whole=False)
        return [Portion(self.branch, self.outputs, self.seed, False, (span,))]

    def _starting(self, after: int, until: int) -> tuple[int, int]:
        if self.queue.is_stream:
            return self._tuple_times(STARTED, after, until)
        return (after if self._since is None else max(after, self._since)), min(until, self.through)

    def columns(self) -> dict[str, Expression]:
        """What an operator wants of the queue's columns, by name."""
        return {
            name: substitute(expression, self.branch.expressions)
            for expression, name in self.outputs.expressions
        }

    def _tuple_times(self, mode: str, after: int, until: int) -> tuple[int, int]:
        low, high = (
            (after, until) if self.window is None else tuple_times(self.window, mode, after, until)
        )
        return (low if self._since is None else max(low, self._since)), min(high, self.through)

    def waiting(self, cursor: int, until: int) -> int:
        low, high = self._starting(cursor, until)
        return self.queue.waiting(low, high) if low < high else 0

    def ending(self, after: int, until: int) -> int:
        if self.window is not None:
            low, high = self._tuple_times(ENDED, after, until)
            return self.queue.waiting(low, high) if low < high else 0
        return 0 if self.queue.is_stream else total_rows(self._ending(after, until))

    def portion(self, mode: str, spans: list[Span]) -> Portion | None:
        """The same for whoever has the files."""
        if self._here is None:
            return None
        of_files = tuple(each for span in spans for each in FileSpan.of(span))
        return Portion(self.branch, self.outputs, self.seed, mode == ENDED, of_files)

    def offending_here(self, spans: list[Span], most: int) -> list[str] | None:
        """Rows on which an expression fails, as text; None if an expression needs Spark."""
        if not self.failing:
            return []
        if not can_find(self.failing):
            return None
        rows = concatenated(spans, self.queue.schema)
        schema = self.branch.leaf.schema
        marks = [rows[name] for name in MARKS if name in rows.column_names]
        columns = [*rows.columns[rows.num_columns - len(schema) :], *marks]
        return Offenders(self.failing, schema).among(columns, rows.num_rows, most)

    def evaluated(self, mode: str, spans: list[Span]) -> pa.Table | None:
        """The rows of a mode, filtered and projected here, if that gives the same bits."""
        if self._here is None:
            return None
        ended = mode == ENDED
        rows = concatenated(spans, self.queue.schema)
        if rows.num_rows:
            return self._here.rows(rows, ended)
        if ended not in self._nothing:
            self._nothing[ended] = self._here.rows(rows, ended)
        return self._nothing[ended]


def retention(queue: Queue, window: WindowTimes | None, needs: frozenset[str]) -> Retention:
    """Until when a reader needs the pages of a queue."""
    if window is not None:
        comes_back = ALIVE in needs or (ENDED in needs and window.length is not None)
        return Retention(window, comes_back)
    return Retention(ends=ENDED in needs and not queue.is_stream)


def tuple_times(times: WindowTimes, mode: str, after: int, until: int) -> tuple[int, int]:
    """The range (low, high] of stream times whose tuples a mode asks for."""
    if mode == STARTED:
        return times.latest_entered(after), times.latest_entered(until)
    if mode == ENDED:
        return times.latest_left(after), min(times.latest_left(until), times.latest_entered(after))
    return times.latest_left(after), times.latest_entered(after)

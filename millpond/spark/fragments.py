"""Fragments: what an operator reads, fused down to the queues below it.

A fragment answers three questions about its relation, each for a step (after, until]: which
elements *started*, which *ended* (of those that had started before), and which were *alive* at the
step's beginning. Over a windowed stream all three are ranges of the stream's own pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from millpond.cql.expressions import Expression
from millpond.cql.node import Node
from millpond.kernels.branches import ArrowBranch, can_evaluate
from millpond.planning.attempts import may_fail, success
from millpond.planning.branches import Branch, Outputs, branches
from millpond.planning.predicates import substitute
from millpond.planning.window_times import WindowTimes
from millpond.schema import BEGINNING
from millpond.spark.branch_columns import BranchColumns
from millpond.spark.expressions import lower
from millpond.spark.frames import Frame, Selection, leaf, union
from millpond.spark.surroundings import Surroundings
from millpond.storage.pages import Page, Span, concatenated, total_rows
from millpond.storage.portions import Part, Portion
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader, Retention

STARTED, ENDED, ALIVE = "started", "ended", "alive"


class Fragment:
    """One input of a running operator."""

    def __init__(self, node: Node, around: Surroundings, outputs: Outputs) -> None:
        self.node = node
        self._branches = [_ReadBranch(branch, around, outputs) for branch in branches(node)]

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

    def subscribe(self, cursor: int, needs: frozenset[str]) -> list[tuple[Queue, Reader]]:
        """Registers this fragment with its queues, stating what it will need again."""
        found = []
        for branch in self._branches:
            queue = branch.queue
            content = ALIVE in needs and not queue.is_stream
            scans = ALIVE in needs and queue.is_stream
            kept = retention(queue, branch.window, needs)
            reader = queue.subscribe(Reader(cursor, kept, needs_content=content, scans=scans))
            found.append((queue, reader))
        return found

    def waiting(self, cursor: int, until: int) -> int:
        """About how many rows a step up to ``until`` would start with."""
        return sum(branch.waiting(cursor, until) for branch in self._branches)

    def ending(self, after: int, until: int) -> int:
        """About how many rows end within the step."""
        return sum(branch.ending(after, until) for branch in self._branches)


@dataclass(frozen=True)
class Reading:
    """What one step reads of a fragment: parts of pages, for each mode and branch."""

    branches: list[_ReadBranch]
    spans: dict[str, list[list[Span]]]

    @property
    def pages(self) -> list[Page]:
        """All pages read, some perhaps more than once."""
        return [s.page for spans in self.spans.values() for part in spans for s in part]

    def rows(self, *modes: str) -> int:
        """About how many rows are read."""
        return sum(total_rows(part) for mode in modes for part in self.spans.get(mode, ()))

    def with_fresh(self, fresh: Mapping[str, Page], after: int, until: int) -> Reading:
        """The same with pages that are in no queue yet: what starts in them.

        Nothing of what starts in a step has ended or was alive when it began.
        """
        started = [
            spans + branch.fresh_spans(fresh.get(branch.queue.name), after, until)
            for branch, spans in zip(self.branches, self.spans[STARTED], strict=True)
        ]
        return Reading(self.branches, self.spans | {STARTED: started})

    def limited(self, after: int, until: int) -> Reading:
        """The same up to an earlier time."""
        spans = {
            mode: [
                [branch.limited(mode, span, after, until) for span in part]
                for branch, part in zip(self.branches, parts, strict=True)
            ]
            for mode, parts in self.spans.items()
        }
        return Reading(self.branches, spans)

    def fresh_portions(self, queue: str, after: int, until: int) -> list[Portion]:
        """What is made of rows that are to come into a queue, by whoever has them."""
        return [
            portion
            for branch in self.branches
            if branch.queue.name == queue
            for portion in branch.fresh_portion(after, until)
        ]

    def frame(self, mode: str) -> Frame | None:
        """The elements of a mode; those that ended come as their own minus."""
        pairs = zip(self.branches, self.spans[mode], strict=True)
        return union(*(branch.frame(mode, spans) for branch, spans in pairs))

    def changes(self) -> Frame | None:
        """Started elements, and a minus for each earlier element that ended."""
        return union(self.frame(STARTED), self.frame(ENDED))

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

    def offending(self) -> Frame | None:
        """The rows that start on which an expression fails, as they are in their queues."""
        pairs = zip(self.branches, self.spans[STARTED], strict=True)
        return union(*(branch.offending(spans) for branch, spans in pairs))


class _ReadBranch:
    """A branch bound to its queue, with its selections prepared."""

    def __init__(self, branch: Branch, around: Surroundings, outputs: Outputs) -> None:
        self.queue = around.queues[branch.leaf.queue]
        self.window = branch.window
        self._branch = branch
        self._since = around.since.get(self.queue.name)
        self._outputs = outputs
        self._seed = around.limits.seed
        columns = BranchColumns(branch, outputs, self._seed)
        self._selections = {ended: Selection(partial(columns.of, ended)) for ended in (False, True)}
        expressions = [
            branch.predicate,
            *(substitute(e, branch.expressions) for e, _ in outputs.expressions),
        ]
        self._failing = [e for e in expressions if e is not None and may_fail(e)]
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
            return queue.between(after, until)
        return queue.content(after) if mode == ALIVE else queue.ending(after, until)

    def limited(self, mode: str, span: Span, after: int, until: int) -> Span:
        """A part of a page for a step that goes less far."""
        if mode == ALIVE:
            return span
        high = self._tuple_times(mode, after, until)[1] if self.queue.is_stream else until
        return span if high >= span.until else replace(span, until=high)

    def fresh_spans(self, page: Page | None, after: int, until: int) -> list[Span]:
        """What of a page that comes into the queue starts within the step."""
        low, high = self._starting(after, until)
        if page is None or page.last <= low or page.first > high:
            return []
        return [Span(page, low, high)]

    def fresh_portion(self, after: int, until: int) -> list[Portion]:
        """The same of rows that others have."""
        low, high = self._starting(after, until)
        if low >= high:
            return []
        part = Part("", low, high, ends=False, is_whole=False)
        return [Portion(self._branch, self._outputs, self._seed, False, (part,))]

    def _starting(self, after: int, until: int) -> tuple[int, int]:
        return self._tuple_times(STARTED, after, until) if self.queue.is_stream else (after, until)

    def columns(self) -> dict[str, Expression]:
        """What an operator wants of the queue's columns, by name."""
        return {
            name: substitute(expression, self._branch.expressions)
            for expression, name in self._outputs.expressions
        }

    def frame(self, mode: str, spans: list[Span]) -> Frame | None:
        """The rows of a mode, filtered and projected by Spark."""
        rows = leaf((self, mode), self.queue.schema, spans)
        return None if rows is None else self._selections[mode == ENDED].of(rows)

    def _tuple_times(self, mode: str, after: int, until: int) -> tuple[int, int]:
        low, high = (
            (after, until) if self.window is None else tuple_times(self.window, mode, after, until)
        )
        return (low if self._since is None else max(low, self._since)), high

    def waiting(self, cursor: int, until: int) -> int:
        return self.queue.waiting(*self._starting(cursor, until))

    def ending(self, after: int, until: int) -> int:
        if self.window is not None:
            low, high = self._tuple_times(ENDED, after, until)
            return self.queue.waiting(low, high) if low < high else 0
        return 0 if self.queue.is_stream else self.queue.count_ending(after, until)

    def portion(self, mode: str, spans: list[Span]) -> Portion | None:
        """The same for whoever has the files."""
        if self._here is None:
            return None
        parts = tuple(part for span in spans for part in Part.of(span))
        return Portion(self._branch, self._outputs, self._seed, mode == ENDED, parts)

    def offending(self, spans: list[Span]) -> Frame | None:
        """The rows on which an expression fails, written as text."""
        rows = leaf((self, "offending"), self.queue.schema, spans) if self._failing else None
        return None if rows is None else Selection(self._offenders).of(rows)

    def _offenders(self) -> tuple[list[SparkColumn], SparkColumn]:
        names = [name for name in self.queue.schema.names if name.startswith("c")]
        inputs = [F.col(name) for name in names]
        fails = F.lit(False)
        for expression in self._failing:
            fails = fails | ~lower(success(expression), inputs)
        values = [F.coalesce(column.cast("string"), F.lit("NULL")) for column in inputs]
        return [F.concat_ws(", ", *values).alias("row")], fails

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

"""Fragments: what an operator reads, fused down to the queues below it.

A fragment answers three questions about its relation, each for a step (after, until]: which
elements *started*, which *ended* (of those that had started before), and which were *alive* at the
step's beginning. Over a windowed stream all three are ranges of the stream's own pages.

A tree of filters, projections, windows and signed sums is flattened into branches, one for each
queue read, each with one condition and one select list over the queue's own columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from millpond.cql.algebra import Filter, Project, RangeWindow, Sample
from millpond.cql.expressions import Column, Expression
from millpond.cql.node import Node
from millpond.errors import MillpondError
from millpond.kernels.columns import integers
from millpond.planning.nodes import Combine
from millpond.planning.physical import QueueRead
from millpond.planning.predicates import all_columns, conjoin, conjuncts, substitute
from millpond.schema import FOREVER
from millpond.spark.expressions import lower
from millpond.spark.frames import Frame, Selection, Slot, union
from millpond.spark.surroundings import Surroundings
from millpond.spark.window_times import WindowTimes
from millpond.storage.pages import Page, concatenated
from millpond.storage.queues import Queue, Reader

STARTED, ENDED, ALIVE = "started", "ended", "alive"
ELEMENT = ("_ts", "_te", "_w")


@dataclass(frozen=True)
class Branch:
    """One way from a queue to the top of a fragment; expressions see the queue's columns."""

    leaf: QueueRead
    expressions: tuple[Expression, ...]
    predicate: Expression | None = None
    window: WindowTimes | None = None
    sample: Sample | None = None
    sign: int = 1


def branches(node: Node) -> list[Branch]:
    """The branches of a fragment."""
    match node:
        case QueueRead():
            return [Branch(node, all_columns(node))]
        case RangeWindow():
            return [replace(b, window=WindowTimes.of(node)) for b in branches(node.input)]
        case Sample():
            return [replace(b, sample=node) for b in branches(node.input)]
        case Combine():
            right = [replace(b, sign=b.sign * node.sign) for b in branches(node.right)]
            return branches(node.left) + right
        case Filter():
            return [_filtered(b, node.predicate) for b in branches(node.input)]
        case Project():
            return [
                replace(
                    b, expressions=tuple(substitute(e, b.expressions) for e in node.expressions)
                )
                for b in branches(node.input)
            ]
        case _:
            raise MillpondError(f"internal: {node.label()} is not linear")


def _filtered(branch: Branch, predicate: Expression) -> Branch:
    part = substitute(predicate, branch.expressions)
    return replace(branch, predicate=conjoin([*conjuncts(branch.predicate), part]))


@dataclass(frozen=True)
class Outputs:
    """What an operator wants of each row: expressions over the fragment's columns, with names.

    ``names`` are those of start, end and weight (or, over a stream, time and order). ``extra`` are
    constant columns.
    """

    expressions: tuple[tuple[Expression, str], ...]
    names: tuple[str, ...] = ELEMENT
    extra: tuple[SparkColumn, ...] = ()

    @staticmethod
    def all_of(node: Node, names: tuple[str, ...] = ELEMENT, first: int = 0) -> Outputs:
        """Every column of the fragment, as c0… or from another number on."""
        columns = all_columns(node)
        return Outputs(tuple((c, f"c{first + i}") for i, c in enumerate(columns)), names)


class Fragment:
    """One input of a running operator."""

    def __init__(
        self,
        node: Node,
        around: Surroundings,
        outputs: Outputs,
    ) -> None:
        self.node = node
        self._branches = [_ReadBranch(branch, around, outputs) for branch in branches(node)]

    def frame(self, mode: str, after: int, until: int) -> Frame | None:
        """The elements of a mode; those that ended come as their own minus."""
        return union(*(branch.frame(mode, after, until) for branch in self._branches))

    def changes(self, after: int, until: int) -> Frame | None:
        """Started elements, and a minus for each earlier element that ended."""
        return union(self.frame(STARTED, after, until), self.frame(ENDED, after, until))

    def held(self, modes: Sequence[str], after: int, until: int) -> pa.Table | None:
        """The rows of these modes without Spark, if the fragment only renames an operator's output.

        Such rows are in the driver already; None for every other fragment.
        """
        (branch, *others) = self._branches
        if others or not branch.only_renames:
            return None
        tables = [branch.held(mode, after, until) for mode in modes]
        return pa.concat_tables(tables)

    def subscribe(self, cursor: int, needs: frozenset[str]) -> list[tuple[Queue, Reader]]:
        """Registers this fragment with its queues, stating what it will need again."""
        found = []
        for branch in self._branches:
            queue = branch.queue
            content = ALIVE in needs and not queue.is_stream
            scans = ALIVE in needs and queue.is_stream
            until = retention(queue, branch.window, needs)
            reader = Reader(cursor, until, needs_content=content, scans=scans)
            queue.readers.append(reader)
            found.append((queue, reader))
        return found

    def close(self) -> None:
        """Gives up what the fragment holds for its plans."""
        for branch in self._branches:
            branch.close()

    def waiting(self, cursor: int, until: int) -> int:
        """About how many rows a step up to ``until`` would start with."""
        return sum(branch.waiting(cursor, until) for branch in self._branches)

    def ending(self, after: int, until: int) -> int:
        """About how many rows end within the step."""
        return sum(branch.ending(after, until) for branch in self._branches)


class _ReadBranch:
    """A branch bound to its queue, with its selections prepared."""

    def __init__(
        self,
        branch: Branch,
        around: Surroundings,
        outputs: Outputs,
    ) -> None:
        self.queue = around.queues[branch.leaf.queue]
        self.window = branch.window
        self._branch = branch
        self._frames = around.frames
        self._since = around.since.get(self.queue.name)
        self._seed = around.limits.seed
        self._outputs = outputs
        self._slots: dict[str, Slot] = {}
        self._selections: dict[bool, Selection] = {}

    # -- reading ---------------------------------------------------------------------------

    def frame(self, mode: str, after: int, until: int) -> Frame | None:
        rows = self._rows(mode, after, until)
        if rows is None:
            return None
        ended = mode == ENDED
        if ended not in self._selections:
            self._selections[ended] = self._selection(ended)
        return self._selections[ended].of(rows)

    def _rows(self, mode: str, after: int, until: int) -> Frame | None:
        queue = self.queue
        if mode not in self._slots:
            self._slots[mode] = self._frames.slot(queue.schema)
        slot = self._slots[mode]
        if queue.is_stream:
            return slot.pages(self._stream_pages(mode, after, until))
        if mode == STARTED:
            return slot.pages(queue.between(after, until))
        if mode == ALIVE:
            return slot.pages(queue.content(after))
        return slot.table(queue.ending(after, until))

    def close(self) -> None:
        """Gives the slots up."""
        for slot in self._slots.values():
            slot.close()

    def _stream_pages(self, mode: str, after: int, until: int) -> list[Page]:
        low, high = self._tuple_times(mode, after, until)
        if low >= high:
            return []
        return covering(self.queue, low, high) if mode == ALIVE else self.queue.between(low, high)

    def _tuple_times(self, mode: str, after: int, until: int) -> tuple[int, int]:
        low, high = (
            (after, until) if self.window is None else tuple_times(self.window, mode, after, until)
        )
        return (low if self._since is None else max(low, self._since)), high

    def waiting(self, cursor: int, until: int) -> int:
        low, high = cursor, until
        if self.queue.is_stream:
            low, high = self._tuple_times(STARTED, cursor, until)
        return self.queue.waiting(low, high)

    def ending(self, after: int, until: int) -> int:
        if self.window is not None:
            low, high = self._tuple_times(ENDED, after, until)
            return self.queue.waiting(low, high) if low < high else 0
        return 0 if self.queue.is_stream else self.queue.count_ending(after, until)

    @property
    def only_renames(self) -> bool:
        """Whether the branch is an operator's queue with columns picked and renamed."""
        branch = self._branch
        plain = all(isinstance(e, Column) for e in branch.expressions)
        plain = plain and all(isinstance(e, Column) for e, _ in self._outputs.expressions)
        untouched = branch.predicate is None and branch.window is None and branch.sample is None
        return plain and untouched and branch.sign == 1 and not branch.leaf.is_base

    def held(self, mode: str, after: int, until: int) -> pa.Table:
        """The rows of a mode, renamed."""
        queue, outputs = self.queue, self._outputs
        if mode == ENDED:
            rows = queue.ending(after, until)
            times = [
                rows["_te"],
                pa.array(np.full(rows.num_rows, FOREVER)),
                pa.array(-integers(rows["_w"])),
            ]
        else:
            rows = concatenated(queue.between(after, until), queue.schema)
            times = [rows[name] for name in queue.schema.names if name in ELEMENT]
        data = [
            rows[f"c{substitute(e, self._branch.expressions).position}"]  # type: ignore[union-attr]
            for e, _ in outputs.expressions
        ]
        names = [*outputs.names, *(name for _, name in outputs.expressions)]
        return pa.Table.from_arrays([*times, *data], names=names)

    # -- columns ---------------------------------------------------------------------------

    def _selection(self, ended: bool) -> Selection:
        branch, outputs = self._branch, self._outputs
        inputs = [F.col(f"c{i}") for i in range(len(branch.leaf.schema))]
        meta = self._stream_columns() if len(outputs.names) == 2 else self._element(ended)
        columns = [
            *(column.alias(name) for column, name in zip(meta, outputs.names, strict=True)),
            *(
                lower(substitute(e, branch.expressions), inputs).alias(name)
                for e, name in outputs.expressions
            ),
            *outputs.extra,
        ]
        return Selection(self._frames.session, columns, self._condition(inputs))

    def _stream_columns(self) -> list[SparkColumn]:
        """Time and order: of arrival for base streams, the weight for computed ones."""
        return [F.col("_ts"), F.col("_seq") if self._branch.leaf.is_base else self._weight()]

    def _element(self, ended: bool) -> list[SparkColumn]:
        start, end = F.col("_ts"), F.col("_te")
        if self.window is not None:
            start, end = self.window.enter_column(), self.window.leave_column()
        weight = self._weight() * F.lit(self._branch.sign)
        return [end, F.lit(FOREVER), -weight] if ended else [start, end, weight]

    def _weight(self) -> SparkColumn:
        leaf, sample = self._branch.leaf, self._branch.sample
        if leaf.of_stream and leaf.is_base:
            return F.lit(1).cast("long")
        if sample is None:
            return F.col("_w")
        data = [F.col(f"c{i}") for i in range(len(leaf.schema))]
        copies = F.filter(
            F.sequence(F.lit(1).cast("long"), F.col("_w")),
            lambda n: self._is_sampled(sample, F.col("_ts"), *data, n),
        )
        return F.size(copies).cast("long")

    def _condition(self, inputs: Sequence[SparkColumn]) -> SparkColumn | None:
        """The branch's predicate, its sampling, and for slides that the tuple is ever inside."""
        parts = [lower(part, inputs) for part in conjuncts(self._branch.predicate)]
        sample = self._branch.sample
        if sample is not None and self._branch.leaf.is_base:
            parts.append(self._is_sampled(sample, F.col("_seq")))
        elif sample is not None:
            parts.append(self._weight() > 0)
        if self.window is not None and self.window.slide is not None:
            parts.append(self.window.enter_column() < self.window.leave_column())
        condition = None
        for part in parts:
            condition = part if condition is None else condition & part
        return condition

    def _is_sampled(self, sample: Sample, *identity: SparkColumn) -> SparkColumn:
        """By a hash of the tuple's identity, so that no cut and no schedule matters."""
        limit = round(sample.percent / 100 * 2**40)
        marker = F.xxhash64(F.lit(self._seed), F.lit(self._branch.leaf.queue), *identity)
        return F.pmod(marker, F.lit(2**40)) < limit


def retention(
    queue: Queue, window: WindowTimes | None, needs: frozenset[str]
) -> Callable[[Page], int]:
    """Until when a reader needs a page of the queue."""
    if window is not None:
        comes_back = ALIVE in needs or (ENDED in needs and window.length is not None)
        if comes_back:
            return lambda page: window.leave(page.last)
        return lambda page: window.enter(page.last)
    if ENDED in needs and not queue.is_stream:
        return lambda page: max(page.last, page.last_end or page.last)
    return lambda page: page.last


def tuple_times(times: WindowTimes, mode: str, after: int, until: int) -> tuple[int, int]:
    """The range (low, high] of stream times whose tuples a mode asks for."""
    if mode == STARTED:
        return times.latest_entered(after), times.latest_entered(until)
    if mode == ENDED:
        return times.latest_left(after), min(times.latest_left(until), times.latest_entered(after))
    return times.latest_left(after), times.latest_entered(after)


def covering(queue: Queue, after: int, until: int) -> list[Page]:
    """Pages with all rows of (after, until], and perhaps more at its old end."""
    queue.cut_at(until)
    return [page for page in queue.pages if page.last > after and page.last <= until]

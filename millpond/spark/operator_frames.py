"""What an operator reads, as data frames: its branches as Spark columns, and plans by their shape.

All of it is prepared once for an operator, and goes with it.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millpond.cql.coercion import as_text
from millpond.cql.expressions import Column
from millpond.execution.fragments import ENDED, STARTED, ReadBranch, Reading
from millpond.execution.jobs import Pairs, Parts
from millpond.execution.pair_output import PairOutput
from millpond.kernels.branches import MARKS
from millpond.planning.attempts import success
from millpond.planning.branches import ELEMENT
from millpond.schema import Type
from millpond.spark.branch_columns import BranchColumns
from millpond.spark.expressions import lower
from millpond.spark.frames import Frame, Frames, Plans, Selection, leaf, union
from millpond.storage.pages import Page, Span

Answer = TypeVar("Answer")


class OperatorFrames:
    """The frames of one operator."""

    def __init__(self, frames: Frames) -> None:
        self._plans = Plans(frames)
        self._selections: WeakKeyDictionary[ReadBranch, dict[bool, Selection]] = WeakKeyDictionary()
        self._pairs: dict[PairOutput, Selection] = {}
        self._guard = threading.Lock()

    # -- what is read ----------------------------------------------------------------------

    def of(self, parts: Parts) -> Frame | None:
        """The rows of some parts; those that ended come as their own minus."""
        return union(*(self._in_mode(reading, mode) for reading, modes in parts for mode in modes))

    def _in_mode(self, reading: Reading, mode: str) -> Frame | None:
        pairs = zip(reading.branches, reading.spans[mode], strict=True)
        return union(*(self._of_branch(branch, mode, spans) for branch, spans in pairs))

    def _of_branch(self, branch: ReadBranch, mode: str, spans: list[Span]) -> Frame | None:
        rows = leaf((branch, mode), branch.queue.schema, spans)
        return None if rows is None else self._selection(branch, mode == ENDED).of(rows)

    def _selection(self, branch: ReadBranch, ended: bool) -> Selection:
        with self._guard:
            known = self._selections.setdefault(branch, {})
            if ended not in known:
                columns = BranchColumns(branch.branch, branch.outputs, branch.seed)
                known[ended] = Selection(partial(columns.of, ended))
            return known[ended]

    def of_pairs(self, pairs: Pairs, page: Page) -> Frame | None:
        """What becomes of a page of pairs of a join."""
        rows = leaf("pairs", pairs.schema, [Span(page, page.first - 1, page.last)])
        columns = partial(_pair_columns, pairs.output)
        with self._guard:
            selection = self._pairs.setdefault(pairs.output, Selection(columns))
        return None if rows is None else selection.of(rows)

    # -- what is done with it --------------------------------------------------------------

    def collect(self, frame: Frame | None, schema: pa.Schema) -> pa.Table:
        """The rows of a frame with exactly this schema's columns, in the driver."""
        return self._plans.collect(frame, schema)

    def run(self, frame: Frame, use: Callable[[DataFrame], Answer]) -> Answer:
        """What ``use`` makes of a frame."""
        return self._plans.run(frame, use)

    def close(self) -> None:
        """Gives all slots up."""
        self._plans.close()


def offending(readings: Sequence[Reading]) -> Frame | None:
    """The rows that start on which an expression fails, as they are in their queues."""
    return union(
        *(
            _offending(branch, spans)
            for reading in readings
            for branch, spans in zip(reading.branches, reading.spans[STARTED], strict=True)
        )
    )


def _offending(branch: ReadBranch, spans: list[Span]) -> Frame | None:
    rows = leaf((branch, "offending"), branch.queue.schema, spans) if branch.failing else None
    return None if rows is None else Selection(partial(_offending_columns, branch)).of(rows)


def _offending_columns(branch: ReadBranch) -> tuple[list[SparkColumn], SparkColumn]:
    """The rows written as text, and whether an expression fails on them."""
    fields = [each for each in branch.queue.schema if each.name.startswith("c")]
    inputs = [F.col(each.name) for each in fields]
    fails = F.lit(False)
    for expression in branch.failing:
        fails = fails | ~lower(success(expression), [*inputs, *map(F.col, MARKS)])
    types = branch.branch.leaf.schema.types
    texts = [_text(Column(at, type_), inputs) for at, type_ in enumerate(types)]
    values = [F.coalesce(text, F.lit("NULL")) for text in texts]
    return [F.concat_ws(", ", *values).alias("row")], fails


def _text(column: Column, inputs: Sequence[SparkColumn]) -> SparkColumn:
    """A column as people read it."""
    if column.type is Type.BINARY:
        return F.hex(inputs[column.position])
    if column.type.is_nested:
        return lower(as_text(column), inputs)
    return inputs[column.position].cast("string")


def _pair_columns(output: PairOutput) -> tuple[list[SparkColumn], SparkColumn | None]:
    inputs = [F.col(f"c{i}") for i in range(output.width)]
    condition = None
    for part in output.conditions:
        one = lower(part, inputs)
        condition = one if condition is None else condition & one
    data = [lower(e, inputs).alias(f"c{i}") for i, e in enumerate(output.expressions)]
    return [*map(F.col, ELEMENT), *data], condition

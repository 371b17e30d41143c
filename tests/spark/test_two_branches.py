"""A branch of a fragment has the same rows on Spark and on Arrow."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from millpond.cql.algebra import Filter, HopWindow, Sample, WithTime
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.kernels.branches import ArrowBranch, can_evaluate
from millpond.planning.branches import Branch, Outputs
from millpond.planning.branches import branches as flattened
from millpond.planning.physical import QueueRead
from millpond.planning.window_times import WindowTimes
from millpond.schema import FOREVER, Field, Schema, Type
from millpond.spark.branch_columns import BranchColumns
from tests.kernels.expressions import nasty
from tests.spark.test_two_lowerings import bits

ROWS = 400
TYPES = (Type.BIGINT, Type.DOUBLE, Type.STRING, Type.BOOLEAN, Type.INT, Type.DATE, Type.TIMESTAMP)
SCHEMA = Schema(tuple(Field(f"x{i}", type_) for i, type_ in enumerate(TYPES)))
COLUMNS = tuple(Column(i, type_) for i, type_ in enumerate(TYPES))
WINDOWS = {
    "base": (None, WindowTimes(7, None), WindowTimes(2, 10)),
    "stream": (None, WindowTimes(None, None), WindowTimes(7, 5), WindowTimes(None, 4)),
    "relation": (None,),
}
SEED = 11
QUEUES = {
    "base": ("_ts", "_seq"),
    "stream": ("_ts", "_w"),
    "relation": ("_ts", "_te", "_w"),
}


def queue(kind: str) -> pa.Table:
    draw = random.Random(kind)
    starts = [draw.randint(-40, 40) for _ in range(ROWS)]
    times = {
        "_ts": starts,
        "_te": [draw.choice([FOREVER, start + draw.randint(1, 9)]) for start in starts],
        "_seq": list(range(ROWS)),
        "_w": [draw.randint(1, 4) for _ in range(ROWS)],
    }
    if kind == "relation":
        times["_w"] = [draw.choice([-2, -1, 1, 3]) for _ in range(ROWS)]
    values = nasty.table().slice(draw.randint(0, 1000), ROWS)
    data = {f"c{i}": values.column(nasty.column(t, 2).position) for i, t in enumerate(TYPES)}
    return pa.table({name: pa.array(times[name], pa.int64()) for name in QUEUES[kind]} | data)


def leaf(kind: str) -> QueueRead:
    return QueueRead(f"the {kind}", SCHEMA, of_stream=kind != "relation", is_base=kind == "base")


def branches(kind: str) -> Iterator[Branch]:
    read = leaf(kind)
    some = Call(">", (COLUMNS[0], Literal(1, Type.BIGINT)), Type.BOOLEAN)
    other = Call("like", (COLUMNS[2], Literal("%2%", Type.STRING)), Type.BOOLEAN)
    both = Call("and", (some, Call("or", (other, COLUMNS[3]), Type.BOOLEAN)), Type.BOOLEAN)
    shares: list[Expression] = [
        Call("%", (COLUMNS[0], Literal(7, Type.BIGINT)), Type.BIGINT),
        Call("coalesce", (COLUMNS[2], Literal("none", Type.STRING)), Type.STRING),
    ]
    for window in WINDOWS[kind]:
        yield Branch(read, COLUMNS, None, window)
        yield Branch(read, tuple(shares), both, window, sign=-1)
        if kind != "relation":
            yield Branch(read, COLUMNS[:2], None, window, Sample(read, 30.0))
            yield Branch(read, tuple(shares), some, window, Sample(read, 70.0))
            yield Branch(read, COLUMNS, other, window, Sample(read, 50.0), below=some)
    if kind != "relation":
        yield from flattened(WithTime(read, 1_000))
        yield from flattened(Filter(HopWindow(read, 7, 5, 1), some))
        yield from flattened(HopWindow(Sample(read, 30.0), 3, 5, 0, 1_000))


def outputs(branch: Branch, kind: str) -> Iterator[Outputs]:
    given = [(Column(i, e.type), f"k{i}") for i, e in enumerate(branch.expressions)]
    side = (Literal(1, Type.BIGINT), "_side")
    if branch.window is not None or kind == "relation":
        yield Outputs((*given, side))
    elif kind != "relation":
        yield Outputs(tuple(given), ("_ts", "_order"))


@pytest.mark.parametrize("kind", QUEUES)
def test_rows_are_the_same_in_both_places(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    rows = queue(kind)
    pq.write_table(rows, tmp_path / "rows")
    page = spark.read.parquet(str(tmp_path / "rows"))
    for branch in branches(kind):
        for wanted in outputs(branch, kind):
            assert can_evaluate(branch, wanted)
            here = ArrowBranch(branch, wanted, SEED)
            there = BranchColumns(branch, wanted, SEED)
            for ended in (False, True):
                columns, condition = there.of(ended)
                kept = page if condition is None else page.filter(condition)
                compare(here.rows(rows, ended), kept.select(*columns).toArrow(), branch)


def compare(here: pa.Table, there: pa.Table, branch: Branch) -> None:
    assert here.column_names == there.column_names
    for name in here.column_names:
        mine, other = bits(here[name]), bits(there[name])
        assert mine.equals(other), f"{name} of {branch}"

"""Every function, where it fails on Spark: attempt is NULL exactly there and succeeds is false."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.failing import escape_of, is_pattern
from millpond.cql.functions import TRUNCATIONS
from millpond.kernels.expressions import can_lower
from millpond.planning.attempts import may_fail, success, value
from millpond.schema import Type
from millpond.spark.attempts import _FIRST
from millpond.spark.expressions import lower
from tests.kernels.expressions import nasty
from tests.kernels.expressions.random_expressions import Drawing
from tests.kernels.expressions.test_attempts import TABLE, calls
from tests.spark.test_two_lowerings import agree, bits, frame

AT_ONCE = 16


def tried(spark: SparkSession, column: SparkColumn) -> SparkColumn:
    """The column inside a struct that is NULL where Spark raises."""
    jvm = spark._jvm
    utilities = jvm.org.apache.spark.sql.classic.ExpressionUtils  # type: ignore[union-attr]
    wrapped = utilities.expression(F.struct(column.alias("value"))._jc)  # type: ignore[operator]
    catalyst = jvm.org.apache.spark.sql.catalyst.expressions  # type: ignore[union-attr]
    return SparkColumn(utilities.column(catalyst.TryEval(wrapped)))  # type: ignore[operator]


def answers(
    spark: SparkSession, table: pa.Table, expressions: Sequence[Expression], path: Path
) -> pa.Table:
    """Of each expression its struct, its value and its success."""
    inputs = [F.col(name) for name in table.column_names]
    columns = []
    for i, e in enumerate(expressions):
        columns.append(tried(spark, lower(e, inputs)).alias(f"plain{i}"))
        columns.append(lower(value(e), inputs).alias(f"value{i}"))
        columns.append(lower(success(e), inputs).alias(f"success{i}"))
    return frame(spark, table, path).select(*columns).toArrow()


def wrong(spark: SparkSession, table: pa.Table, expressions: Sequence[Expression], path: Path):
    found = []
    for first in range(0, len(expressions), AT_ONCE):
        some = expressions[first : first + AT_ONCE]
        told = answers(spark, table, some, path / f"{first}.parquet")
        for i, expression in enumerate(some):
            plain = told[f"plain{i}"].combine_chunks()
            has_value = plain.is_valid()
            expected = bits(pa.chunked_array([pc.struct_field(plain, "value")]))
            is_right = bits(told[f"value{i}"]).equals(pc.if_else(has_value, expected, None))
            if not is_right or not told[f"success{i}"].combine_chunks().equals(has_value):
                row = first_difference(table, has_value, told[f"success{i}"])
                found.append(f"{str(expression)[:200]}: {row}")
    return found


def first_difference(table: pa.Table, expected: pa.Array, given: pa.ChunkedArray) -> str:
    rows = np.flatnonzero(np.array(expected) != np.array(given))
    return str(table.slice(rows[0], 1).to_pydict()) if len(rows) else "the value"


def is_refused(call: Call) -> bool:
    """Whether Spark refuses the plan: a pattern that is written so cannot be tried."""
    pattern = call.arguments[1] if call.function == "like" else None
    return isinstance(pattern, Literal) and not is_pattern(str(pattern.value), escape_of(call))


def test_a_pattern_that_cannot_be_read_succeeds_nowhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    refused = [call for call in calls(failing=True) if is_refused(call)]
    page, inputs = frame(spark, TABLE, tmp_path / "p"), [F.col(n) for n in TABLE.column_names]
    assert refused
    for call in refused:
        given = lower(call.arguments[0], inputs).isNotNull()
        with pytest.raises(PySparkException):
            page.select(lower(call, inputs)).toArrow()
        told = page.where(given).select(lower(success(call), inputs)).toArrow()
        assert not any(told.column(0).to_pylist())


def test_a_call_succeeds_exactly_where_spark_does_not_raise(
    spark: SparkSession, tmp_path: Path
) -> None:
    readable = [call for call in calls(failing=True) if not is_refused(call)]
    found = wrong(spark, TABLE, readable, tmp_path)
    assert not found, "\n".join(found)


def test_a_row_that_is_said_to_fail_raises_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    largest = pa.table({"c0": [2**63 - 1]})
    plus = Call("+", (Column(0, Type.BIGINT), Literal(1, Type.BIGINT)), Type.BIGINT)
    page = frame(spark, largest, tmp_path / "p")
    with pytest.raises(PySparkException):
        page.select(lower(plus, [F.col("c0")])).toArrow()
    told = page.select(tried(spark, lower(plus, [F.col("c0")]))).toArrow()
    assert told.column(0).null_count == 1


def test_truncation_fails_below_the_first_beginning_of_its_unit(
    spark: SparkSession, tmp_path: Path
) -> None:
    edges = sorted({edge + by for edge in _FIRST.values() for by in (-1, 0, 1)})
    moments = pa.array(edges, pa.int64()).view(pa.timestamp("us"))
    table = pa.table({"c0": moments})
    column = Column(0, Type.TIMESTAMP)
    cuts = [
        Call("date_trunc", (Literal(unit, Type.STRING), column), Type.TIMESTAMP)
        for unit in TRUNCATIONS
    ]
    found = wrong(spark, table, cuts, tmp_path)
    assert not found, "\n".join(found)


def test_attempts_have_the_same_bits_on_arrow(spark: SparkSession, tmp_path: Path) -> None:
    made = [made for e in calls(failing=True) for made in (value(e), success(e))]
    agree(spark, TABLE, made, tmp_path)


@pytest.mark.parametrize("seed", [0])
def test_nothing_fails_in_nested_expressions(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    drawing = Drawing(1000 + seed)
    drawn = [drawing.expression(type_, 3) for type_ in nasty.TYPES for _ in range(20)]
    failing = [e for e in drawn if may_fail(e) and can_lower(e)]
    made = [made for e in failing for made in (value(e), success(e))]
    assert len(made) > 40
    agree(spark, nasty.table(seed).slice(seed * 300, 300), made, tmp_path)

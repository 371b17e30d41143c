"""An expression has the same bits on Spark and on Arrow, for every function and nasty values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.errors import InputError
from millpond.kernels.expressions import WORDS, Fault, Program, can_lower
from millpond.kernels.expressions.operand import to_array
from millpond.schema import Type
from millpond.spark import expressions as on_spark
from millpond.spark.failures import plain_words
from tests.kernels.expressions import nasty
from tests.kernels.expressions.random_expressions import Drawing

AT_ONCE = 200
"""So many expressions are columns of one Spark job."""


def lowered(expressions: Iterable[Expression]) -> list[Expression]:
    """The different ones that have two lowerings."""
    return list({repr(e): e for e in expressions if can_lower(e)}.values())


def test_every_function_gives_the_same_bits(spark: SparkSession, tmp_path: Path) -> None:
    agree(spark, nasty.table(), lowered(nasty.calls()), tmp_path)


@pytest.mark.parametrize("seed", [0])
def test_nested_expressions_give_the_same_bits(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    drawing = Drawing(seed)
    drawn = [drawing.expression(type_, 3) for type_ in nasty.TYPES for _ in range(7)]
    agree(spark, nasty.table(seed).slice(seed * 300, 300), lowered(drawn), tmp_path)


def test_every_letter_has_the_same_case(spark: SparkSession, tmp_path: Path) -> None:
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    # Where a word ends, by which a sigma has its form, depends on the characters beside it.
    beside = [f"AΣ{c}A AΣ{c} {c}Σ A{c}Σ " for c in letters if not is_ideograph(ord(c))]
    pieces = [letters[i : i + 500] for i in range(0, len(letters), 500)]
    pieces += [beside[i : i + 100] for i in range(0, len(beside), 100)]
    table = pa.table({"c0": pa.array(map("".join, pieces))})
    text = Column(0, Type.STRING)
    cases = [Call(name, (text,), Type.STRING) for name in ("upper", "lower")]
    agree(spark, table, cases, tmp_path)


def is_ideograph(code: int) -> bool:
    """Whether the character is in one of the large blocks of writing without case, or private."""
    blocks = ((0x3400, 0xA48C), (0xAC00, 0xF8FF), (0x17000, 0x18CFF), (0x20000, 0xE0000))
    return code > 0xE0FFF or any(first <= code <= last for first, last in blocks)


def test_a_part_that_two_columns_share_fails_only_where_one_needs_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    x, t = Column(0, Type.BIGINT), Column(1, Type.BOOLEAN)
    risky = Call(">", (Call("+", (x, x), Type.BIGINT), x), Type.BOOLEAN)
    both = [Call("and", (t, risky), Type.BOOLEAN), Call("and", (t, t, risky), Type.BOOLEAN)]
    table = pa.table({"c0": [2**63 - 1, 1], "c1": [False, True]})
    agree(spark, table, both, tmp_path)


def test_sums_are_added_up_in_the_order_they_are_written_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    x, y, one = Column(0, Type.BIGINT), Column(1, Type.BIGINT), Literal(1, Type.BIGINT)
    total = Call("+", (Call("+", (x, one), Type.BIGINT), y), Type.BIGINT)
    table = pa.table({"c0": [2**63 - 1], "c1": pa.array([None], pa.int64())})
    page = frame(spark, table, tmp_path / "p")
    with pytest.raises(InputError):
        Program([total]).arrays(table.columns, 1)
    with pytest.raises(PySparkException):
        page.select(on_spark.lower(total, [F.col("c0"), F.col("c1")])).toArrow()


def test_parts_that_are_not_needed_do_not_fail(spark: SparkSession, tmp_path: Path) -> None:
    agree(spark, nasty.table(), lowered(nasty.guarded()), tmp_path)


def test_what_only_spark_has_fails_within_a_call_of_python_only_where_it_is_needed(
    spark: SparkSession, tmp_path: Path
) -> None:
    x, t = Column(0, Type.BIGINT), Column(1, Type.BOOLEAN)
    total = Call("cast", (Call("+", (x, x), Type.BIGINT),), Type.DOUBLE)
    written = Call("cast", (total,), Type.STRING)
    made = Call("hex", (Call("upper", (written,), Type.STRING),), Type.STRING)
    guarded = Call("case", (t, made), Type.STRING)
    assert not can_lower(guarded)
    table = pa.table({"c0": [2**63 - 1, 1, None], "c1": [False, True, True]})
    page = frame(spark, table, tmp_path / "p")
    columns = [F.col("c0"), F.col("c1")]
    answer = page.select(on_spark.lower(guarded, columns).alias("e")).toArrow()
    assert answer["e"].to_pylist() == [None, "322E30", None]
    with pytest.raises(PySparkException) as error:
        page.select(on_spark.lower(made, columns)).toArrow()
    assert plain_words(error.value) == WORDS[Fault.ARITHMETIC_OVERFLOW]


def agree(
    spark: SparkSession, table: pa.Table, expressions: Sequence[Expression], directory: Path
) -> None:
    found = []
    for first in range(0, len(expressions), AT_ONCE):
        some = expressions[first : first + AT_ONCE]
        found += differences(spark, table, some, directory / f"{first}.parquet")
    assert not found, "\n".join(found)


def test_what_fails_here_fails_there_in_the_same_words(spark: SparkSession, tmp_path: Path) -> None:
    table = nasty.table()
    page = frame(spark, table.append_column("row", pa.array(range(table.num_rows))), tmp_path / "p")
    inputs = [F.col(name) for name in table.column_names]
    wrong = []
    for expression, row, fault in faulty(lowered([*nasty.calls(), *nasty.guarded()]), table):
        try:
            page.where(F.col("row") == row).select(on_spark.lower(expression, inputs)).toArrow()
            wrong.append(f"{expression} in row {row}: {fault.name} here, nothing on Spark")
        except (PySparkException, Py4JError) as error:
            if plain_words(error) != WORDS[fault]:
                told = f"{type(error).__name__}: {str(error)[:3000]}"
                wrong.append(f"{expression} in row {row}: {fault.name} here, {told}")
    assert not wrong, "\n".join(wrong)


def faulty(
    expressions: Sequence[Expression], table: pa.Table
) -> Iterator[tuple[Expression, int, Fault]]:
    """For each function and kind of its faults one expression and a row in which it fails."""
    seen = set()
    _, faults = on_arrow(expressions, table)
    for expression, row in zip(expressions, faults, strict=True):
        for code in np.unique(row[row != 0]):
            key = (expression.function, [a.type for a in expression.arguments], code)
            if str(key) not in seen:
                seen.add(str(key))
                yield expression, int(np.flatnonzero(row == code)[0]), Fault(int(code))


def on_arrow(expressions: Sequence[Expression], table: pa.Table) -> tuple[pa.Table, np.ndarray]:
    """The values as columns, and the faults, a row for each expression."""
    values = Program(expressions).run(table.columns)
    rows = table.num_rows
    none = np.zeros(rows, np.uint8)
    faults = [none if v.faults is None else np.broadcast_to(v.faults, rows) for v in values]
    columns = [to_array(v, e.type, rows) for v, e in zip(values, expressions, strict=True)]
    return pa.Table.from_arrays(columns, names(expressions)), np.array(faults)


def names(expressions: Sequence[Expression]) -> list[str]:
    return [f"e{i}" for i in range(len(expressions))]


def frame(spark: SparkSession, table: pa.Table, path: Path) -> DataFrame:
    pq.write_table(table, path)
    return spark.read.parquet(str(path))


def evaluated(
    spark: SparkSession, table: pa.Table, expressions: Sequence[Expression], path: Path
) -> pa.Table:
    """What Spark says, rows in which an expression fails on Arrow being NULL."""
    _, faults = on_arrow(expressions, table)
    flags = {f"ok{i}": pa.array(row == 0) for i, row in enumerate(faults) if row.any()}
    for name, flag in flags.items():
        table = table.append_column(name, flag)
    inputs = [F.col(name) for name in table.column_names]
    columns = []
    for i, expression in enumerate(expressions):
        column = on_spark.lower(expression, inputs)
        if f"ok{i}" in flags:
            column = F.when(F.col(f"ok{i}"), column)
        columns.append(column.alias(f"e{i}"))
    return frame(spark, table, path).select(*columns).toArrow()


def differences(
    spark: SparkSession, table: pa.Table, expressions: Sequence[Expression], path: Path
) -> list[str]:
    """The expressions that differ, each with the first row in which it does."""
    here, faults = on_arrow(expressions, table)
    there = evaluated(spark, table, expressions, path)
    found = []
    for i, expression in enumerate(expressions):
        mine = bits(pc.if_else(pa.array(faults[i] == 0), here.column(i), None))
        other = bits(there.column(i))
        if not mine.equals(other):
            pairs = enumerate(zip(mine.to_pylist(), other.to_pylist(), strict=True))
            row, (a, b) = next((row, pair) for row, pair in pairs if pair[0] != pair[1])
            found.append(f"{str(expression)[:200]} in row {row}: {a!r} here, {b!r} on Spark")
    return found


def bits(column: pa.ChunkedArray) -> pa.Array:
    """Values that are equal only if their bits are, NaN having one form."""
    array = column.combine_chunks()
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.is_nan(array), float("nan"), array).view(pa.int64())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us")).view(pa.int64())
    return array.view(pa.int32()) if pa.types.is_date(array.type) else array

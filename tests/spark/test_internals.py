"""Private interfaces of Spark: they are used where they exist, and the plain way says the same."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic import column as classic

from millpond.spark import internals
from millpond.spark.internals import (
    PlainPlan,
    ReusedPlan,
    collected,
    plan,
    run_tasks,
    select_prepared,
)

SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.string())])


def _query(spark: SparkSession, directory: Path) -> Callable[[], DataFrame]:
    select = select_prepared(spark, [F.col("n"), F.upper("word").alias("word")])
    reader = spark.read.schema("n BIGINT, word STRING")
    return lambda: select(reader.parquet(str(directory)).filter(F.col("n") % 2 == 1))


def _write(directory: Path, name: str, *numbers: int) -> None:
    words = [f"w{number}" for number in numbers]
    pq.write_table(pa.table([pa.array(numbers, pa.int64()), words], SCHEMA), directory / name)


def _rows(table: pa.Table) -> list[tuple[int, str]]:
    return sorted((row["n"], row["word"]) for row in table.to_pylist())


@pytest.mark.parametrize("way", ["private", "plain"])
def test_a_plan_reads_the_files_there_are_when_it_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv(internals.PLAIN_VARIABLE, "1" if way == "plain" else "0")
    _write(tmp_path, "a.parquet", 1, 2)
    query = plan(_query(spark, tmp_path))
    assert isinstance(query, PlainPlan if way == "plain" else ReusedPlan)
    assert _rows(collected(query.frame(), SCHEMA)) == [(1, "W1")]
    _write(tmp_path, "b.parquet", 3, 4, 5)
    assert _rows(collected(query.frame(), SCHEMA)) == [(1, "W1"), (3, "W3"), (5, "W5")]
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "b.parquet").unlink()
    _write(tmp_path, "a.parquet", 7)
    assert _rows(collected(query.frame(), SCHEMA)) == [(7, "W7")]
    (tmp_path / "a.parquet").unlink()
    empty = collected(query.frame(), SCHEMA)
    assert (empty.num_rows, empty.schema) == (0, SCHEMA)


def test_a_spark_without_the_private_interface_is_used_plainly(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_of_rows(session: SparkSession, analysed: object) -> DataFrame:
        java = session._jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(java.ofRowsOfOldSparks(session._jsparkSession, analysed), session)

    monkeypatch.setattr(internals, "rerun", without_of_rows)
    _write(tmp_path, "a.parquet", 1, 2)
    with pytest.warns(RuntimeWarning, match=r"Spark 4.* lacks .*ofRowsOfOldSparks"):
        query = plan(_query(spark, tmp_path))
    assert isinstance(query, PlainPlan)
    assert _rows(collected(query.frame(), SCHEMA)) == [(1, "W1")]


def test_a_select_that_can_not_be_prepared_is_made_each_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(classic, "_to_seq")
    _write(tmp_path, "a.parquet", 1, 2)
    with pytest.warns(RuntimeWarning, match="_to_seq"):
        build = _query(spark, tmp_path)
    monkeypatch.undo()
    assert _rows(collected(build(), SCHEMA)) == [(1, "W1")]


def test_a_fault_of_the_query_is_not_taken_for_a_missing_interface(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        plan(lambda: spark.range(1).select("no_such_column"))


def test_a_plan_that_reads_no_files_is_built_each_time(spark: SparkSession) -> None:
    with pytest.warns(RuntimeWarning, match="relation"):
        query = plan(lambda: spark.range(3).withColumnRenamed("id", "n"))
    assert isinstance(query, PlainPlan)
    schema = pa.schema([("n", pa.int64())])
    assert collected(query.frame(), schema)["n"].to_pylist() == [0, 1, 2]


def _seven() -> dict[str, int]:
    return {"seven": 7}


class _Seventy:
    """Comes with more than Spark sends with a job."""

    def __init__(self, length: int) -> None:
        self._words = random.Random(1).randbytes(length)

    def __call__(self) -> int:
        return len(self._words)


@pytest.mark.parametrize("way", ["private", "plain"])
def test_tasks_answer_in_their_order_each_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv(internals.PLAIN_VARIABLE, "1" if way == "plain" else "0")
    assert run_tasks(spark, 3, _seven) == [{"seven": 7}] * 3
    assert run_tasks(spark, 1, _Seventy(3_000_000)) == [3_000_000]
    assert run_tasks(spark, 3, lambda: TaskContext.get().partitionId()) == [0, 1, 2]
    with pytest.raises(PythonException, match="by zero"):
        run_tasks(spark, 2, lambda: 1 // 0)


def test_tasks_see_files_that_came_later(spark: SparkSession, tmp_path: Path) -> None:
    run_tasks(spark, 1, _seven)
    name = f"came_later_{uuid.uuid4().hex}"
    (tmp_path / f"{name}.py").write_text("HERE = 'here'\n")
    spark.sparkContext.addPyFile(str(tmp_path / f"{name}.py"))
    assert run_tasks(spark, 1, lambda: importlib.import_module(name).HERE) == ["here"]


def test_a_spark_that_begins_tasks_otherwise_is_used_plainly(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(*_: object) -> object:
        raise AttributeError("no SimplePythonFunction")

    monkeypatch.setattr(internals._PreparedTasks, "job", job)
    with pytest.warns(RuntimeWarning, match="no SimplePythonFunction"):
        assert run_tasks(spark, 2, _seven) == [{"seven": 7}] * 2


LEFT = """
import sys, traceback
from millpond.spark.internals import leave_quietly
leave_quietly()
for error in (BrokenPipeError("let go"), ValueError("a fault")):
    try:
        raise error
    except Exception:
        traceback.print_exc()
"""


def test_a_worker_that_is_let_go_prints_nothing() -> None:
    """PySpark's daemon prints the stack of whatever ends a worker."""
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, check=True)
    assert "ValueError: a fault" in done.stderr
    assert "let go" not in done.stderr

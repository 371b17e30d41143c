"""Steps in threads of their own: fair pools, and cancelling one leaves the others alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from millpond import Engine
from millpond.background import BackgroundThreads
from millpond.execution.executor import Executors
from millpond.spark.marks import Marks, was_cancelled
from tests.patience import PATIENCE_SECONDS, wait_until


class Sleepy:
    """Frames of one task each that say when they begin, and end when they are let."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self.begun, self.ends = directory / "begun", directory / "ends"
        self.begun.mkdir()
        self.ends.mkdir()

    def frame(self, name: str) -> Any:
        begun, end, patience = self.begun / name, self.ends / name, PATIENCE_SECONDS

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            begun.touch()
            deadline = time.monotonic() + patience
            while not end.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            yield from batches

        return self._spark.range(0, 1, 1, 1).mapInArrow(work, "id LONG")

    def let_end(self, name: str) -> None:
        (self.ends / name).touch()

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(list(self.begun.iterdir())) == count)


def active_jobs(spark: SparkSession) -> set[int]:
    """Those of steps: residents stay."""
    residents = spark.sparkContext._jsc.sc().statusTracker().getJobIdsForTag("millpond-residents")
    return set(spark.sparkContext.statusTracker().getActiveJobsIds()) - set(residents)


class Processors(Marks):
    """Threads whose jobs are marked."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = BackgroundThreads(8, "millpond-test")

    def submit(self, work: Callable[[], None]) -> str:
        tag = self.new_tag()

        def marked() -> None:
            with self.working(tag):
                work()

        self._threads.submit(marked)
        return tag

    def close(self) -> None:
        self._threads.close(time.monotonic() + PATIENCE_SECONDS)


@pytest.fixture
def processors() -> Iterator[Processors]:
    made = Processors()
    yield made
    made.close()


@pytest.fixture
def sleepy(spark: SparkSession, tmp_path: Path) -> Sleepy:
    return Sleepy(spark, tmp_path)


def submitted(processors: Processors, work: Callable[[], Any]) -> tuple[str, Future[Any]]:
    """The tag of some work and what comes of it."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 (it is looked at)
            future.set_exception(error)

    return processors.submit(run), future


def test_each_thread_has_a_pool_and_each_work_a_tag(
    spark: SparkSession, processors: Processors
) -> None:
    context, together = spark.sparkContext, threading.Barrier(3)

    def work() -> tuple[str, set[str]]:
        together.wait(PATIENCE_SECONDS)
        processors.mark(spark)
        processors.mark(spark)
        assert spark.range(10).count() == 10
        return str(context.getLocalProperty("spark.scheduler.pool")), set(context.getJobTags())

    for _ in range(2):
        works = [submitted(processors, work) for _ in range(3)]
        found = [(tag, future.result(PATIENCE_SECONDS)) for tag, future in works]
        pools = [pool for _, (pool, _) in found]
        assert len(set(pools)) == 3
        for tag, (pool, tags) in found:
            assert len(tags) == 2
            assert tag in tags
            assert pool.startswith((tags - {tag}).pop())
    assert context.getLocalProperty("spark.scheduler.pool") is None
    assert set(context.getJobTags()) == set()


def test_cancelling_one_work_stops_its_jobs_and_no_others(
    spark: SparkSession, processors: Processors, sleepy: Sleepy
) -> None:
    def work(name: str) -> int:
        processors.mark(spark)
        return int(sleepy.frame(name).count())

    tag, cancelled = submitted(processors, lambda: work("cancelled"))
    _, other = submitted(processors, lambda: work("other"))
    sleepy.wait_for(2)
    processors.cancel(spark, tag)
    error = cancelled.exception(PATIENCE_SECONDS)
    assert error is not None
    assert was_cancelled(error)
    sleepy.let_end("other")
    assert other.result(PATIENCE_SECONDS) == 1
    wait_until(lambda: active_jobs(spark) == set())


def test_cancelling_all_leaves_another_engines_jobs(
    spark: SparkSession, processors: Processors, sleepy: Sleepy
) -> None:
    others = Processors()

    def work(of: Processors, name: str) -> int:
        of.mark(spark)
        return int(sleepy.frame(name).count())

    _, cancelled = submitted(processors, lambda: work(processors, "cancelled"))
    _, other = submitted(others, lambda: work(others, "other"))
    sleepy.wait_for(2)
    processors.cancel(spark)
    assert was_cancelled(cancelled.exception(PATIENCE_SECONDS) or ValueError())
    sleepy.let_end("other")
    assert other.result(PATIENCE_SECONDS) == 1
    others.close()


def test_a_fault_is_not_taken_for_a_cancellation(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO") as caught:
        spark.range(1).selectExpr("1 / id AS x").collect()
    assert not was_cancelled(caught.value)
    assert not was_cancelled(ValueError("SPARK_JOB_CANCELLED"))


def test_dropping_a_query_cancels_its_step_and_nothing_else(
    spark: SparkSession, sleepy: Sleepy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step of the dropped query sleeps for ten minutes, unless it is cancelled."""
    with Engine({"driver_rows": 0, "processors": 2}, spark) as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;")
        engine.execute("CREATE QUERY slow AS SELECT a FROM S WHERE a > 1;")
        engine.execute("CREATE QUERY other AS SELECT a, count(*) AS n FROM S GROUP BY a;")
        slow, execute = _writer(engine, "slow"), Executors.execute

        def slept(executors: Executors, step: Any) -> Any:
            if step.running.identity == slow:
                executors.far.session.sparkContext  # type: ignore[attr-defined] # noqa: B018 (marks)
                sleepy.frame("begun").count()
            return execute(executors, step)

        monkeypatch.setattr(Executors, "execute", slept)
        engine.push("S", [(1, 1), (2, 2)])
        engine.advance("S", 2)
        engine.start()
        sleepy.wait_for(1)
        engine.drop("slow")
        wait_until(lambda: active_jobs(spark) == set())
        engine.stop(drain=True)
        assert engine.results("other").num_rows == 2
        assert engine.failures() == []


def _writer(engine: Engine, query: str) -> str:
    return engine.queries.outputs[query]

"""Jobs of steps in threads of their own: fair pools, and cancelling one leaves the others alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from millpond.spark.jobs import Jobs, was_cancelled
from tests.cluster.standalone import wait_until

INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path
from millpond.settings import Settings
from millpond.spark.jobs import Jobs, interrupts_cancel_only_their_step
from millpond.spark.session import create_session

session = create_session(Settings(spark_master="local[2]", driver_memory="512m"))
interrupts_cancel_only_their_step()
begun = Path(sys.argv[1])

def slow(name, seconds):
    def work(batches):
        (begun / name).touch()
        time.sleep(seconds)
        yield from batches
    return session.range(0, 1, 1, 1).mapInArrow(work, "id LONG")

def other():
    with Jobs(session, "other").running():
        print("other", slow("other", 6).count(), flush=True)

thread = threading.Thread(target=other)
thread.start()
try:
    with Jobs(session, "main").running():
        slow("main", 120).count()
except KeyboardInterrupt:
    print("interrupted", flush=True)
thread.join()
print("after", session.range(5).count())
session.stop()
"""


def slowly(spark: SparkSession, begun: Path, seconds: float) -> Any:
    """A frame of one task that says when it begins."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun.touch()
        time.sleep(seconds)
        yield from batches

    return spark.range(0, 1, 1, 1).mapInArrow(work, "id LONG")


def test_a_threads_jobs_run_in_its_pool_and_only_inside_the_block(spark: SparkSession) -> None:
    context = spark.sparkContext
    running, pool = context.statusTracker(), "spark.scheduler.pool"

    def step(number: int) -> tuple[str | None, set[str], str | None]:
        jobs = Jobs(spark, f"pool-{number}")
        with jobs.running():
            assert spark.range(10).count() == 10
            inside = context.getLocalProperty(pool), set(context.getJobTags())
        assert inside[1] == {jobs.tag}
        return inside[0], set(context.getJobTags()), context.getLocalProperty(pool)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(step, range(4)))
    assert found == [(f"pool-{number}", set(), None) for number in range(4)]
    assert {p.name() for p in _pools(spark)} >= {f"pool-{number}" for number in range(4)}
    assert context.getLocalProperty(pool) is None
    assert running.getActiveJobsIds() == []


def test_cancelling_a_step_stops_its_jobs_and_no_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    steps = [Jobs(spark, f"pool-{number}") for number in range(2)]

    def run(number: int, seconds: float) -> int:
        with steps[number].running():
            return int(slowly(spark, tmp_path / f"begun-{number}", seconds).count())

    with ThreadPoolExecutor(2) as threads:
        cancelled, other = threads.submit(run, 0, 120), threads.submit(run, 1, 5)
        wait_until(lambda: len(list(tmp_path.glob("begun-*"))) == 2)
        began = time.monotonic()
        steps[0].cancel()
        error = cancelled.exception(timeout=30)
        assert error is not None
        assert was_cancelled(error)
        assert other.result(timeout=60) == 1
        assert time.monotonic() - began < 60
    wait_until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds() == [], 30)
    assert spark.range(0, 4, 1, 2).mapInArrow(lambda batches: batches, "id LONG").count() == 4


def test_a_fault_is_not_taken_for_a_cancellation(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO") as caught:
        spark.range(1).selectExpr("1 / id AS x").collect()
    assert not was_cancelled(caught.value)
    assert not was_cancelled(ValueError("cancelled SPARK_JOB_CANCELLED"))


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_ctrl_c_cancels_the_step_of_the_main_thread_only(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2 or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=300)
    finally:
        process.kill()
    assert (stdout.splitlines(), stderr) == (["interrupted", "other 1", "after 5"], "")


def _pools(spark: SparkSession) -> list[Any]:
    pools: Any = spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(
        spark._jsc.sc().getAllPools()
    )
    return list(pools)

"""A Spark that died is noticed and started again in the same process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_SECONDS

PROGRAM = """
import time
from concurrent.futures import ThreadPoolExecutor
import psutil
from millpond.settings import Settings
from millpond.spark.internals import is_alive
from millpond.spark.session import create_session

settings = Settings(spark_master="local[1]", driver_memory="512m")

def rows(session):
    return session.range(1, 4).toArrow()["id"].to_pylist()

def slow(batches):
    time.sleep(600)
    yield from batches

def again(dead):
    print(is_alive(dead))
    session = create_session(settings)
    print(session is not dead, is_alive(dead), is_alive(session), rows(session))
    print(create_session(settings) is session)
    return session

def kill_the_jvm():
    (jvm,) = [p for p in psutil.Process().children(recursive=True) if "java" in p.name()]
    jvm.kill()

first = create_session(settings)
print(is_alive(first), rows(first))
with ThreadPoolExecutor(1) as thread:
    job = thread.submit(first.range(1).mapInArrow(slow, "id LONG").toArrow)
    while not first.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.1)
    kill_the_jvm()
    print(job.exception() is not None)
second = again(first)
second._jsc.sc().stop()  # as Spark does when a cluster's master has given it up
third = again(second)
third.stop()
fourth = again(third)
fourth.stop()
"""


@pytest.mark.spark
def test_a_spark_that_was_killed_or_stopped_is_started_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "True [1, 2, 3]",
        "True",
        *["False", "True False True [1, 2, 3]", "True"] * 3,
    ]

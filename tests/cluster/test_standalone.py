"""Spark itself on a cluster whose workers share the store and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cluster.conftest import Driver
from tests.cluster.standalone import StandaloneCluster
from tests.patience import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.spark

START = """
import json, os, sys, time
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
from millpond.errors import MachineError
from millpond.settings import Settings
from millpond.spark.executors import cores
from millpond.spark.session import create_session

master, store = sys.argv[1], Path(sys.argv[2])
settings = Settings(spark_master=master, driver_memory="512m", executor_memory="512m")
"""

WRITE_FILES = """
session = create_session(settings)

def write(batches):
    import millpond
    for batch in batches:
        path = store / f"page-{os.getpid()}.parquet"
        pq.write_table(pa.Table.from_batches([batch]), path)
        seen = [marker for marker in markers if os.path.exists(marker)]
        while len(list(store.glob("page-*"))) < 2:
            time.sleep(0.01)  # so that one worker does not write both
        line = {"path": str(path), "host": os.environ["SPARK_LOCAL_IP"], "seen": seen,
                "package": millpond.__file__, "python": os.environ.get("PYTHON_OF_WORKERS")}
        yield pa.RecordBatch.from_pydict({"line": [json.dumps(line)]})

markers = json.loads(os.environ["MARKERS"])
lines = session.range(0, 1000, 1, 2).mapInArrow(write, "line STRING").collect()
print(json.dumps({"cores": cores(session), "lines": [json.loads(row.line) for row in lines],
    "shuffle": session.conf.get("spark.sql.shuffle.partitions"),
    "host": session.conf.get("spark.driver.host")}))
session.stop()
"""

SLOW_TASKS = """
session = create_session(settings)

def work(batches):
    for batch in batches:
        for number in batch["id"].to_pylist():
            (store / f"done-{number}-{os.getpid()}").touch()
            while not (store / "killed").exists():
                time.sleep(0.01)
        yield batch

def wait_for_cores(count):
    while len(session._jsc.sc().statusTracker().getExecutorInfos()) - 1 != count:
        time.sleep(0.1)

print("ready", flush=True)
print(sorted(row.id for row in session.range(0, 6, 1, 6).mapInArrow(work, "id LONG").collect()),
      flush=True)
assert sys.stdin.readline() == "go\\n"
wait_for_cores(2)
print(cores(session), session.range(0, 6, 1, 6).mapInArrow(work, "id LONG").count(), flush=True)
session.stop()
"""

TOO_LARGE = """
import dataclasses
from millpond.spark import executors
patience, executors._FIRST_EXECUTOR_SECONDS = executors._FIRST_EXECUTOR_SECONDS, 3.0
try:
    create_session(dataclasses.replace(settings, executor_memory="100g"))
except MachineError as error:
    print(error)
executors._FIRST_EXECUTOR_SECONDS = patience
small = create_session(settings)
print(small.range(10).count())
small.stop()
"""


@pytest.fixture
def markers() -> Iterator[list[str]]:
    """Files of the driver's machine that a worker of another one must not see."""
    paths = [Path(d) / f"millpond-marker-{uuid.uuid4().hex}" for d in ("/dev/shm", "/tmp")]
    paths = [path for path in paths if path.parent.is_dir()]
    for path in paths:
        path.touch()
    yield [str(path) for path in paths]
    for path in paths:
        path.unlink()


@pytest.fixture
def own_python(cluster: StandaloneCluster) -> Path:
    """A Python that only workers run."""
    python = cluster.store / "python"
    python.write_text(f'#!/bin/sh\nPYTHON_OF_WORKERS=own exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


def output_of(process: subprocess.Popen[str], complaint: str = "") -> str:
    stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, stderr
    assert re.fullmatch(complaint, stderr)
    return stdout


def test_workers_write_into_the_store_and_share_nothing_else(
    cluster: StandaloneCluster, driver: Driver, markers: list[str], own_python: Path
) -> None:
    """They run the driver's Millpond, in the Python that PYSPARK_PYTHON names."""
    marked = json.dumps(markers)
    process = driver(START + WRITE_FILES, MARKERS=marked, PYSPARK_PYTHON=str(own_python))
    answer = json.loads(output_of(process))
    lines = answer["lines"]
    assert sum(pq.read_metadata(line["path"]).num_rows for line in lines) == 1000
    assert {Path(line["path"]).parent for line in lines} == {cluster.store}
    assert {line["host"] for line in lines} == {"127.0.0.2", "127.0.0.3"}
    assert [line["seen"] for line in lines] == [[] if cluster.is_isolated else markers] * 2
    assert (answer["cores"], answer["shuffle"], answer["host"]) == (2, "2", "127.0.0.1")
    assert all("millpond.zip" in line["package"] for line in lines)
    assert {line["python"] for line in lines} == {"own"}
    assert "Running task" not in cluster.logs()


def test_a_killed_worker_stops_nothing_and_another_takes_its_place(
    cluster: StandaloneCluster, driver: Driver
) -> None:
    process = driver(START + SLOW_TASKS)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: len(list(cluster.store.glob("done-*"))) >= 2)
    cluster.kill_worker(cluster.workers[0])
    (cluster.store / "killed").touch()
    assert process.stdout.readline() == "[0, 1, 2, 3, 4, 5]\n"
    cluster.start_worker()
    process.stdin.write("go\n")
    process.stdin.flush()
    assert output_of(process, r".*Lost executor .* worker lost.*\n") == "2 6\n"
    assert "Running task" not in cluster.logs()  # nor in that of an executor that came late


def test_a_cluster_without_room_is_an_error_that_names_the_settings(driver: Driver) -> None:
    first, second = output_of(driver(START + TOO_LARGE)).splitlines()
    assert "gives no executor within 3 seconds" in first
    assert "executor_memory" in first
    assert second == "10"

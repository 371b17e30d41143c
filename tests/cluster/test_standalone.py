"""Spark, and Millpond, on a cluster whose workers share the store and nothing else."""

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
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.spark

SPARK = """
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


MILLPOND = """
import itertools, sys
from pathlib import Path
from millpond import Engine

master, store = sys.argv[1], Path(sys.argv[2])
numbers = itertools.count()

def engine_there(settings=None):
    there = {"spark_master": master, "driver_memory": "512m", "executor_memory": "512m"}
    there |= {"store": store / f"engine-{next(numbers)}", "driver_rows": 0}
    return Engine((settings or {}) | there)
"""

RANDOM_QUERIES = """
from tests.fuzz import check
from tests.generator import seeded_case

print(*check(engine_there, seeded_case(1015, 2)), sep="\\n")
"""

LONG_RUN = """
from benchmarks.streams import Stream

STREAMS = (Stream("L", 50, 4), Stream("R", 50, 5))
PAGES, PAGE_ROWS = 6, 2_000
QUERIES = {
    "large": "SELECT key, value FROM L WHERE value > 0.9",
    "groups": "SELECT key, count(*) AS n, sum(value) AS total FROM L [RANGE 100 MILLISECONDS] "
              "GROUP BY key",
    "last": "SELECT key, value FROM L [PARTITION BY key ROWS 2]",
    "pairs": "SELECT L.key, L.value, R.value AS other FROM L [RANGE 20 MILLISECONDS], "
             "R [RANGE 20 MILLISECONDS] WHERE L.key = R.key",
}

def run(engine, say=lambda text: None):
    with engine:
        for stream in STREAMS:
            engine.execute(stream.declaration)
        for name, text in QUERIES.items():
            engine.execute(f"CREATE QUERY {name} AS {text};")
        for page in range(PAGES):
            say(f"page {page}")
            for stream in STREAMS:
                engine.push(stream.name, stream.page(page * PAGE_ROWS, PAGE_ROWS))
            engine.run_until_idle()
        engine.finish()
        return {name: bag(engine.results(name)) for name in QUERIES}

def bag(table):
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()

here = run(Engine({"driver_rows": 10**9}))
there = run(engine_there(), lambda text: print(text, flush=True))
print({name: there[name].equals(here[name]) for name in QUERIES})
print(min(table.num_rows for table in here.values()) > 1000)
"""


STORES_SEEN = """
from millpond.errors import MachineError

memory = Engine({"spark_master": master, "driver_memory": "512m", "executor_memory": "512m"})
memory.execute("CREATE STREAM S (t BIGINT) TIMESTAMP BY t; CREATE QUERY q AS SELECT t FROM S;")
memory.push("S", [(1,)])
try:
    memory.run_until_idle()
except MachineError as error:
    print(error)
memory.close()

private = Path(sys.argv[0]).parent / "private"
try:
    Engine({"spark_master": master, "store": private}).spark
    print("seen")
except MachineError as error:
    print(error)

with engine_there() as engine:
    print(engine.spark.sparkContext.master == master, engine.runtime.limits.buckets,
          engine.runtime.limits.processors)
"""

ANYTHING = r"(?s).*"


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
    process = driver(SPARK + WRITE_FILES, MARKERS=marked, PYSPARK_PYTHON=str(own_python))
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


def test_a_cluster_without_room_is_an_error_that_names_the_settings(driver: Driver) -> None:
    first, second = output_of(driver(SPARK + TOO_LARGE)).splitlines()
    assert "gives no executor within 3 seconds" in first
    assert "executor_memory" in first
    assert second == "10"


def test_workers_must_see_the_store_and_then_agree_with_the_reference(
    cluster: StandaloneCluster, driver: Driver
) -> None:
    process = driver(MILLPOND + STORES_SEEN + RANDOM_QUERIES)
    memory, private, there, *failures = output_of(process, ANYTHING).splitlines()
    assert "do not see the memory of this process: SET store to a directory" in memory
    if cluster.is_isolated:
        assert "private: not seen or not writable on" in private
    else:
        assert private == "seen"
    assert there == "True 2 2"
    assert failures == [""]


def test_a_worker_killed_in_mid_run_changes_no_answer(
    cluster: StandaloneCluster, driver: Driver
) -> None:
    process = driver(MILLPOND + LONG_RUN)
    assert process.stdout is not None
    while (line := process.stdout.readline()) != "page 2\n":
        assert line.startswith("page")
    cluster.kill_worker(cluster.workers[0])
    while process.stdout.readline() != "page 4\n":
        assert process.poll() is None
    cluster.start_worker()
    answers, are_many = output_of(process, ANYTHING).splitlines()[-2:]
    assert answers == str(dict.fromkeys(("large", "groups", "last", "pairs"), True))
    assert are_many == "True"

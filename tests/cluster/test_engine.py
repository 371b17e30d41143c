"""Millpond on a cluster whose workers share the store and nothing else."""

from __future__ import annotations

import subprocess

import pytest

from tests.cluster.conftest import Driver
from tests.cluster.standalone import StandaloneCluster
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.spark

START = """
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


def finished(process: subprocess.Popen[str]) -> str:
    stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, stderr
    return stdout


def test_workers_must_see_the_store_and_then_agree_with_the_reference(
    cluster: StandaloneCluster, driver: Driver
) -> None:
    process = driver(START + STORES_SEEN + RANDOM_QUERIES)
    memory, private, there, *failures = finished(process).splitlines()
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
    process = driver(START + LONG_RUN)
    assert process.stdout is not None
    while (line := process.stdout.readline()) != "page 2\n":
        assert line.startswith("page")
    cluster.kill_worker(cluster.workers[0])
    while process.stdout.readline() != "page 4\n":
        assert process.poll() is None
    cluster.start_worker()
    answers, are_many = finished(process).splitlines()[-2:]
    assert answers == str(dict.fromkeys(("large", "groups", "last", "pairs"), True))
    assert are_many == "True"

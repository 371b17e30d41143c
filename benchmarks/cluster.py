"""One worker and two on a Spark standalone cluster, and two of which one is killed in mid-run.

    python -m benchmarks.cluster [--quick] [--out DIR] [--rows N] [--cases NAME ...]

Real processes on this machine: a master, workers of one core each, pinned to a core of their own,
that share only the store with the driver. Tuples are read from Parquet files and answers written to
Parquet files; every step runs on the executors. Driver, master and the workers' Python share the
cores with them, hence the goal of 1.4 for two workers. Each run is the median of three in one
driver, after warming up: two workers' JVMs have half the tasks each to become warm by. The run with
a killed worker, one alone, must put out exactly what the undisturbed ones do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contest_queries import CASES, Case
from benchmarks.reporting import Report, note, options, progress
from benchmarks.streams import COLUMNS
from millpond import Engine
from tests.cluster.standalone import StandaloneCluster, standalone_cluster

GOAL = 1.4
NAMES = ("aggregate", "join")
PAGE_ROWS = 100_000
WARM_PAGES = 40
"""With fewer the JVMs still compile while they are measured, two of them twice as much as one."""
RUNS = 3
DRIVER_MEMORY = EXECUTOR_MEMORY = "1 GB"
WORKER_MEMORY = "2g"


# -- the driver, a process of its own ------------------------------------------------------


def child(name: str, master: str, data: str, store: str, times: int) -> None:
    """Warms up, says that it begins, runs, and says what that gave: a JSON line each."""
    case = next(case for case in CASES if case.name == name)
    run(case, master, Path(data) / "warm", Path(store) / "warm")
    print(json.dumps({"begin": name}), flush=True)
    runs = [run(case, master, Path(data) / "all", Path(store) / f"all{i}") for i in range(times)]
    print(json.dumps(sorted(runs, key=lambda each: each["seconds"])[times // 2]), flush=True)


def run(case: Case, master: str, data: Path, store: Path) -> dict[str, Any]:
    """Runs a query over all pages; the seconds it took, and what it put out."""
    out = store.with_name(f"{store.name}-out")
    settings = {"spark_master": master, "store": store, "driver_rows": 0}
    settings |= {"driver_memory": DRIVER_MEMORY, "executor_memory": EXECUTOR_MEMORY}
    with Engine(settings, keep_results=False) as engine:
        began = time.perf_counter()
        engine.execute(script(case, data, out))
        engine.run_sources()
        engine.finish()
        seconds = time.perf_counter() - began
    return {"seconds": seconds, **digest(out)}


def script(case: Case, data: Path, out: Path) -> str:
    """The streams from files, the query into files."""
    declared = (
        f"CREATE STREAM {stream.name} ({COLUMNS}) TIMESTAMP BY ts "
        f"FROM parquet('{data / stream.name}/*.parquet');"
        for stream in case.streams
    )
    return f"{' '.join(declared)} CREATE QUERY q AS {case.cql} INTO parquet('{out}');"


def digest(directory: Path) -> dict[str, Any]:
    """How many rows there are, and a number that tells their values apart but not their order."""
    rows, total = 0, np.uint64(0)
    with np.errstate(over="ignore"):
        for file in sorted(directory.glob("*.parquet")):
            table = pq.read_table(file)
            rows += table.num_rows
            total += _mixed(table).sum(dtype=np.uint64)
    return {"rows_out": rows, "digest": int(total)}


def _mixed(table: pa.Table) -> np.ndarray:
    mixed = np.zeros(table.num_rows, np.uint64)
    for column in table.columns:
        values = column.to_numpy()
        wide = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
        mixed = (mixed ^ wide.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


# -- the cluster ---------------------------------------------------------------------------


def measured(
    case: Case, workers: int, data: Path, kill_after: float | None = None
) -> dict[str, Any]:
    """What a driver says of its run on so many workers; one may be killed after some seconds."""
    shared = data.parent
    with (
        tempfile.TemporaryDirectory(prefix="store-", dir=shared) as store,
        standalone_cluster(shared, workers=0) as cluster,
    ):
        for number in range(workers):
            core = number % (os.cpu_count() or 1)
            cluster.start_worker(memory=WORKER_MEMORY, pinned=core)
        return _driven(case, cluster, data, Path(store), kill_after)


def _driven(
    case: Case, cluster: StandaloneCluster, data: Path, store: Path, kill_after: float | None
) -> dict[str, Any]:
    times = RUNS if kill_after is None else 1
    arguments = ", ".join(map(repr, (case.name, cluster.url, str(data), str(store), times)))
    code = f"from benchmarks.cluster import child; child({arguments})"
    answer: dict[str, Any] = {}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as done:
        for text in done.stdout or ():
            line = json.loads(text) if text.startswith("{") else {}
            if "begin" in line and kill_after is not None:
                threading.Timer(kill_after, cluster.kill_worker, [cluster.workers[0]]).start()
            answer |= line
    if done.returncode:
        raise SystemExit(f"{case.name} failed:\n{cluster.logs()}")
    return answer


def compare(case: Case, rows: int, data: Path, report: Report, doing: Any) -> None:
    """The three runs of one query."""
    doing(f"{case.name}: one worker")
    one = measured(case, 1, data)
    doing(f"{case.name}: two workers")
    two = measured(case, 2, data)
    rates = {"one": rows / one["seconds"], "two": rows / two["seconds"]}
    report.ratio(
        f"{case.name}: two workers against one",
        one["seconds"] / two["seconds"],
        GOAL,
        rows=rows,
        unit="rows/s",
        millpond=rates,
        same_output=_same(one, two),
    )
    doing(f"{case.name}: one of two killed")
    killed = measured(case, 2, data, kill_after=two["seconds"] / 2)
    report.ratio(
        f"{case.name}: one of two workers killed, time against undisturbed",
        killed["seconds"] / two["seconds"],
        rows=rows,
        unit="s",
        millpond={"killed": killed["seconds"], "undisturbed": two["seconds"]},
        same_output=_same(killed, two),
        rows_out=killed["rows_out"],
    )


def _same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return (one["rows_out"], one["digest"]) == (two["rows_out"], two["digest"])


def write_pages(case: Case, directory: Path, rows: int) -> None:
    """The tuples of a case's streams, and some of them to warm up with."""
    inputs = len(case.streams)
    for name, count in (("all", rows), ("warm", WARM_PAGES * PAGE_ROWS)):
        for stream in case.streams:
            pages = directory / name / stream.name
            stream.write(pages, count // inputs, PAGE_ROWS // inputs)


def main() -> None:
    parser = options(__doc__ or "", "tuples of all streams together")
    parser.add_argument("--cases", nargs="+", choices=NAMES, help="default: all")
    chosen = parser.parse_args()
    rows = chosen.rows or (500_000 if chosen.quick else 2_000_000)
    names = chosen.cases or (NAMES[:1] if chosen.quick else NAMES)
    cases = [case for case in CASES if case.name in names]
    report = Report("cluster", chosen.out)
    with (
        tempfile.TemporaryDirectory(prefix="millpond-benchmark-") as directory,
        progress(3 * len(cases)) as doing,
    ):
        for case in cases:
            data = Path(directory) / case.name
            write_pages(case, data, rows)
            compare(case, rows, data, report, doing)
    report.close()
    note(f"workers pinned to {os.cpu_count()} cores; driver and master anywhere")


if __name__ == "__main__":
    main()

"""Memory keeps to the budget: queues, windows, states, kept results, late rows, exploding joins.

    python -m benchmarks.memory_budget [--quick] [--out DIR] [--rows MEGABYTES] [--only CASE]

Each case is a process of its own. It starts an engine, and Spark with its Python workers, and does
a little of everything: what the Python processes take then is *the start*. Then it gets several
times the budget of whatever the case is about. The ratio is what the Python processes take at most
beyond the start, over the budget; the JVM is not counted. Memory that processes share is counted
once. Goal: at most 1.3, and of the exploding instant also that its query alone is stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from matplotlib.figure import Figure

from benchmarks.reporting import Report, options, progress
from millpond import Engine
from millpond.errors import MillpondError
from millpond.settings import Settings

GOAL = 1.3
MEBIBYTE = 2**20
LOOK_SECONDS = 0.05
PAGE_ROWS = 20_000
ROW_BYTES = 60
LATER = 10_000
"""A time after all that comes before the start."""
STREAMS = """
    CREATE STREAM S (k BIGINT, v BIGINT, note STRING, ts BIGINT) TIMESTAMP BY ts DELAY 10;
    CREATE STREAM L (k INT, a BIGINT, ts BIGINT) TIMESTAMP BY ts;
    CREATE STREAM R (k INT, b BIGINT, ts BIGINT) TIMESTAMP BY ts;
"""
WARM = """
    CREATE QUERY warm AS SELECT k, count(*) AS n FROM S [RANGE 100] GROUP BY k;
    CREATE QUERY warm_join AS SELECT a, b FROM L [RANGE 5], R [RANGE 5] WHERE L.k = R.k;
"""
JOIN = "SELECT L.k, a, b FROM L [RANGE 1000000], R [RANGE 1000000] WHERE L.k = R.k"


@dataclass
class Watched:
    """What the Python processes took, looked at again and again."""

    start: float = 0.0
    looks: list[tuple[float, float]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def look(self) -> None:
        self.looks.append((time.monotonic() - self.began, python_mebibytes()))

    @property
    def peak(self) -> float:
        return max(size for _, size in self.looks)


def python_mebibytes() -> float:
    """The memory of this process and the Python processes below it; what they share counts once."""
    here, size = psutil.Process(), 0
    for each in [here, *here.children(recursive=True)]:
        try:
            if "java" not in each.name():
                size += each.memory_full_info().pss
        except psutil.Error:
            continue
    return size / MEBIBYTE


@contextmanager
def watching() -> Iterator[Watched]:
    """Looks from another thread while the block runs."""
    watched, over = Watched(), threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            watched.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield watched
    finally:
        over.set()
        thread.join()
        watched.look()


def rows(first: int, count: int, keys: int, late: bool = False) -> pa.Table:
    """Tuples of S in order of time, ten an instant; late ones are of the beginning."""
    numbers = np.arange(first, first + count)
    times = np.zeros(count, np.int64) if late else numbers // 10
    notes = pa.array([f"note number {n:>20}" for n in numbers.tolist()])
    columns = {"k": numbers * 7919 % keys, "v": numbers, "note": notes, "ts": times}
    return pa.table(columns)


def feed(engine: Engine, total: int, keys: int, late: bool = False) -> None:
    """Pushes some bytes of tuples, page by page."""
    for first in range(0, total // ROW_BYTES, PAGE_ROWS):
        engine.push("S", rows(first + PAGE_ROWS, PAGE_ROWS, keys, late))
        engine.run_until_idle()


def queries(*texts: str) -> str:
    """Ten queries: those given, in turns, each a little different."""
    made = (texts[n % len(texts)].format(n=n) for n in range(10))
    return ";".join(f"CREATE QUERY q{n} AS {text}" for n, text in enumerate(made))


KEPT = "SELECT k, v, note FROM S WHERE v > {n}"
STATE = "SELECT k, count(*) AS n, sum(v) + {n} AS s, min(note) AS m FROM S GROUP BY k"
WINDOW = "SELECT count(*) AS n, max(v) + {n} AS m FROM S [RANGE 1000000]"


def results(engine: Engine, budget: int) -> dict[str, Any]:
    """Ten queries that keep all their results."""
    engine.execute("SET keep_results = 'all';" + queries(KEPT))
    feed(engine, budget, 1_000)
    return {"rows": engine.result_count("q3")}


def late_rows(engine: Engine, budget: int) -> dict[str, Any]:
    """Tuples that come too late, which are kept."""
    engine.execute(queries(KEPT))
    engine.push("S", rows(10**6, 1_000, 1_000))
    feed(engine, 3 * budget, 1_000, late=True)
    return {}


def states(engine: Engine, budget: int) -> dict[str, Any]:
    """Groups of ten queries."""
    engine.execute(queries(STATE))
    feed(engine, budget // 2, 10**9)
    return {"state": engine.runtime.state_bytes()}


def queues(engine: Engine, budget: int) -> dict[str, Any]:
    """A backlog of several times the budget, push after push, and what windows retain."""
    engine.execute(queries(WINDOW, KEPT))
    for first in range(0, 3 * budget // ROW_BYTES, PAGE_ROWS):
        engine.push("S", rows(first + PAGE_ROWS, PAGE_ROWS, 1_000))
    engine.run_until_idle()
    return {"waits": engine.runtime.backlog.bytes}


def everything(engine: Engine, budget: int) -> dict[str, Any]:
    """Ten queries with kept results, late rows, states, windows and a backlog."""
    engine.execute("SET keep_results = 'all';" + queries(KEPT, STATE, WINDOW))
    feed(engine, budget // 2, 10**9)
    feed(engine, budget, 1_000, late=True)
    return {"state": engine.runtime.state_bytes()}


def exploding(engine: Engine, budget: int) -> dict[str, Any]:
    """A join of several times the budget in pairs, though each instant has few."""
    engine.execute(
        f"SET keep_results = '1000 rows'; CREATE QUERY q0 AS SELECT count(*) AS n FROM ({JOIN}) J"
    )
    side = int((6 * budget / 48) ** 0.5)
    meet(engine, np.arange(side) + LATER)
    return {"pairs": side**2}


def exploding_instant(engine: Engine, budget: int) -> dict[str, Any]:
    """The same pairs in one instant: the query is stopped, and another one goes on."""
    engine.execute(f"CREATE QUERY q0 AS {JOIN}; CREATE QUERY calm AS SELECT a FROM L")
    side = int((6 * budget / 48) ** 0.5)
    before = engine.results("calm").num_rows
    try:
        meet(engine, np.full(side, LATER))
    except MillpondError as error:
        said = str(error)
    engine.run_until_idle()
    assert "q0" in said, said
    assert "pairs" in said, said
    assert engine.results("calm").num_rows == before + side
    return {"pairs": side**2, "said": said}


def meet(engine: Engine, times: np.ndarray[Any, Any]) -> None:
    """As many rows on each side, all of one key."""
    keys = pa.array(np.full(len(times), 10**6), pa.int32())
    for stream, name in (("L", "a"), ("R", "b")):
        columns = {"k": keys, name: np.arange(len(times)), "ts": times}
        engine.push(stream, pa.table(columns))
    for stream in "LR":
        engine.advance(stream, int(times[-1]) + 1_000)
    engine.run_until_idle()


CASES: dict[str, Callable[[Engine, int], dict[str, Any]]] = {
    "kept results": results,
    "late rows": late_rows,
    "states": states,
    "queues and windows": queues,
    "everything together": everything,
    "an exploding join": exploding,
    "an exploding instant": exploding_instant,
}


def run_case(case: str, budget: int) -> None:
    """In a process of its own: prints what was seen."""
    settings = Settings(spark_master="local[2]").with_option("budget", str(budget))
    with Engine(settings) as engine:
        engine.execute(STREAMS + WARM + "SET driver_rows = 0; SET place_by = 'rows'")
        engine.push("S", rows(0, 2_000, 100))
        meet(engine, np.arange(1, 50))
        engine.execute("SET driver_rows = 50000; SET place_by = 'cost'")
        engine.push("S", rows(2_000, 2_000, 100))
        engine.run_until_idle()
        engine.execute("DROP QUERY warm; DROP QUERY warm_join")
        with watching() as watched:
            watched.look()
            watched.start = watched.peak
            found = CASES[case](engine, budget)
    seen = {"start": watched.start, "peak": watched.peak, "looks": watched.looks}
    print(json.dumps(seen | {"found": found}), flush=True)


def measured(case: str, budget: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.memory_budget", "--only", case]
    command += ["--inside", "--rows", str(budget // MEBIBYTE)]
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # as if Millpond came first
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def parsed() -> argparse.Namespace:
    parser = options(__doc__ or "", "the budget in megabytes")
    parser.add_argument("--only", choices=CASES, help="one case alone")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    chosen = parsed()
    budget = (chosen.rows or (48 if chosen.quick else 200)) * MEBIBYTE
    if chosen.inside:
        run_case(chosen.only, budget)
        return
    report, seen = Report("memory_budget", chosen.out), dict[str, dict[str, Any]]()
    cases = [chosen.only] if chosen.only else list(CASES)
    with progress(len(cases)) as doing:
        for case in cases:
            doing(case)
            seen[case] = found = measured(case, budget)
            beyond = found["peak"] - found["start"]
            report.ratio(
                case,
                beyond / (budget / MEBIBYTE),
                GOAL,
                at_most=True,
                unit="MiB",
                start=found["start"],
                millpond=found["peak"],
                budget=budget / MEBIBYTE,
                **found["found"],
            )
    report.draw("course", plot(seen, budget / MEBIBYTE))
    report.close()


def plot(seen: dict[str, dict[str, Any]], budget: float) -> Callable[[Figure], None]:
    """What each case takes beyond its start, over time."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for case, found in seen.items():
            seconds, sizes = zip(*found["looks"], strict=True)
            axes.plot(seconds, [size - found["start"] for size in sizes], label=case)
        axes.axhline(GOAL * budget, linestyle="--", label=f"{GOAL} times the budget")
        axes.set_xlabel("seconds")
        axes.set_ylabel("MiB beyond the start")
        axes.legend(fontsize=7)

    return draw


if __name__ == "__main__":
    main()

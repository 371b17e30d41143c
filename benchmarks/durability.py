"""What it costs that a store outlives the process, and a loss of power.

The same pushes go to engines that keep everything in memory, in a directory (`process`), and in a
directory onto whose disk each commit is forced (`disk`), in turns of a page each. A query counts by
key into a CSV file. `ratio` is the median time of a page over that in memory, or that of `disk`
over that of `process`. The disk is the one of ``--store`` (default: where this is started), so
ratios say something about that disk; seconds are those of the wall.

    python -m benchmarks.durability [--quick] [--out DIR] [--store DIR]
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.reporting import Report, options, progress
from millpond import Engine

PAGES = (1, 1_000, 100_000)
"""Rows of a push."""
TURNS = 60
KINDS = ("memory", "process", "disk")
GOALS = {"process": 2.0, "disk": 5.0}
"""Over memory; a page of one row waits for the disk a few times, others hardly."""


def engine_of(kind: str, place: Path) -> Engine:
    """An engine with a query, in memory or with a store."""
    settings = {"durability": "disk" if kind == "disk" else "process"}
    store = None if kind == "memory" else place / kind
    engine = Engine(settings, store=store, directory=place)
    engine.execute(f"""
        CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
        CREATE QUERY q AS SELECT a, count(*) AS n FROM S [RANGE 5] GROUP BY a INTO csv('{kind}.csv')
    """)
    return engine


def measure(rows: int, turns: int, place: Path) -> dict[str, list[float]]:
    """The seconds of each page, by kind."""
    taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with ExitStack() as stack:
        engines = {kind: stack.enter_context(engine_of(kind, place)) for kind in KINDS}
        for turn in range(turns):
            page = [(turn, i % 10) for i in range(rows)]
            for kind in KINDS[turn % 3 :] + KINDS[: turn % 3]:
                began = time.perf_counter()
                engines[kind].push("S", page)
                engines[kind].run_until_idle()
                taken[kind].append(time.perf_counter() - began)
    return taken


def main() -> None:
    """Measures each size of page."""
    parser = options(__doc__ or "", "rows of the largest push")
    parser.add_argument("--store", type=Path, default=Path(), help="a folder on the disk")
    given = parser.parse_args()
    report = Report("durability", given.out)
    sizes = tuple(size for size in PAGES if size <= (given.rows or max(PAGES)))
    medians: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with progress(len(sizes)) as start:
        for rows in sizes:
            start(f"pages of {rows:,}")
            turns = TURNS // 3 if given.quick or rows == max(PAGES) else TURNS
            with tempfile.TemporaryDirectory(dir=given.store.resolve()) as place:
                taken = measure(rows, turns, Path(place))
            found = {kind: statistics.median(each[3:]) for kind, each in taken.items()}
            for kind, seconds in found.items():
                medians[kind].append(seconds)
                report.value(f"{kind}, pages of {rows:,}", seconds * 1e3, "ms")
            for kind, goal in GOALS.items():
                ratio = found[kind] / found["memory"]
                what = f"{kind} over memory"
                report.ratio(f"{kind}, pages of {rows:,}", ratio, goal, at_most=True, what=what)
    report.draw("milliseconds", lambda figure: plot(figure, sizes, medians))
    report.close()


def plot(figure: Figure, sizes: tuple[int, ...], medians: dict[str, list[float]]) -> None:
    """Milliseconds of a page over its rows, a line a kind."""
    axes = figure.subplots()
    for kind, seconds in medians.items():
        axes.plot(sizes, [each * 1e3 for each in seconds], marker="o", label=kind)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rows of a push")
    axes.set_ylabel("ms until its results are there")
    axes.legend()


if __name__ == "__main__":
    main()

"""What a small step costs: in the driver, through Spark, and in raw Structured Streaming.

    python -m benchmarks.small_steps [--quick] [--out DIR] [--rows LARGEST]

A filter, an aggregate and a window join over pages of 1 to 10,000 tuples, medians of warm pages,
from pushing one to having its results. "driver" never starts Spark, "collected" has it evaluate the
expressions of steps that end in the driver, "executors" runs whole steps there; the peer reads the
same tuples, a file a micro-batch, as installed. Then where the milliseconds of a page in the driver
go.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from benchmarks import structured_streaming as peer
from benchmarks.contest_queries import CASES, Case
from benchmarks.reporting import Report, note, options, progress
from benchmarks.streams import scratch_directory
from millpond import Engine
from millpond.execution.driver import DriverExecutor
from millpond.execution.executor import Executors
from millpond.settings import Settings
from millpond.spark.session import create_session
from millpond.storage.state_cache import StateCache

SIZES = (1, 100, 1_000, 10_000)
EVERYTHING = 10**12
WAYS: dict[str, dict[str, Any]] = {
    "driver": {"driver_rows": EVERYTHING, "small_steps": "driver"},
    "collected": {"driver_rows": EVERYTHING, "small_steps": "spark"},
    "executors": {"driver_rows": 0, "small_steps": "driver"},
}
JUDGED_ROWS, JUDGED_MILLISECONDS, JUDGED_RATIO = 1_000, 15.0, 10.0
FILL_ROWS = 100_000


@dataclass
class Fed:
    """An engine with one query and full windows, and the pages to come."""

    case: Case
    rows: int
    engine: Engine
    next: int = 0

    @staticmethod
    def of(case: Case, rows: int, way: str, spark: SparkSession | None) -> Fed:
        """Windows filled in the driver; the steps after that run the way that is measured."""
        settings = Settings(driver_rows=EVERYTHING, step_rows=EVERYTHING, spark_master="local[2]")
        fed = Fed(case, rows, Engine(settings, spark, keep_results=False))
        fed.engine.execute(case.script)
        fed.page(FILL_ROWS)
        for key, value in WAYS[way].items():
            fed.engine.execute(f"SET {key} = '{value}';")
        return fed

    def page(self, rows: int | None = None) -> float:
        """The milliseconds of one page."""
        streams = self.case.streams
        each = max(1, (rows or self.rows) // len(streams))
        ready = {stream.name: stream.page(self.next, each) for stream in streams}
        self.next += each
        began = time.perf_counter()
        for name, page in ready.items():
            self.engine.push(name, page)
        self.engine.run_until_idle()
        return 1000 * (time.perf_counter() - began)


@dataclass
class Parts:
    """Where the milliseconds of pages go, by timing what they pass through."""

    milliseconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Times what happens in the block."""
        watched: list[tuple[type, str, str]] = [
            (Engine, "push", "admission"),
            (Executors, "execute", "steps"),
            (DriverExecutor, "gathered", "reading"),
            (StateCache, "state_at", "state"),
            (StateCache, "write", "writing"),
        ]
        kept = [(kind, name, getattr(kind, name)) for kind, name, _ in watched]
        for kind, name, part in watched:
            setattr(kind, name, self._timed(getattr(kind, name), part))
        try:
            yield
        finally:
            for kind, name, method in kept:
                setattr(kind, name, method)

    def _timed(self, method: Callable[..., Any], part: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*arguments, **options)
            finally:
                self.milliseconds[part] += 1000 * (time.perf_counter() - began)

        return timed

    def per_page(self, pages: list[float]) -> dict[str, float]:
        """Milliseconds a page, part by part; the loop has what is left."""
        spent = {name: value / len(pages) for name, value in self.milliseconds.items()}
        kernel = spent["steps"] - sum(spent.get(name, 0.0) for name in ("reading", "writing"))
        whole = statistics.mean(pages)
        return {
            "admission": spent["admission"],
            "reading and expressions": spent["reading"],
            "state written": spent.get("writing", 0.0),
            "kernel and output": kernel,
            "loop: observing, deciding, committing": whole - spent["admission"] - spent["steps"],
        }


class Bench:
    """All measurements of this benchmark."""

    def __init__(self, chosen: argparse.Namespace, report: Report, scratch: Path) -> None:
        self.sizes = [size for size in SIZES if size <= (chosen.rows or max(SIZES))]
        self.times, self.warm = (9, 6) if chosen.quick else (30, 20)
        self.report, self.scratch = report, scratch
        self.doing: Callable[[str], None] = note
        self.found: dict[tuple[str, str], list[float]] = defaultdict(list)

    def ours(self, case: Case, way: str, spark: SparkSession | None) -> None:
        """The median page of each size."""
        for rows in self.sizes:
            self.doing(f"{case.name}, {rows:,} rows, {way}")
            fed = Fed.of(case, rows, way, spark)
            with fed.engine:
                pages = [fed.page() for _ in range(self.times + self.warm)][self.warm :]
            self.found[case.name, way].append(statistics.median(pages))

    def theirs(self, case: Case, spark: SparkSession) -> None:
        """The median micro-batch of each size."""
        for rows in self.sizes:
            self.doing(f"{case.name}, {rows:,} rows, Structured Streaming")
            each, count = max(1, rows // len(case.streams)), self.times + self.warm
            directories = []
            for stream in case.streams:
                directories.append(self.scratch / f"{case.name}-{stream.name}-{rows}")
                stream.write(directories[-1], each * count, each)
            run = peer.run(spark, case.build, directories, peer.RAW, self.scratch)
            batches = run.batch_seconds[self.warm :]
            self.found[case.name, "peer"].append(1000 * statistics.median(batches))

    def parts(self, case: Case) -> None:
        """One line: where the milliseconds of a page go."""
        self.doing(f"{case.name}: where the rest goes")
        fed, parts = Fed.of(case, JUDGED_ROWS, "driver", None), Parts()
        with fed.engine:
            for _ in range(self.warm):
                fed.page()
            with parts.watching():
                pages = [fed.page() for _ in range(self.times)]
        self.report.value(
            f"{case.name}: where a page of {JUDGED_ROWS:,} goes",
            statistics.mean(pages),
            "ms a page",
            millpond=parts.per_page(pages),
        )

    def lines(self, case: Case) -> None:
        """One line a size, and the judged ones."""
        for number, rows in enumerate(self.sizes):
            spent = {way: self.found[case.name, way][number] for way in WAYS}
            theirs = self.found[case.name, "peer"][number]
            is_judged = rows == JUDGED_ROWS
            self.report.ratio(
                f"{case.name}, {rows:,} rows: driver against Structured Streaming",
                theirs / spent["driver"],
                JUDGED_RATIO if is_judged else None,
                millpond={f"{way}_ms": value for way, value in spent.items()},
                peer={"micro_batch_ms": theirs},
            )
            if is_judged:
                self.report.ratio(
                    f"{case.name}, {rows:,} rows: share of {JUDGED_MILLISECONDS:g} ms",
                    spent["driver"] / JUDGED_MILLISECONDS,
                    1.0,
                    at_most=True,
                    millpond={"driver_ms": spent["driver"]},
                )

    def draw(self, figure: Figure) -> None:
        """Milliseconds over rows, a line a way."""
        axes = figure.subplots(1, len(CASES), sharey=True)
        for ax, case in zip(axes, CASES, strict=True):
            for way in (*WAYS, "peer"):
                label = "Structured Streaming" if way == "peer" else way
                ax.loglog(self.sizes, self.found[case.name, way], marker="o", label=label)
            ax.set(title=case.name, xlabel="rows a page")
        axes[0].set_ylabel("ms a page")
        axes[0].legend()


def main() -> None:
    """Measures all cases, those without Spark first, and prints."""
    chosen = options(__doc__ or "", "the largest page").parse_args()
    report = Report("small_steps", chosen.out)
    with scratch_directory() as scratch:
        bench = Bench(chosen, report, scratch)
        turns = len(CASES) * (1 + len(bench.sizes) * (len(WAYS) + 1))
        with progress(turns) as bench.doing:
            for case in CASES:
                bench.ours(case, "driver", None)
                bench.parts(case)
            spark = create_session(Settings(spark_master="local[2]"))
            for case in CASES:
                bench.theirs(case, spark)
                for way in ("collected", "executors"):
                    bench.ours(case, way, spark)
                bench.lines(case)
            spark.stop()
    if max(bench.sizes) > 1:
        report.draw("ways", bench.draw)
    report.close()


if __name__ == "__main__":
    main()

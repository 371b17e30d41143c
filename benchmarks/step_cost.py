"""What a step costs, a + b·n milliseconds for n tuples, and where the fixed part goes.

    python -m benchmarks.step_cost [--quick] [--out DIR] [--rows LARGEST]

For each operator: pages of 1k to 1M tuples, windows full, medians of warm pages. Then the forms a
page can have on its way into Spark, and a grouped aggregate's kernel in the driver against the
same in Spark's workers, which decides the default of the setting driver_rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from pyspark.sql import DataFrame

from benchmarks.feed import AGGREGATE, CASES, Case, Feed, fitted, median_milliseconds, seconds_of
from benchmarks.reporting import Report, note, options, progress
from benchmarks.step_profile import MEANINGS, PARTS, StepProfile
from benchmarks.streams import scratch_directory
from millpond.settings import Settings
from millpond.spark.session import create_session

SIZES = (1_000, 10_000, 100_000, 1_000_000)
PLACEMENT_SIZES = (10_000, 100_000, 500_000, 1_000_000)
PROTOTYPE_MILLISECONDS = {
    "arrow": (63, 47, 117, 1591),
    "parquet": (71, 56, 61, 114),
    "persisted": (44, 39, 91, 1020),
}
"""design.md, section 10: page, filter, toArrow() at 1k, 10k, 100k and 1M rows."""
EVERYTHING = 10**12
BARE = "bare Spark filter"


class Bench:
    """All measurements of this benchmark."""

    def __init__(self, chosen: argparse.Namespace, report: Report, scratch: Path) -> None:
        largest = chosen.rows or (100_000 if chosen.quick else 1_000_000)
        self.sizes = [size for size in SIZES if size <= largest] or [largest]
        self.placement_sizes = [s for s in PLACEMENT_SIZES if s <= largest] or [largest]
        self.cases = [c for c in CASES if not chosen.cases or c.name in chosen.cases]
        self.times = chosen.times or (5 if chosen.quick else 9)
        self.warm_seconds = 10.0 if chosen.quick else 30.0
        self.settings = Settings(spark_master=chosen.master, step_rows=EVERYTHING)
        self.spark = create_session(self.settings)
        self.report = report
        self.scratch = scratch
        self.doing: Callable[[str], None] = note
        self.costs: dict[str, list[float]] = {}
        self.parts: dict[str, dict[str, float]] = {}

    def repetitions(self, rows: int) -> tuple[int, int]:
        """How often a page of this size is measured, and how often before that for warmth."""
        return (self.times, 6) if rows < 500_000 else (max(2, self.times // 3), 2)

    def warm(self) -> None:
        """Steps until the JVM has compiled what every step runs through."""
        self.doing("warming up")
        feed = Feed(AGGREGATE, self.sizes[0], self.settings, self.spark)
        with feed.engine:
            until = time.perf_counter() + self.warm_seconds
            while time.perf_counter() < until:
                feed.page()

    # -- a + b·n ---------------------------------------------------------------------------

    def operators(self) -> None:
        """One line an operator, and the filter's peer before them."""
        bare = [self.bare_filter(size) for size in self.sizes]
        self.costs[BARE] = bare
        self.line(BARE, bare, {})
        for case in self.cases:
            self.costs[case.name] = [self.cost(case, size) for size in self.sizes]
            against = {"peer": _by_size(self.sizes, bare)} if case.name == "filter" else {}
            self.line(case.name, self.costs[case.name], against)
            self.parts[case.name] = self.fixed_part(case)

    def line(self, name: str, milliseconds: list[float], more: dict[str, Any]) -> None:
        """The two parts of a cost, and what they were fitted to."""
        fixed, slope = fitted(self.sizes, milliseconds)
        described: dict[str, Any] = {
            "fixed_milliseconds": fixed,
            "microseconds_per_tuple": 1000 * slope,
            "peer" if name == BARE else "millpond": _by_size(self.sizes, milliseconds),
        }
        if "peer" in more:
            ratio = milliseconds[0] / self.costs[BARE][0]
            self.report.ratio(f"{name}: a step", ratio, None, **described, **more)
        else:
            self.report.value(f"{name}: a step", fixed, "ms fixed", **described)

    def cost(self, case: Case, size: int) -> float:
        """The median milliseconds of a page."""
        self.doing(f"{case.name}, {size:,} tuples")
        feed = Feed(case, size, self.settings, self.spark)
        with feed.engine:
            return median_milliseconds(feed.page, *self.repetitions(size))

    def fixed_part(self, case: Case) -> dict[str, float]:
        """One line: where the milliseconds of a small page go."""
        self.doing(f"{case.name}: where the fixed part goes")
        feed = Feed(case, self.sizes[0], self.settings, self.spark)
        with feed.engine:
            for _ in range(6):
                feed.page()
            before, profile = feed.steps, StepProfile(self.spark)
            for _ in range(self.times):
                with profile.watching():
                    feed.page()
            steps = feed.steps - before
        parts = profile.per_step(self.times)
        self.report.value(
            f"{case.name}: where a page of {self.sizes[0]:,} goes",
            sum(parts.values()),
            "ms a page",
            millpond=parts,
            steps_per_page=steps / self.times,
            jobs_per_page=profile.jobs / self.times,
            jvm_calls_per_page=profile.calls / self.times,
        )
        return parts

    # -- forms of pages --------------------------------------------------------------------

    def bare_filter(self, size: int) -> float:
        """A Spark job over a Parquet page, with no engine around it."""
        self.doing(f"bare Spark filter, {size:,} tuples")
        path = self.parquet(size)
        return self.collected(partial(self.reading, path), size)

    def parquet(self, size: int) -> str:
        """The path of a page of this size."""
        path = self.scratch / f"{size}.parquet"
        if not path.exists():
            table = CASES[0].streams[0].page(0, size)
            pq.write_table(table, path, compression="none", use_dictionary=False)
        return str(path)

    def reading(self, path: str) -> DataFrame:
        """A frame over a Parquet page."""
        return self.spark.read.schema(_SCHEMA).parquet(path)

    def collected(self, make: Callable[[], DataFrame], size: int) -> float:
        """The filter of a frame that is made anew each time, with its rows in the driver."""

        def work() -> float:
            return seconds_of(lambda: make().filter("value > 0.9").select("key", "value").toArrow())

        return median_milliseconds(work, *self.repetitions(size))

    def forms(self) -> None:
        """One line a form of page: Arrow from the driver, Parquet, persisted."""
        found: dict[str, list[float]] = {name: [] for name in PROTOTYPE_MILLISECONDS}
        writing = []
        for size in self.sizes:
            self.doing(f"forms of a page, {size:,} tuples")
            table, path = CASES[0].streams[0].page(0, size), self.parquet(size)
            held = self.spark.createDataFrame(table).persist()
            held.count()
            arrow, parquet, persisted = found.values()
            arrow.append(self.collected(partial(self.spark.createDataFrame, table), size))
            parquet.append(self.collected(partial(self.reading, path), size))
            persisted.append(self.collected(partial(held.select, "*"), size))
            held.unpersist()
            writing.append(self.writing(table))
        for name, milliseconds in found.items():
            more = {"writing": _by_size(self.sizes, writing)} if name == "parquet" else {}
            prototype = _by_size(list(SIZES), list(PROTOTYPE_MILLISECONDS[name]))
            fixed, slope = fitted(self.sizes, milliseconds)
            self.report.value(
                f"page form {name}", fixed, "ms fixed", microseconds_per_tuple=1000 * slope,
                millpond=_by_size(self.sizes, milliseconds), prototype=prototype, **more,
            )  # fmt: skip

    def writing(self, table: pa.Table) -> float:
        """What it takes to turn a page into a Parquet file."""
        path = self.scratch / "written.parquet"

        def work() -> float:
            return seconds_of(
                lambda: pq.write_table(table, path, compression="none", use_dictionary=False)
            )

        return median_milliseconds(work, 5, 1)

    # -- where kernels run -----------------------------------------------------------------

    def placement(self) -> None:
        """One line a size: the grouped aggregate's kernel in workers against the driver."""
        quicker = 0
        for size in self.placement_sizes:
            driver, workers = (self.placed(size, driver_rows) for driver_rows in (EVERYTHING, 0))
            quicker = size if driver <= workers else quicker
            self.report.ratio(
                f"kernel in workers over driver, {size:,} tuples", workers / driver, None,
                millpond={"driver": driver, "workers": workers}, unit="ms a page",
            )  # fmt: skip
        self.report.value(
            "driver_rows by these numbers", quicker, "rows", sizes=self.placement_sizes
        )

    def placed(self, size: int, driver_rows: int) -> float:
        """The grouped aggregate with its kernel in the driver up to so many rows."""
        where = "driver" if driver_rows else "workers"
        self.doing(f"kernel in {where}, {size:,} tuples")
        settings = self.settings.with_option("driver_rows", str(driver_rows))
        feed = Feed(AGGREGATE, size, settings, self.spark)
        with feed.engine:
            return median_milliseconds(feed.page, *self.repetitions(size))

    # -- pictures --------------------------------------------------------------------------

    def draw_costs(self, figure: Figure) -> None:
        """Milliseconds over tuples, a line an operator."""
        axes = figure.subplots()
        for name, milliseconds in self.costs.items():
            axes.loglog(self.sizes, milliseconds, marker="o", label=name)
        axes.set_xlabel("tuples of a page")
        axes.set_ylabel("milliseconds of a page")
        axes.legend()

    def draw_parts(self, figure: Figure) -> None:
        """What a small page is made of, a bar an operator."""
        axes = figure.subplots()
        names, left = list(self.parts), np.zeros(len(self.parts))
        for part in PARTS:
            widths = np.array([self.parts[name][part] for name in names])
            axes.barh(names, widths, left=left, label=f"{part}: {MEANINGS[part]}")
            left += widths
        axes.set_xlabel(f"milliseconds of a page of {self.sizes[0]:,}")
        figure.legend(loc="outside lower center", fontsize=7)


_SCHEMA = "ts TIMESTAMP_NTZ, key INT, value DOUBLE"


def _by_size(sizes: list[int], milliseconds: list[float]) -> dict[str, float]:
    return {f"{size} rows, ms": spent for size, spent in zip(sizes, milliseconds, strict=False)}


def main() -> None:
    parser = options(__doc__ or "", "the largest page")
    parser.add_argument("--times", type=int, help="pages measured for each median")
    parser.add_argument("--cases", nargs="*", help="some of the operators, by name")
    parser.add_argument("--parts", nargs="*", default=["operators", "forms", "placement"])
    parser.add_argument("--master", default="local[2]", help="where Spark runs")
    chosen = parser.parse_args()
    report = Report("step_cost", chosen.out)
    with scratch_directory() as scratch:
        bench = Bench(chosen, report, scratch)
        each = len(bench.sizes)
        turns = each * (len(bench.cases) + 2) + len(bench.cases) + 2 * len(bench.placement_sizes)
        with progress(turns + 1) as bench.doing:
            bench.warm()
            for part in chosen.parts:
                getattr(bench, part)()
        bench.spark.stop()
    if bench.costs:
        report.draw("operators", bench.draw_costs)
        report.draw("fixed_part", bench.draw_parts)
    report.close()


if __name__ == "__main__":
    main()

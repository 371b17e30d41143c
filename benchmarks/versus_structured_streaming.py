"""The same queries on the same pages in Millpond and in raw Structured Streaming, in one JVM.

    python -m benchmarks.versus_structured_streaming [--quick] [--out DIR] [--rows N]

Both sides read the same Parquet files on the same file system, reading time included, and are
warmed up for equally long on pages of the same shape, in one session with settings that serve both,
the heaviest queries first. The peer runs as installed, and again with the quickest of several
settings ("tuned"); ratios are to the second, those to the first stand beside. Millpond is exact at
every instant; the peer's aggregate moves in hops of a tenth of the window. The peer's noop sink
drops rows where they arise, Millpond's results are complete and counted.

The peer always logs: for each batch its offsets, the changes of its states, and a commit. So
Millpond runs with the store in memory, logging nothing, and again ("durable") with one in a
directory: it logs every page pushed, all that each step puts out and changes of its state, and the
commits. Both directories are on the same file system. ``way`` says where Millpond's steps ran.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from benchmarks import structured_streaming as peer
from benchmarks.contest_queries import CASES, HOPPING, Case
from benchmarks.memory import heap_mebibytes, watched
from benchmarks.reporting import Report, note, options, progress
from benchmarks.streams import scratch_directory
from millpond import Engine
from millpond.settings import Settings
from millpond.spark.session import create_session

SMALL_PAGE_ROWS = 1_000
GOAL = 1.5
"""Against the peer with its quickest settings, in every case."""

SMALL_PAGES_GOAL = 2.9
RUNS = 3
QUICK_SECONDS = 3.0
"""A quick contest is not repeated if a run takes longer."""


@dataclass
class Side:
    """What one side needed."""

    runs_seconds: list[float] = field(default_factory=list)
    page_seconds: list[float] = field(default_factory=list)
    peak_mebibytes: float = 0.0
    rows_out: int = 0
    way: dict[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The median of the runs."""
        return statistics.median(self.runs_seconds)

    @property
    def page_milliseconds(self) -> float:
        """The median of the pages."""
        return 1000 * statistics.median(self.page_seconds)

    def add(
        self,
        page_seconds: list[float],
        peak_mebibytes: float,
        rows_out: int,
        way: dict[str, int] | None = None,
    ) -> None:
        """Takes one run."""
        self.way = way or {}
        self.runs_seconds.append(sum(page_seconds))
        self.page_seconds += page_seconds
        self.peak_mebibytes = max(self.peak_mebibytes, peak_mebibytes)
        self.rows_out = rows_out

    def described(self, rows: int) -> dict[str, Any]:
        """For a line."""
        return {
            "rows_per_second": round(rows / self.seconds),
            "seconds": self.seconds,
            "peak_rss_mebibytes": round(self.peak_mebibytes),
            "result_rows": self.rows_out,
            **({"way": self.way} if self.way else {}),
        }


@dataclass(frozen=True)
class Outcome:
    """One case on all sides; ``variant`` names the settings of the tuned peer."""

    ours: Side
    durable: Side
    raw: Side
    tuned: Side
    variant: str


def run_millpond(
    case: Case,
    directories: list[Path],
    settings: Settings,
    spark: SparkSession,
    store: Path | None = None,
) -> tuple[list[float], int, dict[str, int]]:
    """The seconds of each round of pages, the rows put out in the end, and where steps ran."""
    files = zip(*(sorted(directory.iterdir()) for directory in directories), strict=True)
    with Engine(settings, spark, keep_results=False, store=store) as engine:
        engine.execute(case.script)
        engine.run_until_idle()
        page_seconds = []
        for paths in files:
            began = time.perf_counter()
            for stream, path in zip(case.streams, paths, strict=True):
                engine.push(stream.name, pq.read_table(path))
            engine.run_until_idle()
            page_seconds.append(time.perf_counter() - began)
        engine.finish()
        tally = engine.runtime.tally
        way = {"steps in the driver": tally.driver_steps, "on executors": tally.executor_steps}
        return page_seconds, engine.result_count("q"), way


class Contest:
    """Runs cases on both sides and reports them."""

    def __init__(self, chosen: argparse.Namespace, report: Report, scratch: Path) -> None:
        self.settings = Settings(spark_master=chosen.master)
        self.spark = create_session(self.settings)
        self.report = report
        self.scratch = scratch
        self.rows = chosen.rows or (1_000_000 if chosen.quick else 2_000_000)
        self.page_rows = min(chosen.page_rows, self.rows)
        self.is_quick = chosen.quick
        self.warm_seconds = 4.0 if chosen.quick else 20.0
        self.small_pages = chosen.small_pages or (25 if chosen.quick else 200)
        self.doing: Callable[[str], None] = note

    def pages(self, case: Case, rows: int, page_rows: int) -> list[Path]:
        """Directories of pages, one for each stream of the case, ``rows`` tuples in all."""
        inputs = len(case.streams)
        directories = []
        for stream in case.streams:
            name = f"{stream.name}-{stream.keys}-{rows}-{page_rows}"
            directories.append(self.scratch / name)
            if not directories[-1].exists():
                stream.write(directories[-1], rows // inputs, page_rows // inputs)
        return directories

    def variant(self, case: Case, directories: list[Path]) -> str:
        """The peer's quickest settings (when quick: the usual ones)."""
        if self.is_quick:
            return peer.TUNED
        names = peer.VARIANTS if case.is_stateful else peer.STATELESS
        self._peer(case, directories, next(iter(names)))
        runs = {name: self._peer(case, directories, name) for name in names}
        return min(runs, key=lambda name: statistics.median(runs[name].batch_seconds))

    def warm(self, run: Callable[[], object]) -> None:
        """Runs until the time for warming up is over, at least once."""
        began = time.perf_counter()
        run()
        while time.perf_counter() - began < self.warm_seconds:
            run()

    def _peer(self, case: Case, directories: list[Path], variant: str) -> peer.Run:
        return peer.run(self.spark, case.build, directories, variant, self.scratch)

    def contest(self, case: Case, rows: int, page_rows: int, warm_pages: int) -> Outcome:
        """All sides, warm, one after the other: three times, when quick only if that is quick."""
        warm = self.pages(case, warm_pages * page_rows, page_rows)
        measured = self.pages(case, rows, page_rows)
        self.doing(f"{case.name}, pages of {page_rows:,}: warming up")
        variant = self.variant(case, warm)
        for chosen in {peer.RAW, variant}:
            self.warm(partial(self._peer, case, warm, chosen))
        self.warm(partial(run_millpond, case, warm, self.settings, self.spark))
        ours, durable, raw, tuned = Side(), Side(), Side(), Side()
        self.doing(f"{case.name}, pages of {page_rows:,}: measuring")
        for _ in range(RUNS):
            self._measure_ours(case, measured, ours)
            with tempfile.TemporaryDirectory(dir=self.scratch) as store:
                self._measure_ours(case, measured, durable, Path(store))
            self._measure_peer(case, measured, peer.RAW, raw)
            self._measure_peer(case, measured, variant, tuned)
            if self.is_quick and raw.seconds > QUICK_SECONDS:
                break
        if case.same_rows and ours.rows_out != raw.rows_out:
            note(f"{case.name}: {ours.rows_out} rows here, {raw.rows_out} there: not the same!")
        return Outcome(ours, durable, raw, tuned, variant)

    def _measure_ours(
        self, case: Case, directories: list[Path], side: Side, store: Path | None = None
    ) -> None:
        heap_mebibytes(self.spark)
        with watched() as peak:
            page_seconds, rows_out, way = run_millpond(
                case, directories, self.settings, self.spark, store
            )
        side.add(page_seconds, peak.mebibytes, rows_out, way)

    def _measure_peer(self, case: Case, directories: list[Path], variant: str, side: Side) -> None:
        heap_mebibytes(self.spark)
        with watched() as peak:
            run = self._peer(case, directories, variant)
        side.add(list(run.batch_seconds), peak.mebibytes, run.rows_out)

    def throughput(self, case: Case) -> None:
        """Rows a second on large pages: a line without, and one with durability."""
        found = self.contest(case, self.rows, self.page_rows, warm_pages=4)
        tuned, raw = found.tuned, found.raw
        for ours, name in ((found.ours, case.name), (found.durable, f"{case.name}-durable")):
            rate = self.rows / ours.seconds
            self.report.ratio(
                name,
                tuned.seconds / ours.seconds,
                GOAL if ours is found.ours and case.goal is not None else None,
                rows=self.rows,
                page_rows=self.page_rows,
                millpond=ours.described(self.rows),
                peer=tuned.described(self.rows) | {"settings": found.variant},
                installed_peer=raw.described(self.rows) | {"settings": peer.RAW},
                ratio_to_installed=raw.seconds / ours.seconds,
                goal_to_installed=case.goal,
                same_result_rows=ours.rows_out == raw.rows_out if case.same_rows else None,
                prototype=case.prototype,
                against_prototype=rate / case.prototype["millpond"] if case.prototype else None,
            )

    def small(self) -> None:
        """One line for all queries on pages of a thousand tuples; the worst ratio counts."""
        found: dict[str, Outcome] = {}
        for case in reversed(CASES):
            rows = self.small_pages * SMALL_PAGE_ROWS
            found[case.name] = self.contest(case, rows, SMALL_PAGE_ROWS, min(15, self.small_pages))
        ours = {name: sides.ours.page_milliseconds for name, sides in found.items()}
        theirs = {name: sides.raw.page_milliseconds for name, sides in found.items()}
        tuned = {name: sides.tuned.page_milliseconds for name, sides in found.items()}
        self.report.ratio(
            "small-pages",
            min(tuned[name] / ours[name] for name in found),
            GOAL,
            unit="ms a page",
            page_rows=SMALL_PAGE_ROWS,
            pages=self.small_pages,
            millpond=ours,
            peer=tuned,
            ratios={name: tuned[name] / ours[name] for name in found},
            durable={name: sides.durable.page_milliseconds for name, sides in found.items()},
            installed_peer=theirs,
            ratios_to_installed={name: theirs[name] / ours[name] for name in found},
            ratio_to_installed=min(theirs[name] / ours[name] for name in found),
            goal_to_installed=SMALL_PAGES_GOAL,
            way={name: sides.ours.way for name, sides in found.items()},
            tuned_settings={name: sides.variant for name, sides in found.items()},
            rss_mebibytes={
                name: [round(s.peak_mebibytes) for s in (sides.ours, sides.raw)]
                for name, sides in found.items()
            },
            prototype={"peer stateless": [139, 217], "peer stateful": [228, 340], "step": 40},
        )


def plot(report: Report) -> Callable[[Figure], None]:
    """Rows a second of both sides, with the ratio over each pair."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        lines = [line for line in report.lines if "rows_per_second" in str(line["millpond"])]
        for offset, side in ((-0.2, "millpond"), (0.2, "peer")):
            heights = [line[side]["rows_per_second"] / 1000 for line in lines]
            name = "Millpond" if side == "millpond" else "Structured Streaming"
            axes.bar([i + offset for i in range(len(lines))], heights, 0.4, label=name)
        labels = [f"{line['case']}\n{line['ratio']:.2f}x" for line in lines]
        axes.set_xticks(range(len(lines)), labels)
        axes.set_ylabel("thousand tuples a second")
        axes.legend()

    return draw


def stand(report: Report) -> None:
    """Says where the results stand against the goals and the prototypes of design.md."""
    for line in report.lines:
        goal = (
            f" (goal {line['goal']}: {'met' if line['met'] else 'missed'})" if line["goal"] else ""
        )
        against = line.get("against_prototype")
        words = f"; {against:.2f} times the prototype's rate" if against else ""
        installed = f", {line['ratio_to_installed']:.2f}x as installed"
        note(f"{line['case']}: {line['ratio']:.2f}x Structured Streaming{goal}{installed}{words}")


def main() -> None:
    parser = options(__doc__ or "", "tuples of each case (both streams together)")
    parser.add_argument("--page-rows", type=int, default=100_000, help="tuples of a page")
    parser.add_argument("--cases", nargs="*", help="some of filter, aggregate, join, small-pages")
    parser.add_argument("--small-pages", type=int, help="how many pages of a thousand tuples")
    parser.add_argument("--master", default="local[2]", help="where Spark runs")
    chosen = parser.parse_args()
    report = Report("versus_structured_streaming", chosen.out)
    cases = [*CASES, *([] if chosen.quick and not chosen.cases else [HOPPING])]
    wanted = chosen.cases or [*(case.name for case in cases), "small-pages"]
    turns = (len(wanted) + 2 * ("small-pages" in wanted)) * 2
    with scratch_directory() as scratch, progress(turns) as doing:
        contest = Contest(chosen, report, scratch)
        contest.doing = doing
        for case in reversed(cases):
            if case.name in wanted:
                contest.throughput(case)
        if "small-pages" in wanted:
            contest.small()
        contest.spark.stop()
    report.draw("throughput", plot(report))
    report.close()
    stand(report)


if __name__ == "__main__":
    main()

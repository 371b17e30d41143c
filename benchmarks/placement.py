"""Where a step runs: in the driver, by residents on the executors, or as a job of Spark's.

    python -m benchmarks.placement [--quick] [--out DIR] [--rows LARGEST] [--cores N]

A filter, an aggregate, a window join and a Rows window over pages of 1k, 100k and 1M tuples,
windows full. All ways take their pages by turns, so that none has a quieter machine than another.
Medians of the time of warm pages, and the processor seconds of the whole process tree (Python,
JVM, residents and workers) over all of them. The first page on the executors is said apart: it
waits for residents to come.
"""

from __future__ import annotations

import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from benchmarks.feed import AGGREGATE, CASES, Case, Feed, seconds_of
from benchmarks.processor_time import tree_seconds
from benchmarks.reporting import Report, note, options, progress
from millpond.settings import Settings
from millpond.spark.session import create_session

SIZES = (1_000, 100_000, 1_000_000)
EVERYTHING = 10**12
WAYS: dict[str, dict[str, Any]] = {
    "driver": {"driver_rows": EVERYTHING, "place_by": "rows"},
    "residents": {"driver_rows": 0},
    "jobs": {"driver_rows": 0, "residents": 0},
}
NAMES = ("filter", "grouped aggregate", "window join", "rows window")
WARM_PAGES = 3
STORE_GOAL = 1.5
"""How much longer a page may take with a store that is a directory."""
SHARE_GOAL = 0.01
"""Which part of the bytes may pass the driver."""
SMALL_MS = 5.0
WALL_GOALS = {"filter": 1.2}
WALL_GOAL = 0.7
PROCESSOR_GOALS = {100_000: (1.8, 1.5), 1_000_000: (1.5, 1.25)}
"""By the rows of a page: for the filter, and for what keeps a state."""


class Measured:
    """An engine with one way to do its steps, page by page."""

    def __init__(self, case: Case, rows: int, settings: Settings, is_stored: bool) -> None:
        self._directory = tempfile.TemporaryDirectory()
        store = self._directory.name if is_stored else "memory"
        self._began = tree_seconds()
        spark, made = create_session(settings), []
        self.first = seconds_of(
            lambda: made.append(Feed(case, rows, replace(settings, store=store), spark))
        )
        self._feed = made[0]
        self._page_bytes = rows * 24.0
        self._seconds: list[float] = []
        self._processor: list[float] = []
        self._driver_bytes: list[int] = []

    def page(self) -> None:
        """One more page."""
        passed, spent = self._passed(), tree_seconds()
        self._seconds.append(self._feed.page())
        self._processor.append(tree_seconds() - spent)
        self._driver_bytes.append(self._passed() - passed)

    def _passed(self) -> int:
        measured = self._feed.engine.runtime.statistics.values()
        return sum(each.tally.driver_bytes for each in measured)

    def known(self) -> dict[str, float]:
        """What all pages but the first ones took."""
        return {
            "ms": 1000 * statistics.median(self._seconds[WARM_PAGES:]),
            "processor_ms": 1000 * statistics.mean(self._processor[WARM_PAGES:]),
            "bytes_share": statistics.median(self._driver_bytes[WARM_PAGES:]) / self._page_bytes,
            "first_seconds": self.first,
        }

    def close(self) -> None:
        """Gives everything up."""
        self._feed.engine.close()
        self._directory.cleanup()


def measured(case: Case, rows: int, usual: Settings, times: int) -> dict[str, dict[str, float]]:
    """What a page takes in each way; "stored" is residents with a directory."""
    with ExitStack() as opened:
        engines = {}
        for way in (*WAYS, "stored"):
            settings = usual.with_options(WAYS["residents" if way == "stored" else way])
            engines[way] = Measured(case, rows, settings, way == "stored")
            opened.callback(engines[way].close)
        for _ in range(WARM_PAGES + times):
            for each in engines.values():
                each.page()
        return {way: each.known() for way, each in engines.items()}


def report_case(
    report: Report, name: str, rows: int, found: dict[str, dict[str, float]], cores: int
) -> None:
    """The ratios that the goals speak of."""
    driver, there, jobs = (found[way] for way in WAYS)
    case = f"{name}, {rows} rows"
    sides: dict[str, Any] = {"millpond": there, "peer": {"driver": driver, "jobs": jobs}}
    is_judged = cores >= 2 and rows >= 100_000
    wall = WALL_GOALS.get(name, WALL_GOAL) if is_judged and rows == 100_000 else None
    report.ratio(
        f"{case}: time of residents against the driver",
        there["ms"] / driver["ms"],
        wall,
        at_most=True,
        **sides,
    )
    goals = PROCESSOR_GOALS.get(rows)
    processor = None if goals is None or not is_judged else goals[name != "filter"]
    report.ratio(
        f"{case}: processor time of residents against the driver",
        there["processor_ms"] / driver["processor_ms"],
        processor,
        at_most=True,
        **sides,
    )
    report.ratio(f"{case}: residents against jobs", jobs["ms"] / there["ms"], 1.0)
    if rows == min(SIZES):
        report.ratio(f"{case}: ms of a page", there["ms"], SMALL_MS, at_most=True, **sides)
    report.ratio(
        f"{case}: bytes through the driver", there["bytes_share"], SHARE_GOAL, at_most=True
    )
    stored = found["stored"]["ms"] / there["ms"]
    report.ratio(f"{case}: directory against memory", stored, STORE_GOAL, at_most=True)


def draw(figure: Figure, lines: list[tuple[str, int, dict[str, dict[str, float]]]]) -> None:
    """Milliseconds a page by its rows, for each way."""
    for ax, name in zip(figure.subplots(1, len(NAMES)), NAMES, strict=True):
        for way in WAYS:
            mine = [(rows, found[way]["ms"]) for each, rows, found in lines if each == name]
            ax.loglog(*zip(*mine, strict=True), marker="o", label=way)
        ax.set(title=name, xlabel="rows a page", ylabel="ms a page")
        ax.legend()


def main() -> None:
    """Measures, and prints."""
    parser = options(__doc__ or "", "the largest page")
    parser.add_argument("--cores", type=int, default=2, help="cores for Spark; default: 2")
    chosen = parser.parse_args()
    largest = chosen.rows or (100_000 if chosen.quick else 1_000_000)
    sizes = [size for size in SIZES if size <= largest]
    cases = {case.name: case for case in (*CASES, AGGREGATE) if case.name in NAMES}
    usual = Settings(spark_master=f"local[{chosen.cores}]", step_rows=EVERYTHING)
    report, lines = Report("placement", chosen.out), []
    with progress(len(cases) * len(sizes)) as doing:
        for rows in sizes:
            for name in NAMES:
                found = measured(cases[name], rows, usual, 8 if chosen.quick else 15)
                lines.append((name, rows, found))
                doing(f"{name}, {rows} rows")
                report_case(report, name, rows, found, chosen.cores)
    report.draw("ways", lambda figure: draw(figure, lines))
    report.close()
    note("placement: done")


if __name__ == "__main__":
    main()

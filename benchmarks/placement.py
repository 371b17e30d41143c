"""Where a step runs: in the driver, with and without Spark, and on the executors.

    python -m benchmarks.placement [--quick] [--out DIR] [--rows LARGEST] [--cores N ...]

An aggregate, a window join and a Rows window over pages of 10k, 100k and 1M tuples, windows full,
medians of warm pages, which all ways take by turns; both stores, one and two cores (a process each,
for a process has one Spark).
"driver" evaluates expressions and kernel there, "collected" has Spark evaluate and collect for a
kernel in the driver, "executors" sees references only. The crossing of the lines decides the
default of the setting driver_rows.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.feed import AGGREGATE, CASES, Case, Feed
from benchmarks.reporting import Report, note, options, progress
from millpond.settings import Settings
from millpond.spark.session import create_session

SIZES = (10_000, 100_000, 1_000_000)
EVERYTHING = 10**12
WAYS = {
    "driver": {"driver_rows": EVERYTHING, "place_by": "rows", "small_steps": "driver"},
    "collected": {"driver_rows": EVERYTHING, "place_by": "rows", "small_steps": "spark"},
    "executors": {"driver_rows": 0, "small_steps": "driver"},
}
STORES = ("memory", "directory")
WARM_PAGES = 3
NAMES = ("grouped aggregate", "window join", "rows window")
QUICKER, SAME, SHARE, STORE = 1.0, 1.0, 0.01, 1.25
"""The goals: against collected, against the driver at a million, of bytes, of the store."""


class Measured:
    """An engine with one way to do its steps, page by page."""

    def __init__(self, case: Case, rows: int, settings: Settings) -> None:
        self._directory = tempfile.TemporaryDirectory()
        store = "memory" if settings.store == "memory" else self._directory.name
        spark = create_session(settings)
        self._feed = Feed(case, rows, replace(settings, store=store), spark)
        self._page_bytes = rows * 24.0
        self._seconds: list[float] = []
        self._driver_bytes: list[int] = []

    def page(self) -> None:
        """One more page, and which part of its bytes came to the driver."""
        before = self._passed()
        self._seconds.append(self._feed.page())
        self._driver_bytes.append(self._passed() - before)

    def _passed(self) -> int:
        measured = self._feed.engine.runtime.statistics.values()
        return sum(each.tally.driver_bytes for each in measured)

    def known(self) -> dict[str, float]:
        """The medians of all pages but the first ones."""
        return {
            "ms": 1000 * statistics.median(self._seconds[WARM_PAGES:]),
            "driver_bytes": statistics.median(self._driver_bytes[WARM_PAGES:]),
            "page_bytes": self._page_bytes,
        }

    def close(self) -> None:
        """Gives everything up."""
        self._feed.engine.close()
        self._directory.cleanup()


def child(cores: int, largest: int, times: int) -> None:
    """All measurements with one number of cores, a JSON line each.

    All ways and stores take their pages by turns, so that none has a quieter machine than another.
    """
    cases = [case for case in (*CASES, AGGREGATE) if case.name in NAMES]
    for case in {case.name: case for case in cases}.values():
        for rows in (size for size in SIZES if size <= largest):
            usual = Settings(spark_master=f"local[{cores}]", step_rows=EVERYTHING)
            with ExitStack() as opened:
                engines = {}
                for way, store in product(WAYS, STORES):
                    settings = usual.with_options(WAYS[way] | {"store": store})
                    engines[way, store] = Measured(case, rows, settings)
                    opened.callback(engines[way, store].close)
                for _ in range(WARM_PAGES + times):
                    for each in engines.values():
                        each.page()
                for (way, store), each in engines.items():
                    line = {"case": case.name, "rows": rows, "way": way, "store": store}
                    print(json.dumps(line | {"cores": cores} | each.known()), flush=True)


def run_child(cores: int, largest: int, times: int, doing: Any) -> list[dict[str, Any]]:
    """The lines of a process of its own."""
    code = f"from benchmarks.placement import child; child({cores}, {largest}, {times})"
    lines = []
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as done:
        for text in done.stdout or ():
            if text.startswith("{"):
                lines.append(json.loads(text))
                doing(" ".join(str(lines[-1][k]) for k in ("case", "rows", "way", "store")))
    if done.returncode:
        raise SystemExit(f"measuring with {cores} cores failed")
    return lines


def report_lines(report: Report, lines: list[dict[str, Any]]) -> None:
    """The ratios that the goals speak of."""
    keys = ("case", "rows", "way", "store", "cores")
    found = {tuple(each[key] for key in keys): each for each in lines}
    for (name, rows, way, store, cores), line in found.items():
        if way != "executors":
            continue
        collected = found[name, rows, "collected", store, cores]["ms"]
        driver = found[name, rows, "driver", store, cores]["ms"]
        case = f"{name}, {rows} rows, {store}, {cores} cores"
        is_judged = cores == 2 and rows >= 100_000
        report.ratio(
            f"{case}: executors against collected",
            collected / line["ms"],
            QUICKER if is_judged else None,
            millpond={"executors_ms": line["ms"]},
            peer={"collected_ms": collected, "driver_ms": driver},
        )
        if cores == 2 and rows == 1_000_000:
            report.ratio(f"{case}: executors against the driver", driver / line["ms"], SAME)
        share = line["driver_bytes"] / line["page_bytes"]
        report.ratio(f"{case}: bytes through the driver", share, SHARE, at_most=True)
        if store == "directory":
            memory = found[name, rows, way, "memory", cores]["ms"]
            ratio = line["ms"] / memory
            report.ratio(f"{case}: directory against memory", ratio, STORE, at_most=True)


def draw(figure: Figure, lines: list[dict[str, Any]]) -> None:
    """Milliseconds a page by its rows, for each way."""
    axes, most = figure.subplots(1, len(NAMES)), max(each["cores"] for each in lines)
    for ax, name in zip(axes, NAMES, strict=True):
        for way in WAYS:
            mine = [
                each
                for each in lines
                if (each["case"], each["way"], each["store"], each["cores"])
                == (name, way, "memory", most)
            ]
            points = [[each["rows"] for each in mine], [each["ms"] for each in mine]]
            ax.loglog(*points, marker="o", label=way)
        ax.set(title=name, xlabel="rows a page", ylabel="ms a page")
    axes[0].legend()


def main() -> None:
    """Measures with each number of cores and prints."""
    parser = options(__doc__ or "", "the largest page")
    parser.add_argument("--cores", type=int, nargs="+", help="numbers of cores; default: 2 and 1")
    chosen = parser.parse_args()
    largest = chosen.rows or (100_000 if chosen.quick else 1_000_000)
    cores = chosen.cores or ([2] if chosen.quick else [2, 1])
    sizes = sum(size <= largest for size in SIZES)
    report = Report("placement", chosen.out)
    with progress(len(cores) * len(NAMES) * sizes * len(WAYS) * len(STORES)) as doing:
        lines = [
            line for n in cores for line in run_child(n, largest, 5 if chosen.quick else 7, doing)
        ]
    report_lines(report, lines)
    report.draw("ways", lambda figure: draw(figure, lines))
    report.close()
    note(str(Path(__file__).name) + ": done")


if __name__ == "__main__":
    main()

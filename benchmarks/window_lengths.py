"""One count and sum by key, over RANGE windows of many lengths: totalled once against each alone.

    python -m benchmarks.window_lengths [--quick] [--out DIR] [--rows TUPLES]

The same queries with `SET sharing = 'auto'`, where their windows read totals of each tick, and with
`'off'`, where each reads the tuples; in the driver, on one processor, with pages of tuples in order
of time. *Dense*: a page has few ticks, so that many tuples have a tick and a key in common.
*Sparse*: hardly any two have; totals save nothing then, and must cost little. What counts is the
processor time of a page, and how many bytes windows retain at the end. The two settings are run in
turn, five times (``--quick``: three times); figures are medians.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from benchmarks.reporting import Report, note, options, progress
from millpond import Engine

SETTINGS = {"auto": "totals", "off": "tuples"}
WINDOWS, KEYS, PAGES, WARM_PAGES = (1, 5, 20), 100, 12, 4
TICKS_A_PAGE = 1_000
"""A page lasts so long, however many of its ticks have tuples."""


class Case(NamedTuple):
    """How many ticks of a page have tuples, and the query."""

    moments: int
    text: str


BY_KEY = "SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE {}] GROUP BY k"
OF_ALL = "SELECT count(*) AS n, sum(v) AS s FROM S [RANGE {}]"
CASES = {
    "dense, by key": Case(10, BY_KEY),
    "dense, of all": Case(10, OF_ALL),
    "sparse, by key": Case(TICKS_A_PAGE, BY_KEY),
}

JUDGED = (
    ("dense, by key", 20, "seconds", 0.6),
    ("dense, of all", 20, "seconds", 0.3),
    ("sparse, by key", 20, "seconds", 1.25),
    ("dense, by key", 20, "retained_bytes", 0.25),
)
"""Of which case, with how many windows, which figure is at most so many times that of tuples."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    seconds: float
    """The processor time of a page."""
    retained_bytes: float

    @staticmethod
    def median(outcomes: list[Outcome]) -> Outcome:
        """Each figure's median."""
        figures = zip(*(vars(each).values() for each in outcomes), strict=True)
        return Outcome(*map(statistics.median, figures))


def page_of(number: int, rows: int, moments: int) -> pa.Table:
    """Tuples in order of time, in so many ticks of the page's own."""
    drawn = np.random.default_rng(number)
    ticks = np.sort(drawn.integers(0, moments, rows)) * (TICKS_A_PAGE // moments)
    return pa.table(
        {
            "ts": number * TICKS_A_PAGE + ticks,
            "k": drawn.integers(0, KEYS, rows).astype(np.int32),
            "v": drawn.integers(0, 1_000, rows).astype(np.int32),
        }
    )


def measured(case: Case, sharing: str, windows: int, rows: int) -> Outcome:
    """Some pages, one by one."""
    settings = {"sharing": sharing, "driver_rows": 10**9, "place_by": "rows", "processors": 1}
    with Engine(settings, keep_results=False) as engine:
        engine.execute("CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts")
        lengths = (TICKS_A_PAGE + 137 * number for number in range(windows))
        engine.execute(
            ";".join(f"CREATE QUERY q{each} AS {case.text.format(each)}" for each in lengths)
        )
        taken = []
        for number in range(WARM_PAGES + PAGES):
            engine.push("S", page_of(number, rows, case.moments))
            engine.advance("S", (number + 1) * TICKS_A_PAGE - 1)  # so that all of it is done
            began = time.process_time()
            engine.run_until_idle()
            taken.append(time.process_time() - began)
        retained = sum(queue.bytes for queue in engine.runtime.queues.values())
        return Outcome(statistics.median(taken[WARM_PAGES:]), retained)


Found = dict[tuple[str, int], dict[str, Outcome]]


def judge(report: Report, found: Found) -> None:
    """Totals against tuples, and how both grow with the number of windows."""
    for case, windows, figure, goal in JUDGED:
        ours, theirs = (getattr(found[case, windows][each], figure) for each in SETTINGS)
        told = f"{case}, {windows} windows, {figure.replace('_', ' ')}: totals to tuples"
        report.ratio(told, ours / theirs, goal, at_most=True, millpond=ours, peer=theirs)
    for case in CASES:
        for name, told in SETTINGS.items():
            many, one = (found[case, windows][name].seconds for windows in (20, 1))
            text = f"{case}, {told}: 20 windows to one"
            report.ratio(text, many / one, None, at_most=True, millpond=many, peer=one)


def lines(found: Found) -> Callable[[Figure], None]:
    """What a page takes, by the number of windows."""

    def plot(figure: Figure) -> None:
        every = figure.subplots(1, len(CASES))
        for axes, case in zip(every, CASES, strict=True):
            for name, told in SETTINGS.items():
                heights = [1e3 * found[case, windows][name].seconds for windows in WINDOWS]
                axes.plot(WINDOWS, heights, marker="o", label=told)
            axes.set(title=case, xlabel="windows", ylabel="ms a page")
        axes.legend()

    return plot


def main() -> None:
    """Runs all and prints."""
    chosen = options(__doc__ or "", "tuples of a page").parse_args()
    rows, runs = chosen.rows or 50_000, (3 if chosen.quick else 5)
    found: Found = {}
    with progress(runs * len(CASES) * len(WINDOWS) * len(SETTINGS)) as working_on:
        for told, case in CASES.items():
            for windows in WINDOWS:
                taken: dict[str, list[Outcome]] = {name: [] for name in SETTINGS}
                for _ in range(runs):
                    for name, outcomes in taken.items():
                        working_on(f"{told}, {windows} windows, {SETTINGS[name]}")
                        outcomes.append(measured(case, name, windows, rows))
                found[told, windows] = {name: Outcome.median(o) for name, o in taken.items()}
    report = Report("window_lengths", chosen.out)
    judge(report, found)
    for (told, windows), outcomes in found.items():
        figures = ", ".join(
            f"{SETTINGS[name]} {1e3 * each.seconds:.1f} ms, {each.retained_bytes / 1e6:.2f} MB"
            for name, each in outcomes.items()
        )
        note(f"{told}, {windows} windows: {figures}")
    report.draw("seconds", lines(found))
    report.close()


if __name__ == "__main__":
    main()

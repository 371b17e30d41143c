"""A join that puts out much, read by two queries: shared against apart, and what ``auto`` chooses.

    python -m benchmarks.shared_join [--quick] [--out DIR] [--rows TUPLES]

One query runs and was measured when a second one is registered, with `SET sharing = 'on'` (they
share the join), `'off'` (each has its own) and `'auto'`. Then a burst comes at once and is worked
off on one processor, in the driver. *Uneven*: the first query calls a function that burns CPU for
every pair, the second one only looks at the pairs. Chain does the shared join at once, for the
second one's sake, and what it puts out waits for the first one; Greedy, which looks at an operator
and not at what is behind it, holds the join back, and the second query's results with it. What
counts is how much waits at the peak, and how long results of the second query take. *Even*: both
only look. *Even behind a dear join*: both only look, and the join calls the function. What counts
is how long all takes. The three settings are run in turn, five times (``--quick``: three times);
figures are medians.
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
from millpond.delivery.latency import LatencyRecord
from millpond.lab.live.bursts import burning, forgetful
from millpond.planning.physical import JoinOperator

SETTINGS = {"on": "shared", "off": "apart", "auto": "auto"}

BURN_SECONDS = 15e-6
"""What the function takes for a pair."""

KEYS, WINDOW_TICKS = 4, 50
"""Every tuple meets about 25 others: a tick has one of each stream."""

PAGE_ROWS, WARM_PAGES = 250, 15

JOIN = f"FROM A [RANGE {WINDOW_TICKS}] a, B [RANGE {WINDOW_TICKS}] b WHERE a.k = b.k"
DEAR = f"{JOIN} AND burn(a.v + b.w) >= -1"
HEAVY = "SELECT a.k, max(burn(a.v)) AS top, max(b.w) AS other {} GROUP BY a.k"
LIGHT = "SELECT a.k, max(a.v) AS top, max(b.w) AS other {} GROUP BY a.k"
LOOKING = "SELECT a.k, min(a.v) AS least, max(b.w) AS other {} GROUP BY a.k"


class Case(NamedTuple):
    """The query that runs, the one that comes later, and who schedules them."""

    first: str
    second: str
    strategy: str = "chain"


UNEVEN = HEAVY.format(JOIN), LOOKING.format(JOIN)
CASES = {
    "uneven, chain": Case(*UNEVEN),
    "uneven, greedy": Case(*UNEVEN, "greedy"),
    "even": Case(LIGHT.format(JOIN), LOOKING.format(JOIN)),
    "even behind a dear join": Case(LIGHT.format(DEAR), LOOKING.format(DEAR)),
}

JUDGED = (
    ("uneven, chain", "peak_bytes", "off", "on", 0.25),
    ("uneven, chain", "peak_bytes", "auto", "on", 0.25),
    ("uneven, chain", "latency_seconds", "off", "on", None),
    ("uneven, greedy", "peak_bytes", "off", "on", 0.25),
    ("uneven, greedy", "latency_seconds", "off", "on", 0.75),
    ("uneven, greedy", "latency_seconds", "auto", "on", 0.75),
    ("even", "total_seconds", "on", "off", None),
    ("even behind a dear join", "total_seconds", "on", "off", 0.8),
    ("even behind a dear join", "total_seconds", "auto", "off", 0.8),
)
"""Of which case which figure with one setting is at most so many times that with another one."""

FIGURES = {
    "latency_seconds": "latency of the second query",
    "peak_bytes": "peak backlog",
    "total_seconds": "time for all",
}


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    latency_seconds: float
    """How long results of the second query took, in the mean."""
    peak_bytes: float
    total_seconds: float
    joins: float
    """How many joins there were."""

    @staticmethod
    def median(outcomes: list[Outcome]) -> Outcome:
        """Each figure's median."""
        figures = zip(*(vars(each).values() for each in outcomes), strict=True)
        return Outcome(*map(statistics.median, figures))


class Fed:
    """An engine that is fed page by page."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self._first = engine, 0
        for name, column in (("A", "v"), ("B", "w")):
            engine.execute(
                f"CREATE STREAM {name} (ts BIGINT, k INT, {column} BIGINT) TIMESTAMP BY ts"
            )

    def push(self, rows: int = PAGE_ROWS) -> None:
        """A page of each stream."""
        numbers = np.arange(self._first, self._first + rows)
        self._first += rows
        for name, column, seed in (("A", "v", 7_919), ("B", "w", 104_729)):
            mixed = numbers * seed % 1_000_003
            keys = pa.array((mixed % KEYS).astype(np.int32))
            self.engine.push(name, pa.table({"ts": numbers, "k": keys, column: mixed}))

    def warm(self) -> None:
        """Has every operator make steps, so that it is known what they cost."""
        for _ in range(WARM_PAGES):
            self.push()
            self.engine.run_until_idle()


def measured(case: Case, sharing: str, pages: int) -> Outcome:
    """One burst."""
    strategy = f"{case.strategy}(max_tuples = 1)"
    settings = {"strategy": strategy, "driver_rows": 10**9, "place_by": "rows"}
    with Engine(settings | {"processors": 1}, keep_results=False) as engine:
        engine.register_function("burn", burning(BURN_SECONDS), ["BIGINT"], "DOUBLE")
        fed = Fed(engine)
        engine.execute(f"CREATE QUERY first AS {case.first}")
        fed.warm()
        engine.execute(f"SET sharing = '{sharing}'; CREATE QUERY second AS {case.second}")
        fed.warm()
        backlog = engine.runtime.backlog = forgetful(engine)
        began, log = time.monotonic(), engine.deliveries.of("second")
        log.own_latency = LatencyRecord(began)
        for _ in range(pages):
            fed.push()
        engine.run_until_idle()
        total = time.monotonic() - began
        joins = sum(isinstance(each, JoinOperator) for each in engine.graph.operators.values())
        return Outcome(log.latency.known().mean_seconds, backlog.peak_bytes, total, joins)


def judge(report: Report, found: dict[str, dict[str, Outcome]]) -> None:
    """Apart against shared, and what was chosen."""
    for case, figure, mine, other, goal in JUDGED:
        ours, theirs = (getattr(found[case][each], figure) for each in (mine, other))
        told = f"{case}, {FIGURES[figure]}: {SETTINGS[mine]} to {SETTINGS[other]}"
        report.ratio(told, ours / theirs, goal, at_most=True, millpond=ours, peer=theirs)


def table(found: dict[str, dict[str, Outcome]]) -> str:
    """All runs, a line each."""
    lines = [f"{'case':35}{'latency s':>10}{'peak MB':>10}{'total s':>10}{'joins':>7}"]
    for case, outcomes in found.items():
        lines += [
            f"{f'{case}, {SETTINGS[name]}':35}{each.latency_seconds:10.3f}"
            f"{each.peak_bytes / 1e6:10.3f}{each.total_seconds:10.3f}{each.joins:7.0f}"
            for name, each in outcomes.items()
        ]
    return "\n".join(lines)


def bars(found: dict[str, dict[str, Outcome]]) -> Callable[[Figure], None]:
    """Each figure of each case, by setting."""

    def plot(figure: Figure) -> None:
        every = figure.subplots(1, len(FIGURES))
        for axes, (name, told) in zip(every, FIGURES.items(), strict=True):
            for place, (setting, word) in enumerate(SETTINGS.items()):
                heights = [getattr(outcomes[setting], name) for outcomes in found.values()]
                axes.bar(np.arange(len(found)) + 0.27 * place, heights, 0.25, label=word)
            axes.set_xticks(np.arange(len(found)) + 0.27, list(found), rotation=30, ha="right")
            axes.set(title=told, ylabel=name.replace("_", " "))
        axes.legend()

    return plot


def main() -> None:
    """Runs all and prints."""
    chosen = options(__doc__ or "", "tuples of each stream in the burst").parse_args()
    pages = max(1, (chosen.rows or 6_000) // PAGE_ROWS)
    runs, found = (3 if chosen.quick else 5), dict[str, dict[str, Outcome]]()
    with progress(runs * len(CASES) * len(SETTINGS)) as working_on:
        for told, case in CASES.items():
            taken: dict[str, list[Outcome]] = {name: [] for name in SETTINGS}
            for _ in range(runs):
                for name, outcomes in taken.items():
                    working_on(f"{told}, {SETTINGS[name]}")
                    outcomes.append(measured(case, name, pages))
            found[told] = {name: Outcome.median(each) for name, each in taken.items()}
    report = Report("shared_join", chosen.out)
    for told, by_setting in found.items():
        joins = {SETTINGS[name]: each.joins for name, each in by_setting.items()}
        report.value(f"{told}, what auto chooses", joins["auto"], "joins", joins=joins)
    judge(report, found)
    note(table(found))
    report.draw("figures", bars(found))
    report.close()


if __name__ == "__main__":
    main()

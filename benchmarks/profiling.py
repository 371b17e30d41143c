"""What measuring costs: the share of a run that goes into statistics, rates and latencies.

    python -m benchmarks.profiling [--quick] [--out DIR] [--rows A_PAGE]

Many small steps, the worst case, for the cost is that of steps. The goal is below 2 %.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.reporting import Report, options, progress
from millpond import Engine
from millpond.delivery.latency import LatencyRecord
from millpond.execution.statistics import Statistics, Tally
from millpond.execution.unit_steps import UnitStep
from millpond.storage.backlog import Backlog
from millpond.storage.rates import Course, Rate

GOAL = 0.02
PAGES, ROWS = 600, 200
QUERIES = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE QUERY big AS SELECT a FROM S WHERE a > 100;
CREATE QUERY counts AS SELECT a % 10 AS k, count(*) AS n FROM S [RANGE 5] GROUP BY a % 10;
"""
MEASURING = [
    (Statistics, "record"),
    (Tally, "record"),
    (Rate, "add"),
    (Rate, "per_second"),
    (Course, "add"),
    (Backlog, "count"),
    (UnitStep, "_parts"),
    (LatencyRecord, "add"),
]


class Stopwatch:
    """Adds up the time inside some functions; a call inside another one counts once."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, 0
        self._is_inside = False

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        def timed(*arguments: Any, **named: Any) -> Any:
            if self._is_inside:
                return function(*arguments, **named)
            self._is_inside = True
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - began
                self.calls += 1
                self._is_inside = False

        return timed


def run(rows: int) -> tuple[float, int]:
    """Seconds and steps of one run with pages of so many rows."""
    with Engine({"processors": 1}) as engine:
        engine.execute(QUERIES)
        began = time.perf_counter()
        for page in range(PAGES):
            engine.push("S", [(page, (page + row) % 200) for row in range(rows)])
            engine.run_until_idle()
        engine.finish()
        return time.perf_counter() - began, engine.runtime.tally.steps


def main() -> None:
    """Runs with and without stopwatches, and tells the share."""
    chosen = options(__doc__ or "", "rows a page").parse_args()
    report, rows = Report("profiling", chosen.out), chosen.rows or ROWS
    with progress(3) as doing:
        doing("warming up")
        run(rows)
        doing("without stopwatches")
        plain, _ = run(rows)
        watch = Stopwatch()
        for owner, name in MEASURING:
            setattr(owner, name, watch.around(getattr(owner, name)))
        doing("with stopwatches")
        watched, steps = run(rows)
    report.value(
        "share of the run that measuring takes",
        watch.seconds / watched,
        "share",
        goal=GOAL,
        met=watch.seconds / watched < GOAL,
        millpond={"seconds": watched, "steps": steps, "us_a_step": watch.seconds * 1e6 / steps},
        peer={"seconds without stopwatches": plain},
    )
    report.close()


if __name__ == "__main__":
    main()

"""What deciding costs of a run with a thousand operators: 500 queries, each an aggregate and its
output, with a queue between them.

    python -m benchmarks.deciding [--quick] [--out DIR] [--rows A_PAGE]

All read one stream, page by page, on one processor. Counted is the time in the strategy (learning
the plan and what changed, deciding), and beside it, without a goal, the time in which the runtime
tells it what there is to know. Seconds are those of the loop's thread on the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from benchmarks.reporting import Report, options, progress
from benchmarks.streams import Stream
from millpond import Engine

STRATEGIES = ("fifo", "chain", "path-capacity", "auto")
FULL = (*STRATEGIES, "round-robin", "greedy", "segment", "threshold", "component-based", "hmts")
QUERIES = 500
GOAL = 0.01
STREAM = Stream("S", keys=50, seed=1)


class Clock:
    """The seconds spent in calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, counted."""

        def counted(*given: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*given, **named)
            finally:
                self.seconds += time.thread_time() - began

        return counted


def shares(strategy: str, page_rows: int, seconds: float) -> tuple[float, float, int]:
    """Which part of a run was deciding, which was telling, and how many operators there were."""
    script = "".join(
        f"CREATE QUERY q{n} AS SELECT key, count(*) AS n FROM S [RANGE 1 SECOND] "
        f"WHERE value * {n + 2} > {n % 7} GROUP BY key;"
        for n in range(QUERIES)
    )
    settings = {"strategy": strategy, "processors": 1, "driver_rows": 10**9, "place_by": "rows"}
    with Engine(settings | {"sharing": "off"}, keep_results=False) as engine:
        engine.execute(STREAM.declaration + script)
        engine.push("S", STREAM.page(0, page_rows))
        engine.run_until_idle()
        deciding, telling = Clock(), Clock()
        loop, runtime = engine._loop, engine.runtime
        assert loop is not None
        for name in ("plan_changed", "observe", "decide"):
            setattr(loop.strategy, name, deciding.around(getattr(loop.strategy, name)))
        for name in ("plan", "observe"):
            setattr(runtime, name, telling.around(getattr(runtime, name)))
        first, began = page_rows, time.perf_counter()
        while time.perf_counter() - began < seconds:
            engine.push("S", STREAM.page(first, page_rows))
            engine.run_until_idle()
            first += page_rows
        total = time.perf_counter() - began
        return deciding.seconds / total, telling.seconds / total, len(engine.graph.operators)


def main() -> None:
    """Measures every strategy and prints."""
    chosen = options(__doc__ or "", "rows of a page").parse_args()
    names, seconds = (STRATEGIES, 10.0) if chosen.quick else (FULL, 30.0)
    report = Report("deciding", chosen.out)
    found: dict[str, float] = {}
    with progress(len(names)) as working_on:
        for name in names:
            working_on(name)
            share, telling, operators = shares(name, chosen.rows or 10_000, seconds)
            found[name] = share
            case = f"{name}, {operators} operators: deciding to the run time"
            report.ratio(case, share, GOAL, at_most=True, telling=telling)

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        axes.bar(list(found), [100 * share for share in found.values()])
        axes.set(ylabel="deciding, % of the run time")

    report.draw("shares", plot)
    report.close()


if __name__ == "__main__":
    main()

"""What deciding costs of a run with a thousand operators: 500 queries, each an aggregate and its
output, with a queue between them.

    python -m benchmarks.deciding [--quick] [--out DIR] [--rows A_PAGE] [--strategies A,B]

All read one stream, page by page, on one processor. How long it takes to put the queues there is
told too: each concerns two operators. Counted is the time in the strategy (learning
the plan and what changed, deciding), and beside it, without a goal, the time in which the runtime
tells it what there is to know. Seconds are those of the loop's thread on the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from benchmarks.reporting import Report, among, options, progress
from benchmarks.streams import Stream
from millpond import Engine
from millpond.scheduling.strategy_text import driving_spark

STRATEGIES = ("fifo", "chain", "path-capacity", "auto")
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


@dataclass(frozen=True)
class Shares:
    """Which part of a run was deciding, which was telling, and how many operators there were."""

    deciding: float
    telling: float
    operators: int
    queue_seconds: float
    """How long it took to put a queue behind an operator."""


def shares(strategy: str, page_rows: int, seconds: float) -> Shares:
    """What there is to be told of a run under a strategy."""
    script = "".join(
        f"CREATE QUERY q{n} AS SELECT key, count(*) AS n FROM S [RANGE 1 SECOND] "
        f"WHERE value * {n + 2} > {n % 7} GROUP BY key;"
        for n in range(QUERIES)
    )
    settings = {"strategy": strategy, "processors": 1, "driver_rows": 10**9, "place_by": "rows"}
    with Engine(settings | {"sharing": "off"}, keep_results=False) as engine:
        engine.execute(STREAM.declaration + script)
        queue_seconds = decoupled(engine)
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
        operators = sum(1 for _ in runtime.units)
        return Shares(deciding.seconds / total, telling.seconds / total, operators, queue_seconds)


def decoupled(engine: Engine) -> float:
    """Puts a queue behind every aggregate; the seconds for one."""
    outputs = set(engine.queries.outputs.values())
    aggregates = [each for each in engine.graph.operators if each not in outputs]
    began = time.perf_counter()
    for each in aggregates:
        engine.execute(f"ALTER PLAN QUEUE AFTER {each}")
    return (time.perf_counter() - began) / len(aggregates)


def main() -> None:
    """Measures every strategy and prints."""
    parser = options(__doc__ or "", "rows of a page")
    among(parser, driving_spark())
    chosen = parser.parse_args()
    names, seconds = (STRATEGIES, 10.0) if chosen.quick else (tuple(driving_spark()), 30.0)
    names = chosen.strategies or names
    report = Report("deciding", chosen.out)
    found: dict[str, float] = {}
    with progress(len(names)) as working_on:
        for name in names:
            working_on(name)
            run = shares(name, chosen.rows or 10_000, seconds)
            found[name] = run.deciding
            case = f"{name}, {run.operators} operators: deciding to the run time"
            more = {"telling": run.telling, "queue_seconds": run.queue_seconds}
            report.ratio(case, run.deciding, GOAL, at_most=True, **more)

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        axes.bar(list(found), [100 * share for share in found.values()])
        axes.set(ylabel="deciding, % of the run time")

    report.draw("shares", plot)
    report.close()


if __name__ == "__main__":
    main()

"""Bursts by the wall clock through cheap selective filters into expensive functions, live.

    python -m benchmarks.live_burst [--quick] [--out DIR] [--rows A_SECOND]

Three queries, each over a stream of its own: a filter with a queue behind it, and a function that
burns CPU. Rows come for a second and pause for two, faster than they can be worked on. Every
strategy gets the same rows on one processor, after a warm-up from which it knows what operators
cost: peak and mean backlog, latencies from arrival to output, and how long it took. Steps run in
the driver: at these sizes that is where an engine places them. Goals are for the medians of three
runs of all strategies; ``--quick`` runs five strategies once.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from benchmarks.reporting import Report, note, options, progress
from millpond import Engine
from millpond.latency import LatencyRecord
from millpond.storage.backlog import Backlog

MEMORY_BYTES = 64 * 2**20
"""What memory suffices: the budget of the strategies that have one."""

STRATEGIES = {
    "fifo": "fifo(max_tuples = 1)",
    "round-robin": "round-robin(max_tuples = 1)",
    "greedy": "greedy(max_tuples = 1)",
    "chain": "chain(max_tuples = 1)",
    "path-capacity": "path-capacity(max_tuples = 1)",
    "segment": "segment(max_tuples = 1)",
    "simplified-segment": "simplified-segment(max_tuples = 1)",
    "threshold": f"threshold(memory_bytes = {MEMORY_BYTES}, max_tuples = 1)",
    "component-based latency": "component-based(objective = latency, max_tuples = 1)",
    "component-based memory": "component-based(objective = memory, max_tuples = 1)",
    "maximum-slope-segment": "maximum-slope-segment",
    "auto": f"auto(memory_bytes = {MEMORY_BYTES}, max_tuples = 1)",
}
QUICK = ("fifo", "chain", "path-capacity", "threshold", "auto")

FUNCTIONS = {"light": 1_000, "middle": 2_000, "heavy": 4_000}
"""The functions, with how many sines they take of a value."""

START_TICKS = 10_000_000
WARM_SECONDS, WARM_ROWS = 3.0, 2_000
COLUMNS = ("k", "v", "a", "b", "c", "d", "ts")
KEYS, KEPT = 100, 15
"""Columns but the time hold one of so many values, and filters keep so many of them."""


def script(rows_per_second: float, seconds: float) -> str:
    """The streams and the queries; filters are operators of their own."""
    return "SET pace = 'wall'; SET linear = 'apart';" + "".join(
        f"""
        CREATE STREAM {name}_rows ({", ".join(f"{column} BIGINT" for column in COLUMNS)})
          TIMESTAMP BY ts FROM burst('onoff', on_arrivals_per_second = {rows_per_second},
            on_seconds = 1, off_seconds = 2, seconds = {seconds}, keys = {KEYS},
            start = {START_TICKS}, seed = {seed});
        CREATE QUERY {name}_scores AS
          SELECT {name}(v) AS score FROM {name}_rows WHERE k < {KEPT};
        """
        for seed, name in enumerate(FUNCTIONS)
    )


def burning(sines: int) -> Callable[[pa.Array], pa.Array]:
    """A function that takes so many sines of each value."""
    factors = np.linspace(0.0, 1.0, sines)

    def score(values: pa.Array) -> pa.Array:
        numbers = np.asarray(values).astype(float)
        parts = np.array_split(numbers, max(1, len(numbers) // 64))
        return pa.array(np.concatenate([np.sin(part[:, None] * factors).sum(1) for part in parts]))

    return score


@dataclass(frozen=True)
class Outcome:
    """What a strategy came to."""

    peak_bytes: float
    mean_bytes: float
    mean_seconds: float
    p50_seconds: float
    p95_seconds: float
    p99_seconds: float
    total_seconds: float

    @staticmethod
    def median(outcomes: list[Outcome]) -> Outcome:
        """Each figure's median."""
        return Outcome(
            *map(statistics.median, zip(*(vars(o).values() for o in outcomes), strict=True))
        )


def measured(strategy: str, rows_per_second: float, seconds: float) -> Outcome:
    """One run of a strategy."""
    settings = {"strategy": strategy, "processors": 1, "driver_rows": 10**9, "place_by": "rows"}
    with Engine(settings, keep_results=False) as engine:
        for name, sines in FUNCTIONS.items():
            engine.register_function(name, burning(sines), ["BIGINT"], "DOUBLE")
        engine.execute(script(rows_per_second, seconds))
        for name, operator in engine.graph.operators.items():
            if operator.label().startswith("Filter"):
                engine.execute(f"ALTER PLAN QUEUE AFTER {name}")
        warm(engine)
        backlog = engine.runtime.backlog = forgetful(engine)
        logs = [engine.deliveries.of(f"{name}_scores") for name in FUNCTIONS]
        began = time.monotonic()
        for log in logs:
            log.latency = LatencyRecord(began)
        engine.finish()
        total = time.monotonic() - began
        known = [log.latency.known() for log in logs]
        results = sum(each.results for each in known)
        latencies = [
            sum(getattr(each, name) * each.results for each in known) / results
            for name in ("mean_seconds", "p50_seconds", "p95_seconds", "p99_seconds")
        ]
        return Outcome(backlog.peak_bytes, backlog.mean_bytes(), *latencies, total)


def warm(engine: Engine) -> None:
    """Has every operator make steps of several sizes before the bursts, and the strategy know."""
    generator, first, until = np.random.default_rng(1), 0, time.monotonic() + WARM_SECONDS
    while time.monotonic() < until:
        rows = int(generator.integers(1, WARM_ROWS))
        numbers = [*generator.integers(0, KEYS, (len(COLUMNS) - 1, rows)), np.arange(rows) + first]
        first += rows
        for name in FUNCTIONS:
            engine.push(f"{name}_rows", pa.table(dict(zip(COLUMNS, numbers, strict=True))))
        engine.run_until_idle()
    assert first < START_TICKS


def forgetful(engine: Engine) -> Backlog:
    """The backlog, counted from now on."""
    backlog = Backlog()
    for queue in engine.inputs.queues.values():
        backlog.count(queue)
    return backlog


def table(outcomes: dict[str, Outcome]) -> str:
    """All strategies, a line each."""
    heads = ("peak MB", "mean MB", "mean s", "p50", "p95", "p99", "total s")
    lines = [f"{'strategy':25}" + "".join(f"{head:>9}" for head in heads)]
    for name, outcome in outcomes.items():
        figures = [
            outcome.peak_bytes / 1e6,
            outcome.mean_bytes / 1e6,
            *list(vars(outcome).values())[2:],
        ]
        lines.append(f"{name:25}" + "".join(f"{figure:9.3f}" for figure in figures))
    return "\n".join(lines)


def judge(report: Report, outcomes: dict[str, Outcome]) -> None:
    """The goals, for those strategies that were run."""
    fifo, chain, path = (outcomes[name] for name in ("fifo", "chain", "path-capacity"))
    report.ratio("chain's peak to fifo's", chain.peak_bytes / fifo.peak_bytes, 1 / 3, at_most=True)
    quickest = min(outcome.mean_seconds for outcome in outcomes.values())
    report.ratio(
        "path-capacity's mean latency to the lowest", path.mean_seconds / quickest, 1.05, True
    )
    for name in ("threshold", "auto"):
        mine = outcomes[name]
        report.ratio(
            f"{name}'s mean latency to the better of chain and path-capacity",
            mine.mean_seconds / min(chain.mean_seconds, path.mean_seconds),
            1.1,
            at_most=True,
        )
        report.ratio(
            f"{name}'s peak to that of path-capacity, memory sufficing",
            mine.peak_bytes / path.peak_bytes,
            1.1,
            at_most=True,
        )
    report.ratio("auto's peak to its budget", outcomes["auto"].peak_bytes / MEMORY_BYTES, 1, True)


def plane(outcomes: dict[str, Outcome]) -> Callable[[Figure], None]:
    """Every strategy by its peak and its mean latency."""

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        for name, outcome in outcomes.items():
            axes.plot(outcome.peak_bytes / 1e6, outcome.mean_seconds, "o", label=name)
        axes.set(
            xlabel="peak backlog, MB", ylabel="mean latency, s", xlim=(0, None), ylim=(0, None)
        )
        axes.legend(fontsize="small")

    return plot


def main() -> None:
    """Runs the strategies and prints."""
    chosen = options(__doc__ or "", "rows a second in a burst, of all streams").parse_args()
    names = QUICK if chosen.quick else tuple(STRATEGIES)
    runs, seconds = (1, 6.0) if chosen.quick else (3, 9.0)
    rows_per_second = chosen.rows or 100_000
    found: dict[str, list[Outcome]] = {name: [] for name in names}
    with progress(runs * len(names)) as working_on:
        for _ in range(runs):
            for name in names:
                working_on(name)
                found[name].append(
                    measured(STRATEGIES[name], rows_per_second / len(FUNCTIONS), seconds)
                )
    outcomes = {name: Outcome.median(each) for name, each in found.items()}
    report = Report("live_burst", chosen.out)
    for name, outcome in outcomes.items():
        report.value(name, outcome.peak_bytes, "bytes at the peak", **vars(outcome))
    judge(report, outcomes)
    note(table(outcomes))
    report.draw("plane", plane(outcomes))
    report.close()


if __name__ == "__main__":
    main()

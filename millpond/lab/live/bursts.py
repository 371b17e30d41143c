"""Bursts by the wall clock through cheap selective filters into expensive functions, live.

Three queries, each over a stream of its own: a filter with a queue behind it, and a function that
burns CPU. Rows come for a second and pause for two, almost twice as fast as they can be worked on.
Every strategy gets the same rows on one processor, after a warm-up from which it knows what
operators cost. Steps run in the driver: at these sizes that is where an engine places them.

What the papers prove of strategies they prove where a tuple costs the same whoever serves it, and
one processor serves them. So the functions burn CPU until the wall clock says that a row's time is
over: a machine that is slower for some seconds, as shared ones are, is not taken for a strategy
that is. All filters keep the same share, so that to be quick with tuples, as Path Capacity is, and
to be quick with results are the same.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.delivery.latency import LatencyRecord, together
from millpond.execution.costs import Costs
from millpond.facade.engine import Engine
from millpond.storage.backlog import Backlog
from millpond.storage.queues import Queue
from millpond.storage.rates import Course

MEMORY_BYTES = 64 * 2**20
"""What memory suffices: the budget of the strategies that have one."""

TIGHT_BYTES = 4 * 10**6
"""A budget that Chain needs half of, and that strategies exceed which think of latency only."""

TIGHT_AUTO = "auto short of memory"

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
    TIGHT_AUTO: f"auto(memory_bytes = {TIGHT_BYTES}, max_tuples = 1)",
}
QUICK = ("fifo", "chain", "path-capacity", "threshold", "auto")

FUNCTIONS = {"light": 15e-6, "middle": 30e-6, "heavy": 60e-6}
"""The functions, with how many seconds they take for a row."""

BURST_LOAD = 1.8
"""In a burst rows mean so many seconds of work a second."""

OTHER_SECONDS = 1e-6
"""What a row takes beside the functions, about."""

BURN_NUMBERS = np.linspace(0.0, 1.0, 4_096)
"""Of so many numbers sines are taken between two looks at the clock."""

START_TICKS = 10_000_000
WARM_SECONDS, WARM_ROWS = 3.0, 2_000
COLUMNS = ("k", "v", "a", "b", "c", "d", "ts")
KEYS, KEPT = 100, 15
"""Columns but the time hold one of so many values, and filters keep so many of them."""


def script(rows_per_second: float, seconds: float, first_seed: int = 0) -> str:
    """The streams and the queries; filters next to functions are operators of their own."""
    return "SET pace = 'wall';" + "".join(
        f"""
        CREATE STREAM {name}_rows ({", ".join(f"{column} BIGINT" for column in COLUMNS)})
          TIMESTAMP BY ts FROM burst('onoff', on_arrivals_per_second = {rows_per_second},
            on_seconds = 1, off_seconds = 2, seconds = {seconds}, keys = {KEYS},
            start = {START_TICKS}, seed = {seed});
        CREATE QUERY {name}_scores AS
          SELECT {name}(v) AS score FROM {name}_rows WHERE k < {KEPT};
        """
        for seed, name in enumerate(FUNCTIONS, first_seed)
    )


def burning(row_seconds: float) -> Callable[[pa.Array], pa.Array]:
    """A function that is busy for so long with each value."""

    def score(values: pa.Array) -> pa.Array:
        until = time.perf_counter() + row_seconds * len(values)
        while time.perf_counter() < until:
            np.sin(BURN_NUMBERS)
        return pa.array(np.sin(np.asarray(values)))

    return score


def overloading_rows() -> float:
    """How many rows a second, of all streams, are the load of a burst."""
    return BURST_LOAD / (OTHER_SECONDS + KEPT / KEYS * statistics.mean(FUNCTIONS.values()))


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


@dataclass(frozen=True)
class Run:
    """One run of a strategy: what it came to, the plan as it was measured, and the backlog."""

    outcome: Outcome
    statistics: dict[str, Any]
    times: list[float]
    """Seconds since the beginning."""
    backlog_bytes: list[int]
    """What waited then."""


class ToldBacklog(Backlog):
    """A backlog that remembers how it went."""

    def __init__(self) -> None:
        super().__init__()
        self.course: list[tuple[float, int]] = []

    def count(self, queue: Queue) -> None:
        """A queue has changed."""
        super().count(queue)
        self.course.append((time.monotonic(), self.bytes))


def measured(
    strategy: str, rows_per_second: float, seconds: float, first_seed: int = 0, processors: int = 1
) -> Run:
    """One run of a strategy."""
    settings = {"strategy": strategy, "driver_rows": 10**9, "place_by": "rows"}
    with Engine(settings | {"processors": processors}, keep_results=False) as engine:
        for name, row_seconds in FUNCTIONS.items():
            engine.register_function(name, burning(row_seconds), ["BIGINT"], "DOUBLE")
        engine.execute(script(rows_per_second, seconds, first_seed))
        for name, operator in engine.graph.operators.items():
            if operator.label().startswith("Filter"):
                engine.execute(f"ALTER PLAN QUEUE AFTER {name}")
        warm(engine)
        logs = [engine.deliveries.of(f"{name}_scores") for name in FUNCTIONS]
        backlog = engine.runtime.backlog = forgetful(engine)
        began = time.monotonic()
        for log in logs:
            log.own_latency = LatencyRecord(began)
        for queue in engine.inputs.queues.values():
            queue.course = Course(now=began)
        for known_of_one in engine.runtime.statistics.values():
            known_of_one.whole = Costs(memory=1.0)  # in bursts steps are slower than at leisure
        engine.finish()
        total = time.monotonic() - began
        known = together(log.latency for log in logs).known()
        outcome = Outcome(
            backlog.peak_bytes,
            backlog.mean_bytes(),
            known.mean_seconds,
            known.p50_seconds,
            known.p95_seconds,
            known.p99_seconds,
            total,
        )
        times = [at - began for at, _ in backlog.course]
        return Run(outcome, engine.statistics(), times, [amount for _, amount in backlog.course])


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


def forgetful(engine: Engine) -> ToldBacklog:
    """The backlog, counted from now on."""
    backlog = ToldBacklog()
    for queue in engine.inputs.queues.values():
        backlog.count(queue)
    return backlog


@dataclass(frozen=True)
class Goal:
    """What is to be at most so many times something else."""

    what: str
    ratio: float
    at_most: float

    @property
    def is_met(self) -> bool:
        """Whether it is."""
        return self.ratio <= self.at_most


def goals(outcomes: dict[str, Outcome]) -> list[Goal]:
    """What is expected of strategies, of those that were run."""
    fifo, chain, path = (outcomes[name] for name in ("fifo", "chain", "path-capacity"))
    quickest = min(outcome.mean_seconds for outcome in outcomes.values())
    found = [
        Goal("chain's peak to fifo's", chain.peak_bytes / fifo.peak_bytes, 1 / 3),
        Goal("path-capacity's mean latency to the lowest", path.mean_seconds / quickest, 1.05),
    ]
    for name in ("threshold", "auto"):
        mine = outcomes[name]
        least = min(chain.mean_seconds, path.mean_seconds)
        found += [
            Goal(
                f"{name}'s mean latency to the better of chain and path-capacity",
                mine.mean_seconds / least,
                1.1,
            ),
            Goal(
                f"{name}'s peak to that of path-capacity, memory sufficing",
                mine.peak_bytes / path.peak_bytes,
                1.1,
            ),
        ]
    for name, budget in (("auto", MEMORY_BYTES), (TIGHT_AUTO, TIGHT_BYTES)):
        if name in outcomes:
            peak = outcomes[name].peak_bytes
            found.append(Goal(f"{name}: its peak to its budget", peak / budget, 1))
    return found

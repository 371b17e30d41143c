"""HMTS paper, Figures 9 and 10: memory and results of HMTS, Chain and FIFO beside a 2 s selection.

A projection (2.7 µs), a selection (0.53 µs, selectivity 0.0009) and a selection of 2 s work on
70,000 elements that come in two bursts, each followed by 80 s at 250 a second. Once the source is
autonomous, and once the thread that schedules must emit the elements itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from millpond.lab.experiment import Claim, Experiment, Table, Tables, about
from millpond.scheduling.configuration import Configuration, Partition
from millpond.scheduling.gts import Gts
from millpond.scheduling.hmts import Hmts
from millpond.scheduling.strategy import Strategy
from millpond.scheduling.three_levels import ThreeLevels
from millpond.scheduling.virtual_operators import operator_edges
from millpond.simulator import Conditions, Listed, Record, SimulatedPlan, simulate
from millpond.snapshot import FloatArray, PlanSnapshot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPERATORS = (("projection", 2.7e-6, 1.0), ("narrow", 530e-9, 9e-4), ("expensive", 2.0, 0.3))
PHASES = ((10_000, 500_000.0), (20_000, 250.0), (20_000, 500_000.0), (20_000, 250.0))
"""Elements and elements a second."""
QUEUE_SECONDS = 0.75e-6
SLICE_SECONDS = 0.05
BLOCK = 20
"""How many elements FIFO carries on together."""
SOURCES = ("autonomous", "same thread")
STRATEGIES = ("fifo", "chain", "hmts")
GRID = np.arange(0.0, 320.0, 1.0)


def gaps(seed: int, scale: float = 1.0) -> FloatArray:
    """Seconds between the elements, exponential around each phase's mean."""
    generator = np.random.default_rng(seed)
    parts = [generator.exponential(1 / rate, int(count * scale)) for count, rate in PHASES]
    return np.concatenate(parts)


def run(seeds: Sequence[int], scale: float = 1.0) -> Tables:
    """Every strategy with either source; curves of the first seed."""
    rows: list[dict[str, object]] = []
    curves: dict[str, dict[str, FloatArray]] = {"memory": {"second": GRID}, "results": {"second": GRID}}
    for seed in seeds:
        for source in SOURCES:
            for name in STRATEGIES:
                record = simulated(source, name, gaps(seed, scale), seed)
                rows.append(_row(source, name, seed, record))
                if seed == seeds[0]:
                    label = f"{name}, {source}"
                    curves["memory"][label] = record.memory.at(GRID)
                    curves["results"][label] = np.searchsorted(record.output_seconds, GRID)
    return {"summary": {column: [row[column] for row in rows] for column in rows[0]}, **curves}


def simulated(source: str, name: str, between: FloatArray, seed: int) -> Record:
    """One run: on two processors, or, where one thread does everything, on one."""
    everything_in_one = source == "same thread" and name != "hmts"
    conditions = Conditions(
        processors=1 if everything_in_one else 2,
        preemptive=False,
        seed=seed,
        enqueue_seconds=QUEUE_SECONDS,
        dequeue_seconds=QUEUE_SECONDS,
        trace=True,
    )
    if source == "autonomous":
        return simulate(_query(), _autonomous(name), {"s": np.cumsum(between)}, conditions)
    plan = _query(between)
    return simulate(plan, _emitting(name), {"s": np.zeros(len(between))}, conditions)


def _query(emitted_after: FloatArray | None = None) -> SimulatedPlan:
    """The three operators, behind a source that takes its time if told so."""
    plan = SimulatedPlan()
    below: int | str = plan.stream("s", tuple_bytes=1.0 if emitted_after is None else 0.0)
    if emitted_after is not None:
        below = plan.operator("source", below, Listed.of(emitted_after), output_bytes=1.0)
    for name, cost, selectivity in OPERATORS:
        below = plan.operator(name, below, cost, selectivity)
    plan.query("q", below)
    return plan


def _autonomous(name: str) -> Strategy:
    if name == "hmts":
        return Hmts(turn_seconds=SLICE_SECONDS)
    return Gts(name, **_service(name))


def _service(name: str) -> dict[str, object]:
    return {"max_tuples": BLOCK} if name == "fifo" else {"slice_seconds": SLICE_SECONDS}


def _emitting(name: str) -> Strategy:
    """The source in turn with the query (on one processor), or with HMTS's first thread."""
    if name == "hmts":
        return ThreeLevels(_hybrid_with_source)

    def in_turn(plan: PlanSnapshot) -> Configuration:
        source = Partition(frozenset({0}), "fifo")
        query = Partition(frozenset({1, 2, 3}), name, settings=_service(name))
        return Configuration((source, query), operator_edges(plan), SLICE_SECONDS)

    return ThreeLevels(in_turn)


def _hybrid_with_source(plan: PlanSnapshot) -> Configuration:
    first = Partition(frozenset({0, 1, 2}), "round-robin", settings={"slice_seconds": SLICE_SECONDS})
    second = Partition(frozenset({3}))
    return Configuration((first, second), frozenset({(0, 1)}), SLICE_SECONDS)


def _row(source: str, name: str, seed: int, record: Record) -> dict[str, object]:
    last = max(each.operator for each in record.trace)
    expensive = [each for each in record.trace if each.operator == last]
    reached = sum(each.tuples for each in expensive)
    return {
        "source": source,
        "strategy": name,
        "seed": seed,
        "reached the 2 s selection": reached,
        "finished_seconds": record.finished_seconds,
        "mean_elements": record.memory.mean(160.0),
        "mean_elements_after_burst": _mean_after_bursts(record),
        "mean_result_seconds": float(record.output_seconds.mean()) if record.outputs else 0.0,
    }


def _mean_after_bursts(record: Record) -> float:
    """Mean queue size from one second behind each burst to the end of its slow phase."""
    seconds = np.concatenate([np.arange(1.0, 80.0, 0.05), np.arange(81.0, 160.0, 0.05)])
    return float(record.memory.at(seconds).mean())


def plot(tables: Tables, figure: Figure) -> None:
    pass


def check(tables: Tables) -> Sequence[Claim]:
    return []

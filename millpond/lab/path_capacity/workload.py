"""The Path Capacity paper's experiment (section 5): 16 queries with 116 operators over 5 streams.

The paper names the numbers of queries, operators and streams, the kinds of queries (from selections
to four joins over five streams) and the self-similar arrivals; costs and selectivities are drawn
here to fit its words: leaves are fast and selective, the others much slower, few joins above one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from millpond.lab.experiment import Table
from millpond.scheduling.registry import make
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, Record, SimulatedPlan, simulate
from millpond.snapshot import FloatArray
from millpond.workloads import SelfSimilar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RATES = (1.2, 1.6, 2.0, 2.4, 2.8)
"""Mean tuples a second of the five streams at load one."""
FLOWS = (64, 128, 64, 128, 64)
ON_SECONDS = 40.0
"""Mean length of a flow's sending; it is silent twice as long."""
SIMPLE_LENGTHS = (3, 3, 4, 4, 5, 5)
JOINS = (1, 1, 1, 1, 1, 2, 2, 2, 3, 4)
TAILS = {1: 2, 2: 2, 3: 1, 4: 1}
"""Operators behind the last join, by the number of joins."""
STRATEGIES = ("path-capacity", "simplified-segment", "chain")
UNIT_SECONDS = 0.1
"""The time unit of all strategies."""


@dataclass(frozen=True)
class Phases:
    """Loads of the phases, each so long; load one keeps the processor busy all the time."""

    loads: tuple[float, ...] = (0.5, 0.7, 0.9, 1.1)
    phase_seconds: float = 200.0

    @property
    def seconds(self) -> float:
        """The length of all phases."""
        return len(self.loads) * self.phase_seconds


PAPER = Phases()


def sixteen_queries(cost_scale: float = 1.0, seed: int = 16) -> SimulatedPlan:
    """The plan: 6 queries without join, 5 with one, 3 with two, one with three, one with four."""
    generator = np.random.default_rng(seed)
    plan = SimulatedPlan()
    streams = [plan.stream(f"s{number}") for number in range(len(RATES))]
    for number, length in enumerate(SIMPLE_LENGTHS):
        source = streams[number % len(streams)]
        plan.query(f"simple{number}", _chain(plan, generator, source, length, cost_scale))
    for number, joins in enumerate(JOINS):
        first = int(generator.integers(len(streams)))
        chosen = [streams[(first + each) % len(streams)] for each in range(joins + 1)]
        plan.query(f"join{number}", _joined(plan, generator, chosen, TAILS[joins], cost_scale))
    return plan


def _joined(
    plan: SimulatedPlan,
    generator: np.random.Generator,
    streams: Sequence[str],
    tail: int,
    cost_scale: float,
) -> int:
    """Selections on each stream, joined one after the other, then `tail` more operators."""
    at = _chain(plan, generator, streams[0], 2, cost_scale)
    for stream in streams[1:]:
        other = _chain(plan, generator, stream, 2, cost_scale)
        at = _join(plan, generator, at, other, cost_scale)
    for _ in range(tail):
        at = _further(plan, generator, at, cost_scale)
    return at


def _chain(
    plan: SimulatedPlan,
    generator: np.random.Generator,
    stream: str,
    length: int,
    cost_scale: float,
) -> int:
    """A fast and selective leaf, then slower operators."""
    cost = cost_scale * float(generator.uniform(1.0, 2.0))
    selectivity = float(generator.uniform(0.1, 0.3))
    at = plan.operator(_name(plan), stream, cost, selectivity)
    for _ in range(length - 1):
        at = _further(plan, generator, at, cost_scale)
    return at


def _further(
    plan: SimulatedPlan, generator: np.random.Generator, at: int, cost_scale: float
) -> int:
    cost = cost_scale * float(generator.uniform(2.0, 8.0))
    return plan.operator(_name(plan), at, cost, float(generator.uniform(0.7, 1.0)))


def _join(
    plan: SimulatedPlan, generator: np.random.Generator, left: int, right: int, cost_scale: float
) -> int:
    """A symmetric hash join, which takes tuples as they come; one in five yields more than one."""
    cost = cost_scale * float(generator.uniform(3.0, 9.0))
    grows = generator.random() < 0.2
    selectivity = float(generator.uniform(1.0, 1.3) if grows else generator.uniform(0.3, 1.0))
    join = plan.join(_name(plan), left, right, cost, selectivity)
    plan.operators[join] = replace(plan.operators[join], ordered=False)
    return join


def _name(plan: SimulatedPlan) -> str:
    return f"o{len(plan.operators)}"


@cache
def full_load_scale() -> float:
    """The scale of costs at which the mean rates keep one processor busy all the time."""
    return 1 / _load(sixteen_queries())


def _load(plan: SimulatedPlan) -> float:
    rates: dict[int | str, float] = dict(zip(plan.streams, RATES, strict=True))
    busy = 0.0
    for operator in plan.operators:
        made = 0.0
        for each in operator.inputs:
            assert isinstance(each.cost_seconds, float)  # noqa: S101
            assert isinstance(each.selectivity, float)  # noqa: S101
            busy += rates[each.source] * each.cost_seconds
            made += rates[each.source] * each.selectivity
        rates[operator.id] = made
    return busy


def arrivals(phases: Phases, seed: int) -> Mapping[str, FloatArray]:
    """Self-similar arrivals on each stream, faster from phase to phase."""
    found = {}
    for number, (rate, flows) in enumerate(zip(RATES, FLOWS, strict=True)):
        parts = []
        for phase, load in enumerate(phases.loads):
            process = SelfSimilar(
                rate * load, on_seconds=ON_SECONDS, off_seconds=2 * ON_SECONDS, flows=flows
            )
            start = phase * phases.phase_seconds
            draw = 10_000 * seed + 100 * number + phase
            parts.append(start + process.until(phases.phase_seconds, draw))
        found[f"s{number}"] = np.concatenate(parts)
    return found


def run_phases(strategy: Strategy, phases: Phases, seed: int) -> Record:
    """The experiment under one strategy, every queue on its own (the paper's footnote 1)."""
    plan = sixteen_queries(full_load_scale())
    conditions = Conditions(seed=seed, shared_queues=False)
    return simulate(plan, strategy, arrivals(phases, seed), conditions)


def in_phase(record: Record, phases: Phases, phase: int) -> FloatArray:
    """The latencies of the outputs that left during a phase."""
    first = phase * phases.phase_seconds
    inside = (record.output_seconds >= first) & (
        record.output_seconds < first + phases.phase_seconds
    )
    found: FloatArray = record.output_latency_seconds[inside]
    return found


def plot_over_time(table: Table, figure: Figure, label: str) -> Axes:
    """A curve for each strategy, from a table with a column of seconds."""
    axes = figure.subplots()
    for name in STRATEGIES:
        axes.plot(table["seconds"], table[name], label=name)
    axes.set_xlabel("time (s)")
    axes.set_ylabel(label)
    axes.legend()
    return axes


NOTE = (
    "Costs and selectivities are not in the paper; they are drawn to fit its words: leaves cost 1 "
    "to 2 units and pass 10 to 30 %, the others cost 2 to 8 and pass 70 to 100 %, joins cost 3 to "
    "9 and one in five yields more than one tuple. Loads of 0.5, 0.7, 0.9 and 1.1 for 200 s each, "
    "flows of 40 s, a time unit of 0.1 s; the paper's day has the same shape on a longer scale."
)


@cache
def record_of(name: str, phases: Phases, seed: int) -> Record:
    """The record of a strategy by name, run once however many figures ask for it."""
    return run_phases(make(name, slice_seconds=UNIT_SECONDS), phases, seed)

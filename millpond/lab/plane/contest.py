"""The contest of the plane: its queries, bursts and bounds, and every strategy that takes part."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from millpond.lab.plane.bounds import latency_floor, memory_floor
from millpond.scheduling.charts.progress_chart import Point
from millpond.scheduling.registry import BUILT_IN, find, make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, SimulatedPlan, simulate
from millpond.workloads import PoissonFlows

CHARTS: Mapping[str, Sequence[Point]] = {
    "alert": ((0.0, 1.0), (0.001, 0.2), (0.006, 0.0)),
    "sandwich": ((0.0, 1.0), (0.002, 0.9), (0.004, 0.89), (0.005, 0.1), (0.009, 0.0)),
    "steady": ((0.0, 1.0), (0.002, 0.5), (0.004, 0.4), (0.008, 0.0)),
    "growing": ((0.0, 1.0), (0.001, 0.9), (0.002, 1.4), (0.003, 0.3), (0.005, 0.0)),
    "heavy": ((0.0, 1.0), (0.003, 0.3), (0.004, 0.2), (0.012, 0.0)),
    "light": ((0.0, 1.0), (0.0005, 0.6), (0.0015, 0.55), (0.003, 0.0)),
}
OUTPUTS = {"alert": 0.1, "sandwich": 0.09, "steady": 0.08, "growing": 0.18} | {
    "heavy": 0.14,
    "light": 0.165,
}
"""What one tuple of each query finally yields."""
TUPLES_PER_SECOND = 17.0
SECONDS = 60.0
QUANTUM_SECONDS = 0.004
TIGHT, WIDE = (1.1, 1.25, 1.5), (2.0, 3.0, 4.0)
"""Memory budgets, in multiples of the lower bound of memory on the same arrivals."""
GOALS = (5.0, 20.0, 50.0)
"""Latency goals, in multiples of the lower bound of mean latency."""
CLAIRVOYANT = ("maximum-slope-segment", "per-tuple-greedy")


class Contestant(NamedTuple):
    """A strategy as it is on the plane; budget and goal are multiples of the bounds, or zero."""

    label: str
    strategy: str
    settings: Mapping[str, Any]
    budget: float = 0.0
    goal: float = 0.0

    @property
    def shown(self) -> tuple[str, str, float, float]:
        """All but the settings."""
        return self.label, self.strategy, self.budget, self.goal


class Bounds(NamedTuple):
    """What no schedule can beat on given arrivals."""

    memory: float
    latency_seconds: float


def plan() -> SimulatedPlan:
    """Six queries, each over a stream of its own."""
    made = SimulatedPlan()
    for query, chart in CHARTS.items():
        last = OUTPUTS[query] / chart[-2][1]
        made.chart(query, made.stream(query), chart, last_selectivity=last)
    return made


def arrivals(seed: int) -> dict[str, FloatArray]:
    """Bursts on every stream, independent of each other."""
    process = PoissonFlows(
        flows_per_second=2.0,
        flow_arrivals_per_second=TUPLES_PER_SECOND,
        flow_seconds=0.5,
        shape=1.5,
    )
    return {
        query: process.until(SECONDS, 10 * (seed + 20) + place)
        for place, query in enumerate(CHARTS)
    }


def bounds(streams: Mapping[str, FloatArray]) -> Bounds:
    """The lower bounds of both on these arrivals."""
    work = {query: chart[-1][0] for query, chart in CHARTS.items()}
    return Bounds(memory_floor(CHARTS, streams), latency_floor(work, OUTPUTS, streams))


def contestants() -> list[Contestant]:
    """Every strategy, those that know a budget or a goal with several."""
    alone = (name for name in BUILT_IN if name not in ("auto", "threshold"))
    found = [Contestant(name, name, service(name)) for name in alone]
    for name in ("component-based", "maximum-slope-segment"):
        lean = service(name) | {"objective": "memory"}
        found.append(Contestant(f"{name} memory", name, lean))
    found += [
        Contestant(f"{name} {budget:g}", name, service(name), budget=budget)
        for name in ("threshold", "auto")
        for budget in (*TIGHT, *WIDE)
    ]
    found += [
        Contestant(f"auto goal {goal:g}", "auto", service("auto"), goal=goal) for goal in GOALS
    ]
    return found


def service(name: str) -> dict[str, Any]:
    """How much one decision serves."""
    known = inspect.signature(find(name)).parameters
    if "slice_seconds" in known or "inner_settings" in known:
        return {"slice_seconds": QUANTUM_SECONDS}
    return {"turn_seconds": QUANTUM_SECONDS} if "turn_seconds" in known else {}


def measured(each: Contestant, streams: Mapping[str, FloatArray], least: Bounds) -> Bounds:
    """A strategy's peak memory and mean latency, in multiples of the bounds."""
    settings = dict(each.settings)
    if each.budget:
        settings["memory_bytes"] = each.budget * least.memory
    if each.goal:
        settings |= {"memory_bytes": 1e6, "latency_goal_seconds": each.goal * least.latency_seconds}
    conditions = Conditions(tuples="fluid", clairvoyant=each.strategy in CLAIRVOYANT)
    record = simulate(plan(), make(each.strategy, **settings), streams, conditions)
    return Bounds(
        record.peak_bytes / least.memory, record.mean_latency_seconds / least.latency_seconds
    )

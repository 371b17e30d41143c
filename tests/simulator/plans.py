"""Simulated plans that several tests use."""

from __future__ import annotations

from inspect import signature

import numpy as np
from hypothesis import strategies as st

from millpond.scheduling.registry import BUILT_IN, find, make
from millpond.scheduling.strategy import Strategy
from millpond.simulator import SimulatedPlan

STRATEGIES = tuple(BUILT_IN)
SERVICES: tuple[dict[str, object], ...] = ({}, {"max_tuples": 1}, {"slice_seconds": 0.25})


def strategy(place: int) -> Strategy:
    """The strategy of that place in the list, with one of the services that it knows."""
    name, service = STRATEGIES[place], SERVICES[place % len(SERVICES)]
    known = signature(find(name)).parameters
    cures = "inner_settings" in known
    return make(name, **{key: each for key, each in service.items() if key in known or cures})


def two_operators() -> SimulatedPlan:
    plan = SimulatedPlan()
    plan.path("q", plan.stream("s"), [(1.0, 0.2), (5.0, 1.0)])
    return plan


@st.composite
def plans(draw: st.DrawFn) -> SimulatedPlan:
    """Random plans of two queries: shared operators, joins and unions over two streams."""
    plan = SimulatedPlan()
    sources: list[int | str] = [plan.stream("r"), plan.stream("s", tuple_bytes=2.0)]
    for number in range(draw(st.integers(1, 6))):
        cost = draw(st.sampled_from([0.1, 0.5, 1.0]))
        selectivity = draw(st.sampled_from([0.0, 0.3, 1.0, 1.5]))
        left = draw(st.sampled_from(sources))
        right = draw(st.sampled_from(sources))
        kind = draw(st.sampled_from(["operator", "operator", "join", "union"]))
        if kind == "operator" or left == right:
            sources.append(plan.operator(f"o{number}", left, cost, selectivity))
        elif kind == "join":
            sources.append(plan.join(f"o{number}", left, right, cost, selectivity / 2))
        else:
            sources.append(plan.union(f"o{number}", left, right, cost_seconds=cost))
    plan.query("last", len(plan.operators) - 1)
    other = draw(st.integers(0, len(plan.operators) - 1))
    plan.query("other", other, weight=draw(st.sampled_from([0.5, 1.0, 4.0])))
    return plan


@st.composite
def arrivals(draw: st.DrawFn) -> dict[str, np.ndarray]:
    def times(offset: float) -> np.ndarray:
        gaps = draw(st.lists(st.sampled_from([0.1, 0.5, 3.0]), min_size=0, max_size=12))
        return np.cumsum(np.array(gaps)) + offset

    return {"r": times(0.0), "s": times(0.03)}

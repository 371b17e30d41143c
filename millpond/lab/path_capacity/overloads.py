"""Three paths in an overload, and the cures for starvation of the Path Capacity paper."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, SimulatedPlan, simulate
from millpond.workloads import Constant, Poisson

Arrivals: TypeAlias = Callable[[float, int], dict[str, FloatArray]]
"""Arrivals on each stream, by the length of the overload and the seed."""
CURES = ("none", "periodically-oldest", "dynamic-priority")
PERIOD_SECONDS = 1.0
TUPLES_A_ROUND = 10
COST_SECONDS = {"fast": 0.010, "middle": 0.011, "slow": 0.012}
LONE_SECONDS = 20.0
BOUND_SECONDS = len(COST_SECONDS) * (PERIOD_SECONDS + 2 * TUPLES_A_ROUND * 2 * 0.012)
"""Each path may come first once: a period, a round of the inner strategy, a round of the oldest."""
FAST_PER_SECOND = 73.0
OVERLOAD = FAST_PER_SECOND * 1.5 * COST_SECONDS["fast"]
"""Work a second of the fast path, whose second operator gets half of its tuples."""


def cured(cure: str, inner: str) -> Strategy:
    """The inner strategy with one of the cures, or without."""
    strategy = make(inner, max_tuples=TUPLES_A_ROUND)
    if cure == "none":
        return strategy
    limit = {"oldest_tuples": TUPLES_A_ROUND} if cure == "periodically-oldest" else {}
    return make(cure, inner=strategy, period_seconds=PERIOD_SECONDS, **limit)


def longest_wait(
    strategy: Strategy, overload_seconds: float, seed: int, arrivals: Arrivals
) -> float:
    """The longest that any operator had work and was not served."""
    plan = SimulatedPlan()
    for name, cost_seconds in COST_SECONDS.items():
        steps = [(cost_seconds, 0.5), (cost_seconds, 1.0)]
        plan.path(name, plan.stream(name), steps)
    times = arrivals(overload_seconds, seed)
    record = simulate(plan, strategy, times, Conditions(seed=seed))
    return max(record.longest_wait_seconds.values())


def all_over(overload_seconds: float, seed: int) -> dict[str, FloatArray]:
    """As many tuples on each path: the first two alone are more than the processor can serve."""
    return {
        name: Poisson(40.0).until(overload_seconds, 1000 * seed + place)
        for place, name in enumerate(COST_SECONDS)
    }


def alone(overload_seconds: float, seed: int) -> dict[str, FloatArray]:
    """The first path is overloaded by a tenth, and one tuple arrives on the last."""
    return {
        "fast": Constant(FAST_PER_SECOND).until(overload_seconds),
        "slow": np.array([LONE_SECONDS]),
    }


def rare(overload_seconds: float, seed: int) -> dict[str, FloatArray]:
    """The first path is overloaded by a tenth, and the last gets a tuple every ten seconds."""
    slow = Poisson(0.1).until(overload_seconds, seed)
    return {"fast": Constant(FAST_PER_SECOND).until(overload_seconds), "slow": slow}

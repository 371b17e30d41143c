"""The Unified paper's strategies drive any plan to its end, and lose nothing on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.scheduling.registry import make
from millpond.simulator import Conditions, Normal, SimulatedPlan, Window, simulate
from tests.drawn_examples import examples

NAMES = ("component-based", "maximum-slope-segment", "per-tuple-greedy")


def mixed_plan() -> SimulatedPlan:
    """A join behind a fork, a union, nested forks, and weights."""
    plan = SimulatedPlan()
    left, right = plan.stream("left", 2.0), plan.stream("right")
    shared = plan.operator("shared", left, Normal(0.1, 0.02), 0.8, output_bytes=1.0)
    join = plan.join("join", shared, right, 0.05, window=Window(rows=3, match_probability=0.4))
    plan.query("joined", plan.operator("after join", join, 0.1))
    plan.query("alarm", plan.operator("alarm", join, 0.3, 0.5), weight=5)
    narrow = plan.operator("narrow", shared, 0.2, 1.5, output_bytes=0.5)
    plan.query("narrow", plan.operator("sink", narrow, 0.1))
    union = plan.union("union", narrow, right, cost_seconds=0.05)
    plan.query("both", union, weight=2)
    return plan


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("objective", ["latency", "memory"])
@pytest.mark.parametrize("clairvoyant", [True, False])
def test_joins_unions_forks_and_weights_are_served_to_the_end(name, objective, clairvoyant):
    arrivals = {"left": [0.1 * n for n in range(40)], "right": [0.3 * n for n in range(20)]}
    conditions = Conditions(clairvoyant=clairvoyant, seed=4)
    reference = simulate(mixed_plan(), make("fifo", max_tuples=1), arrivals, conditions)
    strategy = make(name, objective=objective, max_tuples=1)
    record = simulate(mixed_plan(), strategy, arrivals, conditions)
    assert record.tuples_served == reference.tuples_served
    assert record.outputs == reference.outputs > 40
    assert record.memory.values[-1] == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tuples", ["discrete", "fluid"])
@given(
    shape=st.lists(st.integers(-1, 4), min_size=1, max_size=6),
    costs=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=6, max_size=6),
    shares=st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.0]), min_size=6, max_size=6),
    objective=st.sampled_from(["latency", "memory"]),
)
@examples(15)
def test_the_processor_never_idles_while_something_waits(
    name, tuples, shape, costs, shares, objective
):
    plan = SimulatedPlan()
    stream = plan.stream("s")
    for place, parent in enumerate(shape):
        source = parent if 0 <= parent < place else stream
        plan.operator(f"o{place}", source, costs[place], shares[place])
    conditions = Conditions(tuples=tuples, clairvoyant=True)
    strategy = make(name, objective=objective, max_tuples=1)
    record = simulate(plan, strategy, {"s": [0.0, 0.0, 0.0]}, conditions)
    assert record.busy_seconds == pytest.approx(record.finished_seconds)
    assert record.memory.values[-1] == 0

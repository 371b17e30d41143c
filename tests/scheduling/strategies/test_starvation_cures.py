from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StrategyError
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.registry import make
from millpond.scheduling.strategies.round_robin import RoundRobin
from millpond.simulator import SimulatedPlan, simulate
from tests.drawn_examples import examples
from tests.scheduling.literal_plans import paths, ran, tell

FAST_AND_SLOW = paths([(1.0, 0.5), (1.0, 1.0)], [(5.0, 0.5), (5.0, 1.0)])
"""Path 0-1 has the higher priority for all strategies."""

CURED = ["path-capacity", "segment", "simplified-segment", "threshold", "chain", "greedy"]


@pytest.mark.parametrize("inner", CURED)
def test_periodically_the_oldest_tuple_is_carried_to_its_end(inner: str) -> None:
    strategy = make("periodically-oldest", inner=inner, period_seconds=10.0)
    strategy.plan_changed(FAST_AND_SLOW)
    tell(strategy, {0: (9, 5.0), 2: (1, 0.0)}, now_seconds=5.0)
    assert ran(strategy.decide()) == 0
    tell(strategy, {}, now_seconds=10.0)
    assert ran(strategy.decide()) == 2
    tell(strategy, {3: (1, 0.0)}, now_seconds=15.0, empty=[2])
    assert ran(strategy.decide()) == 3
    tell(strategy, {}, now_seconds=19.0, empty=[3])
    assert ran(strategy.decide()) == 0


def test_the_oldest_may_be_served_in_limited_numbers() -> None:
    strategy = make("periodically-oldest", period_seconds=1.0, oldest_tuples=2, max_tuples=7)
    strategy.plan_changed(FAST_AND_SLOW)
    tell(strategy, {0: (9, 0.0)})
    assert strategy.decide() == RunOperator(0, 7)
    tell(strategy, {2: (9, -5.0)}, now_seconds=1.0, empty=[1])
    assert strategy.decide() == RunOperator(2, 2)


@pytest.mark.parametrize("inner", CURED)
def test_age_and_queue_raise_a_priority_until_it_wins(inner: str) -> None:
    strategy = make("dynamic-priority", inner=inner, period_seconds=1.0)
    strategy.plan_changed(FAST_AND_SLOW)
    tell(strategy, {0: (10, 0.0), 2: (10, 0.0)}, now_seconds=1.0)
    assert ran(strategy.decide()) == 0
    tell(strategy, {0: (10, 99.0)}, now_seconds=100.0)
    assert ran(strategy.decide()) == 2


def test_dynamic_priorities_carry_rounds_of_the_inner_strategy_on() -> None:
    strategy = make("dynamic-priority", inner="path-capacity", max_tuples=4)
    strategy.plan_changed(FAST_AND_SLOW)
    tell(strategy, {2: (10, 0.0)}, now_seconds=1.0)
    assert strategy.decide() == RunOperator(2, 4)
    tell(strategy, {0: (99, 0.0), 2: (6, 0.0), 3: (2, 0.0)}, now_seconds=1.0)
    assert strategy.decide() == RunOperator(3)


def test_ages_of_unchanged_queues_grow_with_every_period() -> None:
    strategy = make("dynamic-priority", inner="greedy", period_seconds=10.0)
    strategy.plan_changed(FAST_AND_SLOW)
    tell(strategy, {0: (1, -1.0), 2: (1, -1.0)}, now_seconds=0.0)
    tell(strategy, {0: (1, 8.0)}, now_seconds=9.0)
    assert ran(strategy.decide()) == 0
    tell(strategy, {0: (1, 9.5)}, now_seconds=10.0)
    assert ran(strategy.decide()) == 2


def test_a_priority_below_zero_is_raised_too() -> None:
    strategy = make("dynamic-priority", inner="greedy", period_seconds=1.0)
    strategy.plan_changed(paths([(1.0, 0.5), (1.0, 1.0)], [(1.0, 3.0), (1.0, 1.0)]))
    tell(strategy, {0: (1, 0.0), 2: (1, 0.0)}, now_seconds=1.0)
    assert ran(strategy.decide()) == 0
    tell(strategy, {0: (1, 9999.0), 2: (9, 0.0)}, now_seconds=10_000.0)
    assert ran(strategy.decide()) == 2


def test_a_strategy_without_priorities_can_be_cured_too() -> None:
    strategy = make("dynamic-priority", inner=RoundRobin(max_tuples=3))
    strategy.plan_changed(FAST_AND_SLOW)
    tell(strategy, {0: (1, 0.0), 2: (2, 0.0)}, now_seconds=1.0)
    assert strategy.decide() == RunOperator(2, 3)


@examples(25)
@given(
    st.sampled_from(CURED),
    st.sampled_from([1.0, 2.5, 6.0]),
    st.floats(0.0, 30.0),
    st.sampled_from([1.0, 4.0]),
)
def test_the_oldest_does_not_starve_beside_a_path_that_is_always_busy(
    inner: str, period_seconds: float, arrives: float, slow_seconds: float
) -> None:
    """At most one tuple of the busy path is older, so the second turn is the latest."""
    plan = SimulatedPlan()
    plan.path("busy", plan.stream("r"), [(1.0, 1.0)])
    plan.path("slow", plan.stream("s"), [(slow_seconds, 1.0), (slow_seconds, 1.0)])
    times = {"r": np.arange(100.0), "s": np.array([arrives])}
    waits = {}
    for name, settings_of in (("periodically-oldest", {"inner": inner}), (inner, {})):
        period = {"period_seconds": period_seconds} if settings_of else {}
        record = simulate(plan, make(name, max_tuples=1, **settings_of, **period), times)
        waits[name] = float(record.output_latency_seconds[record.output_operator == 2][0])
    assert waits["periodically-oldest"] <= 2 * (period_seconds + 1.0) + 2 * slow_seconds
    assert waits[inner] >= 99.0 - arrives


@examples(25)
@given(st.sampled_from([1.0, 2.5, 6.0]), st.floats(0.0, 30.0), st.sampled_from([1.0, 2.0, 4.0]))
def test_age_outgrows_the_higher_capacity_of_a_path_that_is_always_busy(
    period_seconds: float, arrives: float, slow_seconds: float
) -> None:
    """One tuple waits there, a second old at most: an age of twice the slow path's work wins."""
    plan = SimulatedPlan()
    plan.path("busy", plan.stream("r"), [(1.0, 1.0)])
    plan.path("slow", plan.stream("s"), [(slow_seconds, 1.0), (slow_seconds, 1.0)])
    times = {"r": np.arange(100.0), "s": np.array([arrives])}
    cured = make("dynamic-priority", inner="path-capacity", period_seconds=period_seconds)
    record = simulate(plan, cured, times)
    waited = float(record.output_latency_seconds[record.output_operator == 2][0])
    assert waited <= 2 * slow_seconds + period_seconds + 2.0 + 2 * slow_seconds


@pytest.mark.parametrize("name", ["periodically-oldest", "dynamic-priority"])
def test_bad_settings_are_refused(name: str) -> None:
    with pytest.raises(StrategyError, match="period_seconds is 0; give more than 0"):
        make(name, period_seconds=0)
    with pytest.raises(StrategyError, match='no strategy "pathcapacity"; did you mean'):
        make(name, inner="pathcapacity")
    with pytest.raises(StrategyError, match=r'strategy "chain".*gamma'):
        make(name, inner="chain", gamma=0.5)

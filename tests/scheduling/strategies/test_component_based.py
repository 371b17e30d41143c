from __future__ import annotations

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import Observation, OperatorState
from millpond.scheduling.strategies.component_based import ComponentBased
from tests.scheduling.tree_plans import Op, shown, snapshot, waits

FORK = snapshot(Op("O1", "s", 2), Op("O3", "O1", 2.5), Op("O2", "O1", 1))
BROKEN = snapshot(Op("O1", "s", 2), Op("O2", "O1", 1), Op("O3", "O1", 10))


def test_the_steepest_part_runs():
    plan = snapshot(Op("slow", "s", 5), Op("fast", "t", 1))
    assert shown(ComponentBased(), plan, waits(0), waits(1)).decide() == RunOperator(1)


def test_a_tuple_is_carried_through_its_part_before_the_next_of_its_age_is_begun():
    strategy = shown(ComponentBased(), FORK, waits(0, 5), waits(1), waits(2))
    assert strategy.decide() == RunOperator(2)
    strategy.observe(Observation(1.0, [OperatorState(2)]))
    assert strategy.decide() == RunOperator(1)
    strategy.observe(Observation(2.0, [OperatorState(1)]))
    assert strategy.decide() == RunOperator(0)


def test_what_was_broken_off_waits_for_the_steeper_part():
    strategy = shown(ComponentBased(), BROKEN, waits(0, since=9), waits(2, since=1))
    assert strategy.decide() == RunOperator(0)
    strategy.observe(Observation(1.0, [OperatorState(0)]))
    assert strategy.decide() == RunOperator(2)


def test_the_reader_that_is_furthest_behind_frees_the_shared_tuple():
    plan = snapshot(Op("O1", "s", 1), Op("O3", "s", 1))
    strategy = shown(ComponentBased("memory"), plan, waits(0, 4), waits(1, 5))
    assert strategy.decide() == RunOperator(1)
    strategy.observe(Observation(1.0, [waits(1, 4)]))
    assert strategy.decide() == RunOperator(0)


def test_both_objectives_differ():
    plan = snapshot(
        Op("filter", "s", 1, 0.01),
        Op("late", "filter", 1),
        Op("whole", "t", 2, 1.0),
    )
    states = waits(0), waits(2)
    assert shown(ComponentBased("latency"), plan, *states).decide() == RunOperator(2)
    assert shown(ComponentBased("memory"), plan, *states).decide() == RunOperator(0)


def test_weights_shift_both_objectives():
    plan = snapshot(Op("light", "s", 1), Op("heavy", "t", 2, weight=3))
    for objective in ("latency", "memory"):
        strategy = shown(ComponentBased(objective), plan, waits(0), waits(1))
        assert strategy.decide() == RunOperator(1)


def test_new_statistics_partition_anew():
    strategy = shown(ComponentBased(), BROKEN, waits(0), waits(2))
    assert strategy.decide() == RunOperator(0)
    cheap = snapshot(Op("O1", "s", 2), Op("O2", "O1", 1), Op("O3", "O1", 0.1))
    assert shown(strategy, cheap, waits(0), waits(2)).decide() == RunOperator(2)


def test_the_service_is_limited_as_asked():
    strategy = shown(ComponentBased(max_tuples=3, slice_seconds=2.0), FORK, waits(0, 9))
    assert strategy.decide() == RunOperator(0, 3, 2.0)


def test_nothing_ready_is_no_decision():
    assert shown(ComponentBased(), FORK, OperatorState(0)).decide() is None


def test_bad_settings_are_refused():
    with pytest.raises(StrategyError, match="choose latency or memory"):
        make("component-based", objective="speed")
    with pytest.raises(StrategyError, match="max_tuples is 0; give at least 1"):
        make("component-based", max_tuples=0)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StrategyError
from millpond.scheduling.charts.progress_chart import partition
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import Observation, OperatorState
from millpond.scheduling.strategies.maximum_slope_segment import MaximumSlopeSegment, steepest_slope
from tests.scheduling.tree_plans import Op, foretold, shown, snapshot, waits

TWO = snapshot(Op("A", "s", 5), Op("B", "t", 5))


def test_a_cheap_tuple_behind_an_expensive_one_is_seen():
    strategy = shown(MaximumSlopeSegment(), TWO, foretold(0, [10, 1]), foretold(1, [9]))
    assert strategy.decide() == RunOperator(0, max_tuples=1)


def test_a_segment_ends_where_the_slope_stops_growing():
    strategy = shown(MaximumSlopeSegment(), TWO, foretold(0, [1, 10]), foretold(1, [9]))
    assert strategy.decide() == RunOperator(0, 1)
    strategy.observe(Observation(1.0, [foretold(0, [10])]))
    assert strategy.decide() == RunOperator(1, 1)
    strategy.observe(Observation(10.0, [OperatorState(1)]))
    assert strategy.decide() == RunOperator(0, 1)


def test_tuples_without_outputs_only_cost():
    a, b = foretold(0, [1, 1], [0, 1]), foretold(1, [1.5], [1])
    assert shown(MaximumSlopeSegment(), TWO, a, b).decide() == RunOperator(1, 1)


def test_memory_counts_bytes_freed():
    plan = snapshot(Op("O1", "s", 1, 0.95, size=0.5), Op("O2", "O1", 5, 0.95))
    strategy = MaximumSlopeSegment("memory")
    dear = foretold(0, [10, 10], [1, 1])._replace(queued_bytes=2.0)
    fed = foretold(1, [4.0], [1])._replace(queued_bytes=0.5)
    assert shown(strategy, plan, dear, fed).decide() == RunOperator(1, 1)
    cheap = foretold(0, [10, 0.5, 0.5], [1, 1, 0])._replace(queued_bytes=3.0)
    assert shown(strategy, plan, cheap, fed).decide() == RunOperator(0, 1)


def test_what_a_step_takes_in_counts_by_its_averages():
    plan = snapshot(Op("a", "s", 1), Op("b", "a", 9), Op("c", "t", 5))
    strategy = shown(MaximumSlopeSegment(), plan, foretold(0, [1]), foretold(2, [5]))
    assert strategy.decide() == RunOperator(2, 1)


def test_averages_stand_in_where_nothing_is_foretold():
    plan = snapshot(Op("slow", "s", 5), Op("fast", "t", 1))
    for objective in ("latency", "memory"):
        strategy = shown(MaximumSlopeSegment(objective), plan, waits(0, 9), waits(1, 1))
        assert strategy.decide() == RunOperator(1, 1)


def test_weights_count_outputs():
    plan = snapshot(Op("A", "s", 5), Op("B", "t", 5, weight=3))
    for objective in ("latency", "memory"):
        strategy = shown(MaximumSlopeSegment(objective), plan, foretold(0, [1]), foretold(1, [2]))
        assert strategy.decide() == RunOperator(1, 1)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=9))
def test_the_steepest_line_bounds_the_first_segment_of_the_chart(steps):
    costs, falls = np.array(steps, dtype=float).T
    points = [(0.0, 0.0), *zip(np.cumsum(costs), -np.cumsum(falls), strict=True)]
    assert steepest_slope(costs, falls) == pytest.approx(partition(points)[0].slope)


def test_tuples_that_cost_nothing_have_no_finite_slope():
    nothing = np.zeros(1)
    assert steepest_slope(nothing, np.ones(1)) == float("inf")
    assert steepest_slope(nothing, nothing) == 0.0
    assert steepest_slope(np.array([0.0, 2.0]), np.array([0.0, 1.0])) == 0.5


def test_bad_settings_are_refused():
    with pytest.raises(StrategyError, match='objective is "space"; choose latency or memory'):
        make("maximum-slope-segment", objective="space")
    with pytest.raises(StrategyError, match="max_tuples is 0"):
        make("maximum-slope-segment", max_tuples=0)

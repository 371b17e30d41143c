from __future__ import annotations

from dataclasses import replace

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.charts.capacity import memory_release_capacity, processing_capacity
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot, PlanSnapshot
from millpond.scheduling.strategies.path_capacity import PathCapacity
from tests.scheduling.literal_plans import operator, paths, ran, tell

SLOW_AND_FAST = paths([(1.0, 0.5), (4.0, 1.0)], [(1.0, 0.5), (1.0, 1.0)])
"""Path 0-1 takes 3 s for a tuple, path 2-3 takes 1.5 s."""


def path_capacity(plan: PlanSnapshot = SLOW_AND_FAST, **settings: object) -> PathCapacity:
    strategy = make("path-capacity", **settings)
    assert isinstance(strategy, PathCapacity)
    strategy.plan_changed(plan)
    return strategy


def test_capacity_of_a_path_is_formula_2_2() -> None:
    plan = paths([(1.0, 0.2), (1.0, 0.5), (5.0, 0.8)])
    assert processing_capacity(plan, (0, 1, 2)) == pytest.approx(1 / (1 + 0.2 + 0.2 * 0.5 * 5))


def test_memory_release_of_a_segment_is_formula_3_2() -> None:
    plan = paths([(1.0, 0.2), (1.0, 0.5), (5.0, 0.8)])
    assert memory_release_capacity(plan, (0, 1)) == pytest.approx((1 - 0.1) / 1.2)


def test_the_output_of_the_last_segment_takes_no_memory() -> None:
    plan = paths([(1.0, 0.2), (5.0, 0.8)])
    assert memory_release_capacity(plan, (1,)) == pytest.approx(1 / 5)


def test_a_path_that_costs_nothing_has_infinite_capacity() -> None:
    assert processing_capacity(paths([(0.0, 1.0)]), (0,)) == float("inf")


def test_a_join_counts_with_the_side_the_path_comes_from() -> None:
    sides = (InputSnapshot(0, 1.0, 0.5), InputSnapshot("t", 9.0, 2.0))
    join = OperatorSnapshot(1, "join", sides, (2,))
    plan = PlanSnapshot((operator(0, "s", 1.0, 1.0, [1]), join, operator(2, 1, 2.0)))
    assert processing_capacity(plan, (0, 1, 2), "s") == pytest.approx(1 / (1 + 1 + 0.5 * 2))
    assert processing_capacity(plan, (1, 2), "t") == pytest.approx(1 / (9 + 2 * 2))


def test_the_path_of_the_highest_capacity_runs_from_its_leaf_up() -> None:
    strategy = path_capacity()
    tell(strategy, {0: (5, 0.0), 2: (5, 1.0)})
    assert strategy.decide() == RunOperator(2)
    tell(strategy, {3: (2, 1.0)}, empty=[2])
    assert strategy.decide() == RunOperator(3)
    tell(strategy, {}, empty=[3])
    assert strategy.decide() == RunOperator(0)


def test_a_round_is_completed_before_a_better_path_begins() -> None:
    strategy = path_capacity()
    tell(strategy, {0: (5, 0.0)})
    assert ran(strategy.decide()) == 0
    tell(strategy, {1: (2, 0.0), 2: (5, 1.0)}, empty=[0])
    assert ran(strategy.decide()) == 1
    tell(strategy, {}, empty=[1])
    assert ran(strategy.decide()) == 2


def test_among_equal_paths_the_oldest_tuple_goes_first() -> None:
    strategy = path_capacity(paths([(1.0, 1.0)], [(1.0, 1.0)]))
    tell(strategy, {0: (5, 2.0), 1: (5, 1.0)})
    assert ran(strategy.decide()) == 1


def test_the_weight_of_a_query_raises_its_path() -> None:
    plan = paths([(1.0, 0.5), (4.0, 1.0)], [(1.0, 0.5), (1.0, 1.0)], weights=[3.0, 1.0])
    strategy = path_capacity(plan)
    tell(strategy, {0: (5, 0.0), 2: (5, 0.0)})
    assert ran(strategy.decide()) == 0


def test_limited_service_limits_what_a_round_takes_in() -> None:
    strategy = path_capacity(max_tuples=3)
    tell(strategy, {2: (5, 0.0)})
    assert strategy.decide() == RunOperator(2, 3)
    tell(strategy, {2: (2, 0.0), 3: (2, 0.0)})
    assert strategy.decide() == RunOperator(3)


def test_a_round_tells_from_how_many_tuples_on_its_steps_pay() -> None:
    priced = [replace(each, step_cost_seconds=6.0) for each in SLOW_AND_FAST.operators]
    strategy = path_capacity(PlanSnapshot(tuple(priced)), max_tuples=1)
    tell(strategy, {2: (5, 0.0)})
    assert strategy.decide() == RunOperator(2, 1, breakeven_tuples=(6.0 + 6.0) / 1.5)
    tell(strategy, {3: (2, 0.0)}, empty=[2])
    assert strategy.decide() == RunOperator(3), "what was taken in is carried on"
    tell(strategy, {1: (2, 0.0)}, empty=[3])
    assert strategy.decide() == RunOperator(1, 1), "one step is the runtime's affair"


def test_a_slice_takes_in_exactly_the_capacity_of_the_path() -> None:
    strategy = path_capacity(slice_seconds=6.0)
    tell(strategy, {2: (50, 0.0)})
    assert strategy.decide() == RunOperator(2, 4, 6.0)
    tell(strategy, {2: (46, 0.0), 3: (2, 0.0)}, now_seconds=4.0)
    assert strategy.decide() == RunOperator(3, None, 2.0)
    tell(strategy, {}, now_seconds=6.0, empty=[3])
    assert strategy.decide() == RunOperator(2, 4, 6.0)


def test_a_slice_that_is_over_lets_a_better_path_in() -> None:
    strategy = path_capacity(slice_seconds=1.0)
    tell(strategy, {0: (1, 0.0)})
    assert strategy.decide() == RunOperator(0, 1, 1.0)
    tell(strategy, {1: (1, 0.0), 2: (1, 1.0)}, now_seconds=1.0, empty=[0])
    assert ran(strategy.decide()) == 2


def test_other_processors_get_other_rounds() -> None:
    strategy = path_capacity()
    tell(strategy, {0: (5, 0.0), 2: (5, 0.0)})
    assert ran(strategy.decide()) == 2
    tell(strategy, {}, running=[2])
    assert ran(strategy.decide()) == 0
    tell(strategy, {2: (1, 3.0)}, running=[0])
    tell(strategy, {3: (2, 0.0)})
    assert ran(strategy.decide()) == 3


def test_the_other_branch_of_a_fork_is_served_too() -> None:
    leaf = operator(0, "s", 1.0, 1.0, [1, 2])
    plan = PlanSnapshot((leaf, operator(1, 0, 1.0), operator(2, 0, 5.0)))
    strategy = path_capacity(plan)
    tell(strategy, {0: (1, 0.0)})
    assert ran(strategy.decide()) == 0
    tell(strategy, {1: (1, 0.0), 2: (1, 0.0)}, empty=[0])
    assert ran(strategy.decide()) == 1
    tell(strategy, {}, empty=[1])
    assert ran(strategy.decide()) == 2
    tell(strategy, {}, empty=[2])
    assert strategy.decide() is None


def test_a_round_ends_at_a_blocked_join() -> None:
    join = OperatorSnapshot(2, "join", (InputSnapshot(0, 1.0, 1.0), InputSnapshot(1, 1.0, 1.0)))
    plan = PlanSnapshot((operator(0, "s", 1.0, 1.0, [2]), operator(1, "t", 2.0, 1.0, [2]), join))
    strategy = path_capacity(plan)
    tell(strategy, {0: (1, 0.0), 1: (1, 0.0)}, empty=[2])
    assert ran(strategy.decide()) == 0
    tell(strategy, {}, empty=[0, 2])
    assert ran(strategy.decide()) == 1
    tell(strategy, {2: (2, 0.0)}, empty=[1])
    assert ran(strategy.decide()) == 2


def test_new_statistics_change_the_order() -> None:
    strategy = path_capacity()
    strategy.plan_changed(paths([(1.0, 0.5), (4.0, 1.0)], [(9.0, 0.5), (1.0, 1.0)]))
    tell(strategy, {0: (5, 0.0), 2: (5, 0.0)})
    assert ran(strategy.decide()) == 0


def test_an_empty_plan_idles() -> None:
    assert path_capacity(PlanSnapshot(())).decide() is None


@pytest.mark.parametrize("settings", [{"max_tuples": 0}, {"slice_seconds": -1.0}, {"gamma": 1}])
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(StrategyError):
        make("path-capacity", **settings)

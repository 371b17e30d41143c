from __future__ import annotations

import pytest

from millpond.scheduling.charts.steepest_paths import chain_slopes
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot, PlanSnapshot
from millpond.scheduling.strategies.chain import Chain
from tests.scheduling.every_path import every_path
from tests.scheduling.pictures import decide, path, together, waiting
from tests.scheduling.tree_plans import Op, snapshot

SANDWICH = path((2, 0.9), (2, 0.9), (1, 0.1), (40, 1))


def _priorities(plan: PlanSnapshot) -> dict[int, float]:
    strategy = Chain()
    strategy.plan_changed(plan)
    return {each.id: strategy.priority(each.id) for each in plan.operators}


def test_operators_of_one_chain_share_its_slope() -> None:
    slopes = chain_slopes(SANDWICH, every_path(SANDWICH)[0])
    assert slopes[0] == slopes[1] == slopes[2] > slopes[3]
    assert slopes[0] == pytest.approx((1 - 0.081) / (2 + 1.8 + 0.81))


def test_of_one_chain_the_oldest_tuple_is_carried_on() -> None:
    strategy = Chain()
    strategy.plan_changed(SANDWICH)
    assert decide(strategy, [waiting(0, 2.0), waiting(1, 1.0), waiting(3, 0.0)]) == RunOperator(1)


def test_of_one_chain_the_running_operator_goes_on_when_told_to_stay() -> None:
    strategy = Chain(stay=True)
    strategy.plan_changed(SANDWICH)
    assert decide(strategy, [waiting(0, 1.0)]) == RunOperator(0)
    assert decide(strategy, [waiting(0, 2.0), waiting(1, 1.0)]) == RunOperator(0)


def test_the_steepest_chain_of_all_queries_goes_first() -> None:
    strategy = Chain()
    strategy.plan_changed(together(SANDWICH, path((1, 0.5), (1, 1), first_id=4)))
    assert decide(strategy, [waiting(0, 0.0), waiting(4, 9.0)]) == RunOperator(4)


@pytest.mark.parametrize("steep_first", [True, False])
def test_a_shared_operator_takes_the_steepest_of_its_chains(steep_first: bool) -> None:
    costs = (1.0, 9.0) if steep_first else (9.0, 1.0)
    fork = snapshot(Op("shared", "s", 1), Op("a", "shared", costs[0]), Op("b", "shared", costs[1]))
    assert _priorities(fork)[0] == pytest.approx(1 / 2)


def test_a_join_takes_the_steeper_of_its_chains() -> None:
    left = InputSnapshot(0, 1.0, 1.0, tuple_bytes=0.5, tuples_per_second=0.1)
    right = InputSnapshot("s", 1.0, 1.0, tuples_per_second=1.0)
    plan = PlanSnapshot(
        (
            OperatorSnapshot(0, "select", (InputSnapshot("r", 1.0, 0.1),), (1,), output_bytes=0.5),
            OperatorSnapshot(1, "join", (left, right), (2,)),
            OperatorSnapshot(2, "last", (InputSnapshot(1, 1.0, 1.0),), delivers=True),
        )
    )
    # By way of S: (0, 1), (1, 1), (2, 0): one chain of slope 1/2.
    # By way of R: (0, 1), (1, 0.05), (1.1, 0.1), (1.2, 0): slopes 0.95 and 1/4.
    assert _priorities(plan) == pytest.approx({0: 0.95, 1: 0.5, 2: 0.5})


def test_a_blocked_join_is_not_considered() -> None:
    strategy = Chain()
    strategy.plan_changed(SANDWICH)
    blocked = waiting(2, 0.0)._replace(ready=False)
    assert decide(strategy, [blocked, waiting(3, 5.0)]) == RunOperator(3)


def test_new_statistics_change_the_priorities() -> None:
    strategy = Chain()
    states = [waiting(0, 1.0), waiting(1, 1.0)]
    for selectivity, expected in ((0.1, 0), (0.99, 1)):
        strategy.plan_changed(together(path((1, selectivity)), path((2, 1), first_id=1)))
        slow = together(path((1, selectivity), (90, 1)), path((9, 1), first_id=2))
        strategy.plan_changed(slow)
        states = [waiting(0, 1.0), waiting(2, 1.0)]
        assert decide(strategy, states) == RunOperator((0, 2)[expected])


def test_weights_multiply_slopes() -> None:
    plan = together(path((2, 1), weight=5.0), path((1, 1), first_id=1))
    assert _priorities(plan) == {0: 2.5, 1: 1.0}


def test_a_selectivity_above_one_does_not_hide_the_selective_operator_behind() -> None:
    slopes = _priorities(path((1, 0.9), (2, 1.7), (1, 0.1), (50, 1)))
    assert slopes[0] == slopes[1] == slopes[2]

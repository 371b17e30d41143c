from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.strategies.round_robin import RoundRobin
from tests.scheduling.pictures import decide, idle, path, together, waiting

PLAN = path((1, 0.5), (1, 0.5), (1, 0.5))


def _round_robin(**settings: float) -> RoundRobin:
    strategy = RoundRobin(**settings)  # type: ignore[arg-type]
    strategy.plan_changed(PLAN)
    return strategy


def test_ready_operators_take_turns_in_plan_order() -> None:
    strategy = _round_robin()
    states = [waiting(0, 3.0), waiting(1, 2.0), waiting(2, 1.0)]
    turns = [decide(strategy, states) for _ in range(5)]
    assert turns == [RunOperator(each) for each in (0, 1, 2, 0, 1)]


def test_an_operator_that_becomes_ready_behind_the_cursor_runs_in_this_round() -> None:
    strategy = _round_robin()
    assert decide(strategy, [waiting(0, 1.0)]) == RunOperator(0)
    assert decide(strategy, [waiting(2, 1.0)]) == RunOperator(2)
    assert decide(strategy, [waiting(1, 1.0)]) == RunOperator(0)
    assert decide(strategy, []) == RunOperator(1)


def test_an_operator_that_comes_and_goes_is_not_served_twice_in_a_round() -> None:
    strategy = _round_robin()
    assert decide(strategy, [waiting(0, 1.0), waiting(1, 1.0)]) == RunOperator(0)
    assert decide(strategy, [idle(0)]) == RunOperator(1)
    assert decide(strategy, [waiting(0, 1.0)]) == RunOperator(0)
    assert decide(strategy, []) == RunOperator(1)


def test_nothing_ready_means_no_decision() -> None:
    strategy = _round_robin()
    assert decide(strategy, [waiting(0, 1.0)]) == RunOperator(0)
    assert decide(strategy, [idle(0)]) is None


def test_weights_multiply_the_quantum() -> None:
    strategy = RoundRobin(slice_seconds=0.5)
    strategy.plan_changed(together(path((1, 1), weight=3.0), path((1, 1), first_id=1)))
    states = [waiting(0, 1.0), waiting(1, 1.0)]
    assert decide(strategy, states) == RunOperator(0, slice_seconds=1.5)
    assert decide(strategy, states) == RunOperator(1, slice_seconds=0.5)


def test_the_turn_survives_a_new_plan() -> None:
    strategy = _round_robin()
    decide(strategy, [waiting(0, 1.0), waiting(1, 1.0)])
    strategy.plan_changed(PLAN)
    assert decide(strategy, [waiting(0, 1.0), waiting(1, 1.0)]) == RunOperator(1)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=60))
def test_no_ready_operator_waits_longer_than_a_round(changes: list[tuple[int, bool]]) -> None:
    strategy = RoundRobin()
    strategy.plan_changed(path(*[(1, 1)] * 5))
    skipped = dict.fromkeys(range(5), 0)
    ready: set[int] = set()
    for operator, comes in changes:
        (ready.add if comes else ready.discard)(operator)
        chosen = decide(strategy, [waiting(operator, 0.0) if comes else idle(operator)])
        assert (chosen is None) == (not ready)
        for each in range(5):
            served = isinstance(chosen, RunOperator) and chosen.operator == each
            skipped[each] = 0 if served or each not in ready else skipped[each] + 1
            assert skipped[each] <= 5

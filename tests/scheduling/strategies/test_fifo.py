from __future__ import annotations

from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.strategies.fifo import Fifo
from tests.scheduling.pictures import decide, idle, path, together, waiting

PLAN = together(path((1, 0.5), (1, 0.5)), path((1, 0.5), first_id=2))


def _fifo(**settings: int) -> Fifo:
    strategy = Fifo(**settings)
    strategy.plan_changed(PLAN)
    return strategy


def test_the_oldest_tuple_goes_first() -> None:
    assert decide(_fifo(), [waiting(0, 5.0), waiting(1, 4.0), waiting(2, 3.0)]) == RunOperator(2)


def test_a_tuple_is_completed_before_its_twin_is_begun() -> None:
    assert decide(_fifo(), [waiting(0, 5.0), waiting(1, 5.0)]) == RunOperator(1)


def test_only_ready_operators_run() -> None:
    strategy = _fifo()
    blocked = waiting(0, 1.0)._replace(ready=False)
    assert decide(strategy, [blocked, idle(1), idle(2)]) is None
    assert decide(strategy, [waiting(1, 7.0)]) == RunOperator(1)
    assert decide(strategy, [idle(1), waiting(2, 8.0)]) == RunOperator(2)


def test_the_service_is_limited_as_set() -> None:
    assert decide(_fifo(max_tuples=1), [waiting(0, 5.0)]) == RunOperator(0, max_tuples=1)


def test_a_new_plan_forgets_what_waited() -> None:
    strategy = _fifo()
    decide(strategy, [waiting(0, 5.0)])
    strategy.plan_changed(path((1, 1)))
    assert strategy.decide() is None

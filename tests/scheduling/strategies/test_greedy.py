from __future__ import annotations

from millpond.scheduling.charts.capacity import released_per_second
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.strategies.greedy import Greedy
from tests.scheduling.pictures import decide, path, together, waiting


def test_the_priority_is_what_an_operator_frees_in_a_second() -> None:
    first, second, last = path((2, 0.5), (4, 1.5), (2, 1)).operators
    assert released_per_second(first) == 0.25
    assert released_per_second(second) == -0.125
    assert released_per_second(last) == 0.5


def test_the_operator_that_frees_most_goes_first() -> None:
    strategy = Greedy()
    strategy.plan_changed(path((1, 0.9), (1, 0.2), (9, 1)))
    states = [waiting(0, 1.0), waiting(1, 2.0), waiting(2, 3.0)]
    assert decide(strategy, states) == RunOperator(1)


def test_weights_multiply_priorities() -> None:
    strategy = Greedy()
    strategy.plan_changed(together(path((2, 1), weight=5.0), path((1, 1), first_id=1)))
    assert decide(strategy, [waiting(0, 1.0), waiting(1, 1.0)]) == RunOperator(0)


def test_staying_saves_a_switch_between_equals() -> None:
    plan = together(path((1, 1)), path((1, 1), first_id=1))
    for stay, expected in ((False, 0), (True, 1)):
        strategy = Greedy(stay=stay)
        strategy.plan_changed(plan)
        assert decide(strategy, [waiting(1, 5.0)]) == RunOperator(1)
        assert decide(strategy, [waiting(0, 1.0)]) == RunOperator(expected)


def test_staying_never_holds_up_something_better() -> None:
    strategy = Greedy(stay=True)
    strategy.plan_changed(together(path((2, 1)), path((1, 1), first_id=1)))
    assert decide(strategy, [waiting(0, 1.0)]) == RunOperator(0)
    assert decide(strategy, [waiting(1, 5.0)]) == RunOperator(1)

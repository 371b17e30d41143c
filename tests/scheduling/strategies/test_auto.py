from __future__ import annotations

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.ladder import Ladder, weighed_priorities
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import Observation, OperatorState
from millpond.scheduling.strategies.auto import Auto
from millpond.simulator import Conditions, SimulatedPlan, simulate
from tests.scheduling.pictures import decide, idle, path, together, waiting

# Frees memory at once but yields late; frees it late but yields soon.
PLAN = together(path((1, 0.1), (90, 1)), path((4, 1.0), (4, 1), first_id=2))
STATES = [waiting(0, 5.0), waiting(2, 5.0)]


def _auto(memory_bytes: float = 100.0, goal: float | None = None) -> Auto:
    strategy = Auto(memory_bytes, goal)
    strategy.plan_changed(PLAN)
    return strategy


def _at(
    strategy: Auto, queue_bytes: float, states: list[OperatorState], now: float = 6.0
) -> object:
    strategy.observe(Observation(now, states, queue_bytes))
    return strategy.decide()


def test_while_memory_is_ample_outputs_come_first() -> None:
    assert _at(_auto(), 10.0, STATES) == RunOperator(2)


def test_near_the_budget_memory_comes_first() -> None:
    strategy = _auto()
    assert _at(strategy, 99.0, STATES) == RunOperator(0)
    assert strategy.rung == 3


def _calm(strategy: Auto, *sizes: float) -> list[int]:
    """The rungs in use at these sizes of the queues, each long behind the one before."""
    rungs = []
    for place, queue_bytes in enumerate(sizes, start=1):
        _at(strategy, queue_bytes, STATES, now=strategy._looked_seconds + 100.0 * place)
        rungs.append(strategy.rung)
    return rungs


def test_rungs_are_climbed_one_by_one_through_the_reserve() -> None:
    assert _calm(_auto(100.0), 19.0, 20.0, 46.0, 47.0, 73.0, 74.0) == [0, 1, 1, 2, 2, 3]


def test_memory_that_rises_counts_by_its_lead_more() -> None:
    slowly, fast = _auto(100.0), _auto(100.0)
    assert _calm(slowly, 1.0, 12.0) == [0, 0]
    assert _calm(fast, 1.0) == [0]
    _at(fast, 12.0, STATES, now=fast._looked_seconds + 0.01)
    assert fast.rung == 1


def test_stepping_down_needs_some_relief() -> None:
    assert _calm(_auto(), 20.0, 18.5, 18.3) == [1, 1, 0]


def test_the_reserve_falls_slowly_to_what_the_worst_burst_needed() -> None:
    strategy = _auto()
    _calm(strategy, 20.0, 60.0, 10.0)
    assert strategy.reserve_bytes == pytest.approx(0.9 * 80)
    _calm(strategy, *[50.0, 1.0] * 10)
    assert strategy.reserve_bytes == pytest.approx(1.3 * 40 * 0.997**10)


def test_a_worse_burst_raises_the_reserve_at_once() -> None:
    strategy = _auto()
    _calm(strategy, *[99.0, 1.0] * 30)
    assert strategy.reserve_bytes == pytest.approx(5.0)
    _calm(strategy, 96.0, 126.0, 1.0)
    assert strategy.reserve_bytes == pytest.approx(1.3 * 30)


def test_with_a_goal_memory_is_saved_until_tuples_grow_old() -> None:
    strategy = _auto(goal=8.0)
    rungs = []
    for now in (5.0, 9.0, 10.5, 12.0, 13.0, 50.0):
        _at(strategy, 1.0, STATES, now)
        rungs.append(strategy.rung)
    assert rungs == [3, 3, 2, 1, 0, 0]


def test_a_goal_decides_what_runs() -> None:
    strategy = _auto(goal=8.0)
    assert _at(strategy, 1.0, STATES, now=6.0) == RunOperator(0)
    assert _at(strategy, 1.0, [], now=20.0) == RunOperator(2)


def test_the_budget_goes_before_the_goal() -> None:
    strategy = _auto(goal=8.0)
    assert _at(strategy, 99.0, STATES, now=50.0) == RunOperator(0)


def test_only_ready_operators_run_on_every_rung() -> None:
    strategy = _auto()
    assert _at(strategy, 10.0, STATES) == RunOperator(2)
    assert _at(strategy, 99.0, [idle(0)]) == RunOperator(2)
    assert _at(strategy, 10.0, [idle(2)]) is None
    assert decide(strategy, [waiting(1, 1.0)]) == RunOperator(1)


def test_a_tuple_on_its_way_goes_before_one_at_the_beginning() -> None:
    for share in (0.0, 0.4, 1.0):
        priorities = weighed_priorities(path((1, 0.9), (1, 0.8), (1, 1)), share)
        assert priorities[2] >= priorities[0]


def test_weights_count_on_the_side_of_latency() -> None:
    plan = together(path((1, 1)), path((1, 1), weight=3.0, first_id=1))
    swift, lean = weighed_priorities(plan, 0.0), weighed_priorities(plan, 1.0)
    assert swift[1] == 3 * swift[0]
    assert lean[1] == lean[0]


def test_the_last_rung_holds_memory_as_well_as_chain() -> None:
    plan = SimulatedPlan()
    plan.chart("a", plan.stream("a"), [(0, 1), (1, 0.9), (2, 0.1), (9, 0)])
    plan.chart("b", plan.stream("b"), [(0, 1), (3, 0.3), (5, 0)])
    arrivals = {"a": [float(n) for n in range(20)], "b": [n + 0.5 for n in range(20)]}
    fluid = Conditions(tuples="fluid")
    peaks = [
        simulate(plan, make(name, slice_seconds=0.5, **settings), arrivals, fluid).peak_bytes
        for name, settings in (("chain", {}), ("auto", {"memory_bytes": 1e-6}))
    ]
    assert peaks[1] <= peaks[0] + 1


def test_a_ladder_catches_up_with_what_it_missed() -> None:
    ladder = Ladder()
    ladder.plan_changed(PLAN)
    ladder.observe([waiting(0, 1.0), waiting(2, 1.0)], rung=0)
    ladder.observe([idle(0)], rung=0)
    assert [ladder.best(rung) for rung in range(ladder.last + 1)] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "settings",
    [
        {"memory_bytes": 0.0},
        {"latency_goal_seconds": 0.0},
        {"trend_seconds": 0.0},
        {"max_tuples": 0},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(StrategyError, match=next(iter(settings))):
        Auto(**settings)  # type: ignore[arg-type]

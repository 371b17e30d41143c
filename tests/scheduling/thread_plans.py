"""Small plans and a runtime on paper for the tests of the three-level scheme."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.snapshot import (
    InputSnapshot,
    Observation,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
    WeightedQuery,
)
from millpond.scheduling.threads.three_levels import ThreeLevels


def plan(
    *operators: tuple[Sequence[int | str], float, float], weights: Sequence[float] = ()
) -> PlanSnapshot:
    """Operators 0, 1, … from (sources, cost_seconds, tuples_per_second over all inputs)."""
    snapshots = []
    for identity, (sources, cost, rate) in enumerate(operators):
        readers = [
            n for n, (above, _, _) in enumerate(operators) for each in above if each == identity
        ]
        each_rate = rate / len(sources)
        inputs = tuple(InputSnapshot(s, cost, 1.0, tuples_per_second=each_rate) for s in sources)
        queries = (WeightedQuery(f"q{identity}", weights[identity]),) if weights else ()
        snapshots.append(
            OperatorSnapshot(identity, f"o{identity}", inputs, tuple(readers), queries)
        )
    return PlanSnapshot(tuple(snapshots))


def path(*costs: float, rate: float = 1.0) -> PlanSnapshot:
    """Operators in a row, all at one rate."""
    return plan(*((["s" if n == 0 else n - 1], cost, rate) for n, cost in enumerate(costs)))


def ready(*operators: int) -> list[OperatorState]:
    return [OperatorState(each, 1.0, 1.0, 0.0, ready=True) for each in operators]


def idle(*operators: int) -> list[OperatorState]:
    return [OperatorState(each) for each in operators]


def running(*operators: int) -> list[OperatorState]:
    return [OperatorState(each, running=True) for each in operators]


def begin(strategy: ThreeLevels, on: PlanSnapshot, *states: OperatorState) -> None:
    """Give a strategy its plan and the state of every operator."""
    known = {state.operator: state for state in states}
    everything = [known.get(each.id, OperatorState(each.id)) for each in on.operators]
    strategy.plan_changed(on)
    strategy.observe(Observation(0.0, everything))


def turns(strategy: ThreeLevels, count: int, seconds: float = 1.0) -> list[int]:
    """Which operators run on one processor when all that is ready stays so."""
    ran = []
    for turn in range(1, count + 1):
        decision = strategy.decide()
        assert isinstance(decision, RunOperator)
        ran.append(decision.operator)
        strategy.observe(Observation(turn * seconds, ready(decision.operator)))
    return ran

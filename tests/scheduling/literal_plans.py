"""Literal plan snapshots and states for tests of strategies that schedule paths and segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millpond.scheduling.decisions import Decision, RunOperator
from millpond.scheduling.snapshot import (
    InputSnapshot,
    Observation,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
    WeightedQuery,
)
from millpond.scheduling.strategy import Strategy


def operator(
    identity: int,
    source: int | str,
    cost_seconds: float,
    selectivity: float = 1.0,
    downstream: Sequence[int] = (),
    queries: Sequence[str] = (),
    weight: float = 1.0,
) -> OperatorSnapshot:
    """An operator with one input."""
    one = InputSnapshot(source, cost_seconds, selectivity)
    served = tuple(WeightedQuery(query, weight) for query in queries)
    return OperatorSnapshot(identity, f"o{identity}", (one,), tuple(downstream), served)


def paths(*steps: Sequence[tuple[float, float]], weights: Sequence[float] = ()) -> PlanSnapshot:
    """Disjoint paths of (cost, selectivity), numbered on; path i reads stream si for query qi."""
    found: list[OperatorSnapshot] = []
    for number, path in enumerate(steps):
        weight = weights[number] if weights else 1.0
        first = len(found)
        for place, (cost, selectivity) in enumerate(path):
            identity = first + place
            source = identity - 1 if place else f"s{number}"
            behind = [identity + 1] if place + 1 < len(path) else []
            found.append(
                operator(identity, source, cost, selectivity, behind, [f"q{number}"], weight)
            )
    return PlanSnapshot(tuple(found))


def tell(
    strategy: Strategy,
    waiting: Mapping[int, tuple[float, float]],
    now_seconds: float = 0.0,
    queue_bytes: float = 0.0,
    running: Sequence[int] = (),
    empty: Sequence[int] = (),
) -> None:
    """Let a strategy observe (tuples, oldest arrival) of ready operators, and others."""
    ready = [
        OperatorState(operator, tuples, tuples, oldest, ready=True)
        for operator, (tuples, oldest) in waiting.items()
    ]
    others = [
        OperatorState(operator, running=operator in running) for operator in (*running, *empty)
    ]
    strategy.observe(Observation(now_seconds, [*ready, *others], queue_bytes))


def ran(decision: Decision | None) -> int | None:
    """The operator a decision runs, or None for idling."""
    if decision is None:
        return None
    assert isinstance(decision, RunOperator)
    return decision.operator

"""Snapshots that strategy tests start from."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.scheduling.decisions import Decision
from millpond.scheduling.snapshot import (
    InputSnapshot,
    Observation,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
    WeightedQuery,
)
from millpond.scheduling.strategy import Strategy


def path(*steps: tuple[float, float], weight: float = 1.0, first_id: int = 0) -> PlanSnapshot:
    """One query: a path of (cost_seconds, selectivity) operators over a stream."""
    last = first_id + len(steps) - 1
    return PlanSnapshot(
        tuple(
            OperatorSnapshot(
                identity,
                f"o{identity}",
                (InputSnapshot("s" if identity == first_id else identity - 1, cost, selectivity),),
                downstream=() if identity == last else (identity + 1,),
                queries=(WeightedQuery(f"q{first_id}", weight),),
                delivers=identity == last,
            )
            for identity, (cost, selectivity) in enumerate(steps, start=first_id)
        )
    )


def together(*plans: PlanSnapshot) -> PlanSnapshot:
    """Several plans as one."""
    return PlanSnapshot(tuple(operator for plan in plans for operator in plan.operators))


def waiting(operator: int, oldest: float, tuples: float = 1.0) -> OperatorState:
    """A ready operator."""
    return OperatorState(operator, tuples, tuples, oldest, ready=True)


def idle(operator: int) -> OperatorState:
    """An operator with an empty queue."""
    return OperatorState(operator)


def decide(
    strategy: Strategy, states: Sequence[OperatorState], now_seconds: float = 0.0
) -> Decision | None:
    """Show the strategy what changed, and ask."""
    size = sum(state.queued_bytes for state in states)
    strategy.observe(Observation(now_seconds, states, size))
    return strategy.decide()

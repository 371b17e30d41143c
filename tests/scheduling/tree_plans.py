"""Literal plan snapshots from short descriptions, for tests of partitioning strategies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millpond.scheduling.snapshot import (
    InputSnapshot,
    Observation,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
    WaitingTuples,
    WeightedQuery,
)
from millpond.scheduling.strategy import Strategy


@dataclass(frozen=True)
class Op:
    """One operator; a source is the name of an earlier one, or else that of a stream."""

    name: str
    source: str | tuple[str, ...]
    cost: float
    selectivity: float = 1.0
    size: float = 1.0
    weight: float = 1.0


def snapshot(*ops: Op, stream_bytes: float = 1.0) -> PlanSnapshot:
    """The plan of these operators, numbered in this order."""
    number = {op.name: place for place, op in enumerate(ops)}
    size = {op.name: op.size for op in ops}
    operators = []
    for op in ops:
        inputs = tuple(
            InputSnapshot(
                number.get(source, source),
                op.cost,
                op.selectivity,
                tuple_bytes=size.get(source, stream_bytes),
            )
            for source in _sources(op)
        )
        downstream = tuple(number[each.name] for each in ops if op.name in _sources(each))
        served = (WeightedQuery("q", op.weight),)
        identity = number[op.name]
        operators.append(OperatorSnapshot(identity, op.name, inputs, downstream, served, op.size))
    return PlanSnapshot(tuple(operators))


def names(plan: PlanSnapshot, operators: tuple[int, ...]) -> str:
    """Operators by name, in order."""
    return " ".join(plan.by_id[each].name for each in operators)


def shown(strategy: Strategy, plan: PlanSnapshot, *states: OperatorState) -> Strategy:
    """The strategy after it saw the plan and these states."""
    strategy.plan_changed(plan)
    strategy.observe(Observation(0.0, states))
    return strategy


def waits(
    operator: int, tuples: float = 1, since: float = 0.0, size: float | None = None
) -> OperatorState:
    """An operator that is ready, with so many tuples waiting."""
    return OperatorState(operator, tuples, tuples if size is None else size, since, ready=True)


def foretold(
    operator: int, costs: list[float], outputs: list[float] | None = None
) -> OperatorState:
    """An operator that is ready, with tuples whose costs and outputs are known."""
    made = [1.0] * len(costs) if outputs is None else outputs
    known = WaitingTuples(np.array(costs), np.array(made))
    return OperatorState(operator, len(costs), len(costs), 0.0, True, False, known)


def _sources(op: Op) -> tuple[str, ...]:
    return op.source if isinstance(op.source, tuple) else (op.source,)

"""One chart-partitioning procedure with two objectives (Unified paper, sections 3 and 4).

A plan falls into parts, each processed depth first and served in order of slope. Both objectives
normalise from the outputs upwards: what is behind an operator is drawn in order of slope, and the
step before it takes in whatever is steeper than itself. They differ only in the charts drawn before
that: `fork_charts` has both.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, TypeAlias, get_args

from millpond.errors import StrategyError
from millpond.scheduling.charts.chart_parts import ChartPart, Stack, absorb, merged, unfold
from millpond.scheduling.charts.fork_charts import (
    Charts,
    MemoryReductionCharts,
    OutputCompletionCharts,
)
from millpond.scheduling.snapshot import PlanSnapshot

Objective: TypeAlias = Literal["latency", "memory"]


def parts(plan: PlanSnapshot, objective: Objective) -> tuple[ChartPart, ...]:
    """The parts of a plan, the steepest first; joins may make an operator belong to several."""
    check_objective(objective)
    found = _latency_parts(plan) if objective == "latency" else _memory_parts(plan)
    return tuple(sorted(found, key=lambda part: -part.slope))


def charts(plan: PlanSnapshot, objective: Objective) -> Charts:
    """The charts behind every operator of a plan."""
    check_objective(objective)
    kind = OutputCompletionCharts if objective == "latency" else MemoryReductionCharts
    return kind(plan, plan.by_id.keys())


def check_objective(objective: str) -> None:
    """Refuse an objective that does not exist."""
    known = get_args(Objective)
    if objective not in known:
        raise StrategyError(f'objective is "{objective}"; choose {" or ".join(known)}')


def _latency_parts(plan: PlanSnapshot) -> Iterator[ChartPart]:
    """Joins with all before them are not partitioned; what is behind them is."""
    merging = _before_joins(plan)
    completion = OutputCompletionCharts(plan, plan.by_id.keys() - merging)
    for operator in plan.operators:
        if operator.id not in merging and operator.streams:
            yield from unfold(completion.branch(operator.id))
    for region in _connected(plan, merging):
        yield from unfold(_region(completion, region))


def _region(completion: OutputCompletionCharts, region: Sequence[int]) -> Stack:
    steps = [completion.step(completion.plan.by_id[operator]) for operator in region]
    seconds, fall = sum(each.seconds for each in steps), sum(each.fall for each in steps)
    inside = set(region)
    readers = chain.from_iterable(completion.readers[operator] for operator in region)
    branches = merged(completion.branch(reader) for reader in readers if reader not in inside)
    lead, rest = absorb(ChartPart(seconds, fall, ()), branches)
    taken = lead.taken
    for step in reversed(steps):
        taken = (replace(step, taken=taken),)
    return replace(lead, taken=taken), rest


def _memory_parts(plan: PlanSnapshot) -> Iterator[ChartPart]:
    """Each stream begins a tree; a join belongs to the tree of each stream it depends on."""
    reduction = MemoryReductionCharts(plan, plan.by_id.keys())
    for source in reduction.readers:
        if isinstance(source, str):
            yield from unfold(reduction.after(source))


def _before_joins(plan: PlanSnapshot) -> set[int]:
    """The operators with several inputs and all that feed them."""
    found: set[int] = set()
    for identity in reversed(plan.upstream_first):
        operator = plan.by_id[identity]
        if len(operator.inputs) > 1 or not found.isdisjoint(operator.downstream):
            found.add(identity)
    return found


def _connected(plan: PlanSnapshot, operators: Collection[int]) -> Iterator[list[int]]:
    """These operators in groups that are joined by edges, upstream first."""
    place = {identity: rank for rank, identity in enumerate(plan.upstream_first)}
    left = set(operators)
    while left:
        pending = [left.pop()]
        for identity in pending:
            operator = plan.by_id[identity]
            near = left.intersection((*operator.upstream, *operator.downstream))
            left -= near
            pending.extend(near)
        yield sorted(pending, key=place.__getitem__)

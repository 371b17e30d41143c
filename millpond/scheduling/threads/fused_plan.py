"""The plan snapshot of virtual operators, from that of the elementary ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from millpond.scheduling.snapshot import (
    InputSnapshot,
    OperatorSnapshot,
    PlanSnapshot,
    WeightedQuery,
)


def fused_snapshot(
    elementary: PlanSnapshot, unit_of: Mapping[int, int], structure: int
) -> PlanSnapshot:
    """The plan in which the operators of one unit are one virtual operator."""
    groups: dict[int, list[OperatorSnapshot]] = {}
    for identity in elementary.upstream_first:
        groups.setdefault(unit_of[identity], []).append(elementary.by_id[identity])
    if len(groups) == len(elementary.operators):
        return replace(elementary, structure=structure)
    operators = tuple(_fuse(unit, group, unit_of) for unit, group in sorted(groups.items()))
    return PlanSnapshot(operators, structure, elementary, elementary.partitions)


def _fuse(
    unit: int, members: Sequence[OperatorSnapshot], unit_of: Mapping[int, int]
) -> OperatorSnapshot:
    if len(members) == 1:
        only = members[0]
        inputs = tuple(_relabel(each, unit_of) for each in only.inputs)
        return replace(only, inputs=inputs, downstream=_outside([only], unit, unit_of))
    flows = [
        (each, _flow(members, member, each, unit, unit_of))
        for member in members
        for each in member.inputs
        if not isinstance(each.source, int) or unit_of[each.source] != unit
    ]
    made = sum(each.tuples_per_second * flow.outputs for each, flow in flows)
    made_bytes = sum(each.tuples_per_second * flow.output_bytes for each, flow in flows)
    return OperatorSnapshot(
        unit,
        " + ".join(member.name for member in members),
        tuple(
            replace(_relabel(each, unit_of), cost_seconds=flow.seconds, selectivity=flow.outputs)
            for each, flow in flows
        ),
        downstream=_outside(members, unit, unit_of),
        queries=_queries(members),
        output_bytes=made_bytes / made if made > 0 else members[-1].output_bytes,
        step_cost_seconds=sum(member.step_cost_seconds for member in members),
        delivers=any(member.delivers for member in members),
        members=tuple(member.name for member in members),
        partition=members[0].partition,
    )


@dataclass(frozen=True)
class _Flow:
    """What one tuple at an entry of a unit leads to, on average."""

    seconds: float
    outputs: float
    output_bytes: float


def _flow(
    members: Sequence[OperatorSnapshot],
    entry: OperatorSnapshot,
    by: InputSnapshot,
    unit: int,
    unit_of: Mapping[int, int],
) -> _Flow:
    reach: dict[int, float] = {}
    seconds = outputs = size = 0.0
    for member in members:
        tuples = reach.get(member.id, 0.0)
        made = tuples * member.selectivity
        seconds += tuples * member.cost_seconds
        if member is entry:
            made += by.selectivity
            seconds += by.cost_seconds
        for reader in member.downstream:
            if unit_of[reader] == unit:
                reach[reader] = reach.get(reader, 0.0) + made
        if member.is_output or any(unit_of[reader] != unit for reader in member.downstream):
            outputs += made
            size += made * member.output_bytes
    return _Flow(seconds, outputs, size)


def _relabel(each: InputSnapshot, unit_of: Mapping[int, int]) -> InputSnapshot:
    source = each.source
    return replace(each, source=unit_of[source]) if isinstance(source, int) else each


def _outside(
    members: Sequence[OperatorSnapshot], unit: int, unit_of: Mapping[int, int]
) -> tuple[int, ...]:
    readers = [unit_of[reader] for member in members for reader in member.downstream]
    return tuple(dict.fromkeys(reader for reader in readers if reader != unit))


def _queries(members: Sequence[OperatorSnapshot]) -> tuple[WeightedQuery, ...]:
    return tuple(dict.fromkeys(query for member in members for query in member.queries))

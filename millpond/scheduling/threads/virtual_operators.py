"""Virtual operators (HMTS paper, section 3): what a placement of queues makes of a plan.

Operators joined by an edge without a queue hand tuples on directly and form one virtual operator
(VO). A placement is the set of edges (producer, reader) between operators that keep a queue;
streams always have one.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from millpond.scheduling.snapshot import OperatorSnapshot, PlanSnapshot

Edge: TypeAlias = tuple[int, int]
Placement: TypeAlias = frozenset[Edge]


def elementary(plan: PlanSnapshot) -> PlanSnapshot:
    """The plan of the elementary operators, whether or not some are fused now."""
    return plan.unfused or plan


def operator_edges(plan: PlanSnapshot) -> Placement:
    """Every edge from operator to operator: the placement that decouples all of them."""
    return frozenset((source, each.id) for each in plan.operators for source in each.upstream)


def stream_edges(plan: PlanSnapshot) -> frozenset[tuple[str, int]]:
    """Every edge from a stream to an operator."""
    return frozenset((stream, each.id) for each in plan.operators for stream in each.streams)


def virtual_operators(plan: PlanSnapshot, queues: Iterable[Edge]) -> dict[int, tuple[int, ...]]:
    """The members of each virtual operator, upstream first, by the smallest id among them."""
    direct = operator_edges(plan) - frozenset(queues)
    leader = {each.id: each.id for each in plan.operators}
    for producer, reader in direct:
        low, high = sorted((_lead(leader, producer), _lead(leader, reader)))
        leader[high] = low
    found: dict[int, list[int]] = {}
    for operator in plan.upstream_first:
        found.setdefault(_lead(leader, operator), []).append(operator)
    return {first: tuple(members) for first, members in sorted(found.items())}


def _lead(leader: dict[int, int], operator: int) -> int:
    while leader[operator] != operator:
        leader[operator] = leader[leader[operator]]
        operator = leader[operator]
    return operator


def is_placed(plan: PlanSnapshot, queues: Iterable[Edge]) -> bool:
    """Whether the operators of the plan are the virtual operators of this placement already."""
    whole = elementary(plan)
    wanted = {
        first: sorted(whole.by_id[member].name for member in members)
        for first, members in virtual_operators(whole, queues).items()
    }
    return wanted == {each.id: sorted(each.members or (each.name,)) for each in plan.operators}


def capacity(operators: Iterable[OperatorSnapshot]) -> float:
    """The capacity of a virtual operator in seconds: negative when it stalls its input.

    Section 5.1.2: c, the summed `cost_seconds`; d, the mean time between tuples, the reciprocal of
    the summed `tuples_per_second`; cap = d - c.
    """
    members = tuple(operators)
    cost_seconds = sum(each.cost_seconds for each in members)
    return capacity_of(cost_seconds, sum(each.tuples_per_second for each in members))


def capacity_of(cost_seconds: float, tuples_per_second: float) -> float:
    """d - c, from c and the reciprocal of d.

    >>> capacity_of(cost_seconds=0.25, tuples_per_second=2.0)
    0.25
    """
    return (1 / tuples_per_second if tuples_per_second > 0 else float("inf")) - cost_seconds


def capacities(plan: PlanSnapshot, queues: Iterable[Edge]) -> Mapping[int, float]:
    """The capacity of each virtual operator of a placement."""
    return {
        first: capacity(plan.by_id[member] for member in members)
        for first, members in virtual_operators(plan, queues).items()
    }


def without_cycles(plan: PlanSnapshot, queues: Iterable[Edge]) -> Placement:
    """The placement with virtual operators taken apart that read each other in a circle."""
    kept = frozenset(queues)
    groups = virtual_operators(plan, kept)
    leader = {member: first for first, members in groups.items() for member in members}
    crossing = {(leader[a], leader[b]) for a, b in kept & operator_edges(plan)}
    apart = {(a, b) for a, b in crossing if a != b}
    circular = set(groups) - _in_order(set(groups), apart)
    circular -= _in_order(circular, {(b, a) for a, b in apart})
    return kept | {edge for edge in operator_edges(plan) if leader[edge[1]] in circular}


def _in_order(nodes: set[int], edges: set[Edge]) -> set[int]:
    """The nodes that no circle leads to."""
    inner = [(a, b) for a, b in edges if a in nodes and b in nodes]
    pending = dict.fromkeys(nodes, 0)
    readers: dict[int, list[int]] = {node: [] for node in nodes}
    for producer, reader in inner:
        pending[reader] += 1
        readers[producer].append(reader)
    order = [node for node, count in pending.items() if count == 0]
    for node in order:
        for reader in readers[node]:
            pending[reader] -= 1
            if pending[reader] == 0:
                order.append(reader)
    return set(order)

"""Keeps only the columns somebody reads, so that synopses and queues stay narrow."""

from __future__ import annotations

from dataclasses import replace

from millpond.cql.algebra import (
    Aggregate,
    Filter,
    Join,
    Project,
    RangeWindow,
    RelationScan,
    RowsWindow,
    StreamScan,
)
from millpond.cql.node import Node
from millpond.planning.nodes import Arrivals, Combine
from millpond.planning.predicates import all_columns, columns_used, remap, rewrite_aggregate

Kept = dict[int, int]
"""Old position of each kept column → its new position."""


def push_down_projections(plan: Node) -> Node:
    """The plan with the same result, computed from as few columns as possible."""
    return _exactly(plan, list(range(len(plan.schema))))


def _exactly(node: Node, positions: list[int]) -> Node:
    """The node pruned and projected to exactly these columns, in this order."""
    pruned, kept = _prune(node, set(positions))
    wanted = [kept[position] for position in positions]
    if wanted == list(range(len(pruned.schema))):
        return pruned
    columns = all_columns(pruned)
    names = tuple(node.schema.names[position] for position in positions)
    return Project(pruned, tuple(columns[i] for i in wanted), names)


def _prune(node: Node, needed: set[int]) -> tuple[Node, Kept]:
    """The node with at least the needed columns, and where each of them went."""
    match node:
        case Project():
            return _prune_project(node, needed)
        case Filter():
            below, kept = _prune(node.input, needed | columns_used(node.predicate))
            return Filter(below, remap(node.predicate, kept)), kept
        case RangeWindow() | Arrivals() if _passes_on(node):
            below, kept = _prune(node.input, needed)
            return replace(node, input=below), kept
        case RowsWindow():
            return _prune_rows_window(node, needed)
        case Join():
            return _prune_join(node, needed)
        case Aggregate():
            return _prune_aggregate(node, needed)
        case Combine():
            order = sorted(needed)
            sides = _exactly(node.left, order), _exactly(node.right, order)
            return Combine(*sides, node.sign), {old: new for new, old in enumerate(order)}
        case _:
            return _keep_all(node)


def _passes_on(node: Node) -> bool:
    """Whether what arrives depends on tuples alone; a group's row arrives anew with any change."""
    if not isinstance(node, Arrivals):
        return True
    tuple_wise = (Arrivals, Filter, Project, RangeWindow, Join, Combine, StreamScan, RelationScan)
    return all(isinstance(part, tuple_wise) for part in node.walk())


def _keep_all(node: Node) -> tuple[Node, Kept]:
    inputs = tuple(push_down_projections(child) for child in node.inputs)
    kept = {position: position for position in range(len(node.schema))}
    return (node.with_inputs(inputs) if inputs else node), kept


def _prune_project(node: Project, needed: set[int]) -> tuple[Node, Kept]:
    order = sorted(needed)
    expressions = [node.expressions[position] for position in order]
    below, kept = _prune(node.input, set().union(*map(columns_used, expressions)))
    pruned = Project(
        below,
        tuple(remap(expression, kept) for expression in expressions),
        tuple(node.names[position] for position in order),
    )
    return pruned, {old: new for new, old in enumerate(order)}


def _prune_rows_window(node: RowsWindow, needed: set[int]) -> tuple[Node, Kept]:
    """Computed streams order equal times by all their columns, so only base streams are pruned."""
    if not _is_base(node.input):
        return _keep_all(node)
    order = sorted(needed | {column.position for column in node.partition})
    kept = {old: new for new, old in enumerate(order)}
    partition = tuple(replace(c, position=kept[c.position]) for c in node.partition)
    return replace(node, input=_exactly(node.input, order), partition=partition), kept


def _is_base(node: Node) -> bool:
    if isinstance(node, (Filter, Project)):
        return _is_base(node.input)
    return isinstance(node, StreamScan)


def _prune_join(node: Join, needed: set[int]) -> tuple[Node, Kept]:
    width = len(node.left.schema)
    needed = needed | columns_used(node.condition)
    left, left_kept = _prune(node.left, {p for p in needed if p < width})
    right, right_kept = _prune(node.right, {p - width for p in needed if p >= width})
    kept = left_kept | {old + width: new + len(left.schema) for old, new in right_kept.items()}
    condition = None if node.condition is None else remap(node.condition, kept)
    return Join(left, right, node.kind, condition), kept


def _prune_aggregate(node: Aggregate, needed: set[int]) -> tuple[Node, Kept]:
    """All keys stay: they make the groups. Aggregates go unless read."""
    n_keys = len(node.keys)
    read = [i for i in range(len(node.aggregates)) if n_keys + i in needed]
    read = read or list(range(len(node.aggregates)))[:1]
    aggregates = [node.aggregates[i] for i in read]
    used = [columns_used(key) for key in node.keys] + [columns_used(a.argument) for a in aggregates]
    below, kept = _prune(node.input, set().union(*used))
    pruned = Aggregate(
        below,
        tuple(remap(key, kept) for key in node.keys),
        tuple(rewrite_aggregate(a, lambda e: remap(e, kept)) for a in aggregates),
        (*node.names[:n_keys], *(node.names[n_keys + i] for i in read)),
    )
    positions = {key: key for key in range(n_keys)}
    return pruned, positions | {n_keys + old: n_keys + new for new, old in enumerate(read)}

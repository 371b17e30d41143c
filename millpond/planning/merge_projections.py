"""One projection where there were several; none where it changes nothing.

A projection that several readers share, above an operator, stays: it is computed once, with it.
"""

from collections import Counter

from millpond.cql.algebra import Project
from millpond.cql.expressions import Column
from millpond.cql.node import Node, inputs_first
from millpond.planning.predicates import all_columns, size, size_after, substitute
from millpond.planning.properties import is_fused

MOST_PARTS = 1_000
"""Projections are not merged if that would make them larger than this and than both together."""


def merge_projections(plan: Node) -> Node:
    """The plan without projections of projections and without those that only pass columns on."""
    order = list(dict.fromkeys(inputs_first(plan)))
    readers = Counter(below for node in order for below in node.inputs)
    merged: dict[Node, Node] = {}
    shared: set[Node] = set()
    for node in order:
        new = node.with_inputs(tuple(merged[below] for below in node.inputs))
        merged[node] = _merge(new, new.input in shared) if isinstance(new, Project) else new
        if readers[node] > 1 and not is_fused(node):
            shared.add(merged[node])
    result = merged[plan]
    if result.schema.names != plan.schema.names:
        return Project(result, all_columns(result), plan.schema.names)
    return result


def _merge(node: Project, is_shared: bool) -> Node:
    below = node.input
    if isinstance(below, Project) and not is_shared and _stays_small(node, below):
        expressions = tuple(substitute(e, below.expressions) for e in node.expressions)
        node = Project(below.input, expressions, node.names)
    positions = [e.position if isinstance(e, Column) else None for e in node.expressions]
    passes_on = positions == list(range(len(node.input.schema)))
    return node.input if passes_on else node


def _stays_small(node: Project, below: Project) -> bool:
    sizes = [size(e) for e in below.expressions]
    together = sum(map(size, node.expressions)) + sum(sizes)
    merged = sum(size_after(e, sizes) for e in node.expressions)
    return merged <= max(MOST_PARTS, together)

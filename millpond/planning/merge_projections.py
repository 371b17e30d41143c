"""One projection where there were several; none where it changes nothing."""

from __future__ import annotations

from millpond.cql.algebra import Project
from millpond.cql.expressions import Column
from millpond.cql.node import Node
from millpond.planning.predicates import rewrite_bottom_up, substitute


def merge_projections(plan: Node) -> Node:
    """The plan without projections of projections and without those that only pass columns on."""
    merged = rewrite_bottom_up(plan, _merge)
    if merged.schema.names != plan.schema.names:
        columns = tuple(Column(i, f.type, f.name) for i, f in enumerate(merged.schema.fields))
        return Project(merged, columns, plan.schema.names)
    return merged


def _merge(node: Node) -> Node:
    if not isinstance(node, Project):
        return node
    if isinstance(node.input, Project):
        below = node.input
        expressions = tuple(substitute(e, below.expressions) for e in node.expressions)
        return _merge(Project(below.input, expressions, node.names))
    positions = [e.position if isinstance(e, Column) else None for e in node.expressions]
    passes_on = positions == list(range(len(node.input.schema)))
    return node.input if passes_on else node

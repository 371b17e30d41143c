"""Plans as the fixtures print them: operators, the plans of subqueries, and the schema."""

from __future__ import annotations

from dataclasses import fields

from millpond.cql.expressions import walk
from millpond.cql.node import Node


def printed(plan: Node) -> str:
    """The whole plan and its schema."""
    return "\n".join([*lines(plan, 0), str(plan.schema)])


def lines(node: Node, depth: int) -> list[str]:
    """The plan below a node, subqueries before the inputs of the node that uses them."""
    found = ["  " * depth + node.label()]
    for subquery in subqueries(node):
        found += ["  " * (depth + 1) + "subquery", *lines(subquery, depth + 2)]
    for below in node.inputs:
        found += lines(below, depth + 1)
    return found


def subqueries(node: Node) -> list[Node]:
    """The plans inside the expressions of a node."""
    found = []
    for field in fields(node):
        value = getattr(node, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if hasattr(item, "type"):
                found += [e.subquery for e in walk(item) if hasattr(e, "subquery")]
    return found

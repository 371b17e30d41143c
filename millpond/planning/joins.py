"""Where the joins of a plan are that become operators."""

from collections.abc import Collection, Mapping

from millpond.cql.algebra import Filter, Join, Project
from millpond.cql.node import Node

Parents = Mapping[Node, Collection[Node]]


def parents_of(plan: Node) -> dict[Node, set[Node]]:
    """What reads each node of a plan in it."""
    found: dict[Node, set[Node]] = {}
    for node in dict.fromkeys(plan.walk()):
        for below in node.inputs:
            found.setdefault(below, set()).add(node)
    return found


def join_under(node: Node, parents: Parents) -> Join | None:
    """The join to which filters and projections lead straight down from a node, if nobody else
    reads it: they are computed with it."""
    while isinstance(node, Filter | Project):
        node = node.input
        if len(parents[node]) != 1:
            return None
    return node if isinstance(node, Join) else None

"""Gives each Rstream the windows and relations whose movement makes it speak.

An Rstream emits whenever one of its inputs moves. Later rewrites push selections below windows,
which would hide movements, so the windows are noted before any of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from millpond.cql.algebra import (
    Aggregate,
    Filter,
    Join,
    Project,
    RangeWindow,
    RelationScan,
    RowsWindow,
    Rstream,
)
from millpond.cql.expressions import (
    Exists,
    Expression,
    InSubquery,
    Quantified,
    ScalarSubquery,
    walk,
)
from millpond.cql.node import Node
from millpond.planning.nodes import Snapshots
from millpond.planning.predicates import rewrite_bottom_up


def name_movers(plan: Node) -> Node:
    """Replaces every Rstream by Snapshots with its movers."""
    return rewrite_bottom_up(plan, _name)


def _name(node: Node) -> Node:
    if not isinstance(node, Rstream):
        return node
    return Snapshots(node.input, tuple(dict.fromkeys(_movers(node.input))))


def _movers(node: Node) -> Iterator[Node]:
    if isinstance(node, (RangeWindow, RowsWindow, RelationScan)):
        yield node
    for below in (*node.inputs, *_subqueries(node)):
        yield from _movers(below)


def _subqueries(node: Node) -> Iterator[Node]:
    for expression in _expressions(node):
        for part in walk(expression):
            if isinstance(part, (Exists, InSubquery, Quantified, ScalarSubquery)):
                yield name_movers(part.subquery)


def _expressions(node: Node) -> Iterator[Expression]:
    match node:
        case Filter():
            yield node.predicate
        case Project():
            yield from node.expressions
        case Join() if node.condition is not None:
            yield node.condition
        case Aggregate():
            yield from node.keys
            yield from (a.argument for a in node.aggregates if a.argument is not None)

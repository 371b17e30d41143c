"""Gives each Rstream the windows and relations whose movement makes it speak.

An Rstream emits whenever one of its inputs moves. Later rewrites push selections below windows,
which would hide movements, so the windows are noted before any of them.
"""

from collections.abc import Iterator

from millpond.cql.algebra import (
    HopWindow,
    RangeWindow,
    RelationScan,
    RowsWindow,
    Rstream,
    SessionWindow,
    UntilWindow,
)
from millpond.cql.node import Node
from millpond.planning.nodes import Snapshots
from millpond.planning.predicates import bottom_up

_MOVERS = (RangeWindow, HopWindow, RowsWindow, SessionWindow, UntilWindow, RelationScan)


@bottom_up
def name_movers(node: Node) -> Node:
    """Replaces every Rstream by Snapshots with its movers."""
    if not isinstance(node, Rstream):
        return node
    return Snapshots(node.input, tuple(dict.fromkeys(_movers(node.input))))


def _movers(plan: Node) -> Iterator[Node]:
    for node in plan.walk_into_subqueries():
        if isinstance(node, _MOVERS):
            yield name_movers(node)

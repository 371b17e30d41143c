"""An Istream over a relation whose changes are net never reads a minus."""

from millpond.cql.algebra import Istream
from millpond.cql.node import Node
from millpond.planning.nodes import Arrivals
from millpond.planning.predicates import rewrite_bottom_up
from millpond.planning.properties import is_net


def drop_unread_minus(plan: Node) -> Node:
    """The plan with Istreams of net changes replaced by what enters."""
    return rewrite_bottom_up(plan, _rewrite)


def _rewrite(node: Node) -> Node:
    if isinstance(node, Istream) and is_net(node.input):
        return Arrivals(node.input)
    return node

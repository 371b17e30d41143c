"""An Istream over a relation whose changes are net never reads a minus."""

from millpond.cql.algebra import Istream
from millpond.cql.node import Node
from millpond.planning.nodes import Arrivals
from millpond.planning.predicates import bottom_up
from millpond.planning.properties import is_net


@bottom_up
def drop_unread_minus(node: Node) -> Node:
    """The plan with Istreams of net changes replaced by what enters."""
    if isinstance(node, Istream) and is_net(node.input):
        return Arrivals(node.input)
    return node

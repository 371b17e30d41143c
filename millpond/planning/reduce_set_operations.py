"""UNION in terms of signed sums and Distinct; EXCEPT and INTERSECT stay counting operators."""

from millpond.cql.algebra import Distinct, SetOperation
from millpond.cql.node import Node
from millpond.planning.nodes import Combine
from millpond.planning.predicates import bottom_up


@bottom_up
def reduce_set_operations(node: Node) -> Node:
    """The plan without UNION."""
    if isinstance(node, SetOperation) and node.operation == "union":
        both = Combine(node.left, node.right, 1)
        return both if node.all else Distinct(both)
    return node

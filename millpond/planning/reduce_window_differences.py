"""A window without a shorter one of the same stream in terms of a signed sum."""

from millpond.cql.algebra import Filter, Project, RangeWindow, SetOperation
from millpond.cql.node import Node
from millpond.planning.nodes import Combine
from millpond.planning.predicates import bottom_up


@bottom_up
def reduce_window_differences(node: Node) -> Node:
    """The plan without ``S [RANGE n] EXCEPT ALL S [RANGE m]``, m being at most n, also of the same
    columns and rows of both: all that the shorter window holds is in the longer one, so nothing has
    to be counted."""
    if isinstance(node, SetOperation) and node.operation == "except" and node.all:
        return Combine(node.left, node.right, -1) if _has(node.left, node.right) else node
    return node


def _has(whole: Node, part: Node) -> bool:
    """Whether all rows of one node are in another, as it is the same but for a shorter window."""
    match whole, part:
        case (Filter() | Project(), Filter() | Project()):
            is_same = whole.with_inputs(part.inputs) == part
            return is_same and _has(whole.inputs[0], part.inputs[0])
        case (RangeWindow(), RangeWindow()):
            is_of_one = whole.input == part.input and whole.slide_ticks == part.slide_ticks
            return is_of_one and _is_no_longer(part.length_ticks, whole.length_ticks)
    return False


def _is_no_longer(one: int | None, other: int | None) -> bool:
    return other is None or (one is not None and one <= other)

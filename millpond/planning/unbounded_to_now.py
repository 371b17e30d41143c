"""An Istream that can be passed on as it comes, and then needs no history.

Where nothing leaves while an equal row enters, Istream is what enters (``Arrivals``). If moreover
the rows come from one unbounded window through selections, projections and joins with static
relations, the window can forget each tuple at once: section 2.2 of the STREAM paper.
"""

from dataclasses import replace

from millpond.cql.algebra import Filter, Istream, Join, Project, RangeWindow, RelationScan
from millpond.cql.node import Node, follows_from_inputs
from millpond.planning.nodes import Arrivals, Combine
from millpond.planning.predicates import bottom_up
from millpond.planning.properties import is_monotone


@bottom_up
def unbounded_to_now(node: Node) -> Node:
    """The plan with stateless Istreams where the inputs allow it."""
    if isinstance(node, Istream) and is_monotone(node.input):
        return Arrivals(_forget(node.input) if _forgets(node.input) else node.input)
    return node


@follows_from_inputs
def _forgets(node: Node) -> bool:
    """Whether each row depends on one stream tuple and on static relations only."""
    match node:
        case RangeWindow():
            return True
        case Filter() | Project():
            return _forgets(node.input)
        case Combine():
            return _forgets(node.left) and _forgets(node.right)
        case Join():
            return (_forgets(node.left) and _is_static(node.right)) or (
                _is_static(node.left) and _forgets(node.right)
            )
        case _:
            return False


@follows_from_inputs
def _is_static(node: Node) -> bool:
    if isinstance(node, RangeWindow):
        return False
    if isinstance(node, RelationScan):
        return node.is_static
    return all(map(_is_static, node.inputs))


@follows_from_inputs
def _forget(node: Node) -> Node:
    if isinstance(node, RangeWindow):
        return replace(node, length_ticks=0)
    return node.with_inputs(tuple(map(_forget, node.inputs)))

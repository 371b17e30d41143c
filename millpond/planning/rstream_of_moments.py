"""An Rstream of what is there for one instant only is what comes: it needs no state and no movers.

Sound where every element of the relation lasts exactly one tick and comes from a NOW window, which
is a mover itself: the relation at an instant is then what starts there, the Rstream speaks at that
instant, and whatever else moves finds the relation empty or as it comes. So are NOW windows, their
selections and projections, signed sums of such relations, and joins of one with anything, for two
elements meet while both are there. It is not sound through DISTINCT or GROUP BY (nor the other set
operations, which count too): their elements last from one change of a row to the next, so a row of
two instants in succession starts once, and a group without keys is there without a tuple.
"""

from millpond.cql.algebra import Filter, Join, Project, RangeWindow
from millpond.cql.node import Node, follows_from_inputs
from millpond.planning.nodes import Combine, Moments, Snapshots
from millpond.planning.predicates import bottom_up


@bottom_up
def rstream_of_moments(node: Node) -> Node:
    """The plan with Rstreams of momentary relations replaced by what comes."""
    if isinstance(node, Snapshots) and is_momentary(node.input):
        return Moments(node.input)
    return node


@follows_from_inputs
def is_momentary(node: Node) -> bool:
    """Whether every element lasts one tick and comes with a tuple of a NOW window."""
    match node:
        case RangeWindow():
            return node.length_ticks == 0 and node.slide_ticks is None
        case Filter() | Project():
            return is_momentary(node.input)
        case Combine():
            return is_momentary(node.left) and is_momentary(node.right)
        case Join():
            return node.kind == "inner" and any(map(is_momentary, node.inputs))
        case _:
            return False

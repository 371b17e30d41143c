"""What can be said of a plan's output without running it."""

from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Filter,
    HopWindow,
    Join,
    Project,
    RangeWindow,
    RelationScan,
    Sample,
    SessionWindow,
    SetOperation,
    StreamScan,
    TimeFilter,
    WithTime,
)
from millpond.cql.expressions import Column
from millpond.cql.node import Node, follows_from_inputs
from millpond.planning.nodes import Combine, Match


@follows_from_inputs
def is_monotone(node: Node) -> bool:
    """Whether rows only ever enter: nothing ends and nothing is taken back."""
    match node:
        case RangeWindow():
            return node.length_ticks is None
        case Match() if node.window is not None:
            return False
        case RelationScan():
            return node.is_static
        case Combine():
            return node.sign > 0 and is_monotone(node.left) and is_monotone(node.right)
        case SetOperation():
            return node.operation == "union" and all(map(is_monotone, node.inputs))
        case Join():
            return node.kind in ("inner", "semi") and all(map(is_monotone, node.inputs))
        case Filter() | Project() | Distinct() | Match():
            return is_monotone(node.input)
        case _:
            return False


@follows_from_inputs
def never_retracts(node: Node) -> bool:
    """Whether every row that enters says when it leaves, so that no minus ever follows."""
    match node:
        case RangeWindow() | HopWindow():
            return True
        case SessionWindow():
            return node.told == "final"
        case Match() if node.window is not None:
            return True
        case RelationScan():
            return node.is_static
        case Combine():
            return node.sign > 0 and never_retracts(node.left) and never_retracts(node.right)
        case Join():
            return all(map(never_retracts, node.inputs))
        case Filter() | TimeFilter() | Project() | Match():
            return never_retracts(node.input)
        case Distinct():
            return is_monotone(node.input)
        case _:
            return False


@follows_from_inputs
def is_net(node: Node) -> bool:
    """Whether no instant both takes a row out and puts an equal one in."""
    match node:
        case Aggregate() | Distinct():
            return True
        case SetOperation():
            return not node.all  # a row whose count changes leaves and enters again
        case Filter() | TimeFilter():  # equal rows have the same bound
            return is_net(node.input)
        case Project():
            kept = {e.position for e in node.expressions if isinstance(e, Column)}
            return kept >= set(range(len(node.input.schema))) and is_net(node.input)
        case _:
            return is_monotone(node)


def is_fused(node: Node) -> bool:
    """Whether it is a part of whatever reads it, so that sharing it would save nothing.

    Selections and projections right above a join are computed with the join, once.
    """
    match node:
        case StreamScan() | RelationScan() | Sample() | Combine():
            return True
        case RangeWindow() | HopWindow() | WithTime():
            return True
        case Filter() | Project():
            return not _is_of_join(node)
        case _:
            return False


@follows_from_inputs
def _is_of_join(node: Node) -> bool:
    if isinstance(node, Filter | Project):
        return _is_of_join(node.input)
    return isinstance(node, Join)

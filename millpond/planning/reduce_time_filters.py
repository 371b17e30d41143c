"""Comparisons with the time in terms of one operator, which only ends rows early, and signed sums.

Rows that are there from a time on are all of them less those that are there until then. Where
nothing can be true the rest of a time filter goes, and time filters go below joins, to the rows
that they ask about, as selections do: at each instant they are one.
"""

from dataclasses import replace

from millpond.cql.algebra import (
    Filter,
    Join,
    Project,
    RangeWindow,
    SetOperation,
    TimeFilter,
    UntilWindow,
)
from millpond.cql.node import Node
from millpond.cql.truth import can_be_true
from millpond.planning.nodes import Combine
from millpond.planning.predicates import bottom_up, columns_used, shift, substitute

_LEFT = ("inner", "left", "semi", "anti")
_RIGHT = ("inner", "right")


@bottom_up
def reduce_time_filters(node: Node) -> Node:
    """The plan without rests of time filters, and without windows that say when elements leave."""
    match node:
        case UntilWindow():
            unbounded = RangeWindow(node.input, None)
            return TimeFilter(unbounded, node.until, node.units_a_tick)
        case SetOperation(operation="union", all=True):
            return _without_the_never_true(node)
        case TimeFilter():
            return _as_low_as_possible(node)
        case _:
            return node


def _without_the_never_true(node: SetOperation) -> Node:
    """A union of which a side has no rows is the other one."""
    if _is_empty(node.right):
        return node.left
    if _is_empty(node.left) and node.left.schema == node.right.schema:
        return node.right
    return node


def _is_empty(node: Node) -> bool:
    return isinstance(node, Filter) and not can_be_true(node.predicate)


def _as_low_as_possible(node: TimeFilter) -> Node:
    """A time filter below the selections, projections and joins that it can pass."""
    below = node.input
    match below:
        case Filter():
            moved = replace(node, input=below.input)
            return below.with_inputs((_as_low_as_possible(moved),))
        case Project():
            until = substitute(node.until, below.expressions)
            moved = replace(node, input=below.input, until=until)
            return below.with_inputs((_as_low_as_possible(moved),))
        case Join():
            return _past_join(node, below)
    return _of_ends(node)


def _past_join(node: TimeFilter, join: Join) -> Node:
    used, width = columns_used(node.until), len(join.left.schema)
    if used and max(used) < width and join.kind in _LEFT:
        left = _as_low_as_possible(replace(node, input=join.left))
        return join.with_inputs((left, join.right))
    if used and min(used) >= width and join.kind in _RIGHT:
        moved = replace(node, input=join.right, until=shift(node.until, -width))
        return join.with_inputs((join.left, _as_low_as_possible(moved)))
    return _of_ends(node)


def _of_ends(node: TimeFilter) -> Node:
    """A rest as a signed sum."""
    if not node.is_rest:
        return node
    return Combine(node.input, replace(node, is_rest=False), -1)

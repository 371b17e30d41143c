"""Filters as early as possible: through projections, joins and Range windows, never Rows ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    RangeWindow,
    SetOperation,
)
from millpond.cql.expressions import Expression
from millpond.cql.node import Node
from millpond.planning.nodes import Combine
from millpond.planning.predicates import (
    columns_used,
    conjoin,
    conjuncts,
    shift,
    substitute,
)

_LEFT_PUSHABLE = {"inner": True, "left": True, "semi": True, "anti": True}
_RIGHT_PUSHABLE = {"inner": True, "right": True}


def push_down_selections(plan: Node) -> Node:
    """The plan with every conjunct as close to its data as its meaning allows."""
    node = _absorb_join_condition(plan) if isinstance(plan, Join) else plan
    if isinstance(node, Filter):
        return _push(push_down_selections(node.input), conjuncts(node.predicate))
    return node.with_inputs(tuple(push_down_selections(child) for child in node.inputs))


def _push(node: Node, parts: list[Expression]) -> Node:
    """The node filtered by the conjuncts, which see its output columns."""
    if not parts:
        return node
    match node:
        case Filter():
            return _push(node.input, [*conjuncts(node.predicate), *parts])
        case Project():
            below = [substitute(part, node.expressions) for part in parts]
            return replace(node, input=_push(node.input, below))
        case RangeWindow() | Distinct():
            return replace(node, input=_push(node.input, parts))
        case Combine() | SetOperation():
            return replace(node, left=_push(node.left, parts), right=_push(node.right, parts))
        case Aggregate():
            return _push_through_aggregate(node, parts)
        case Join():
            return _push_through_join(node, parts)
        case _:
            return _filtered(node, parts)


def _filtered(node: Node, parts: Iterable[Expression]) -> Node:
    predicate = conjoin(parts)
    return node if predicate is None else Filter(node, predicate)


def _push_through_aggregate(node: Aggregate, parts: list[Expression]) -> Node:
    """Only what speaks of the group's key alone; a global aggregate has no key."""
    below: list[Expression] = []
    rest: list[Expression] = []
    for part in parts:
        used = columns_used(part)
        is_key = bool(used) and all(position < len(node.keys) for position in used)
        (below if is_key else rest).append(part)
    keyed = [substitute(part, node.keys) for part in below]
    return _filtered(replace(node, input=_push(node.input, keyed)), rest)


def _push_through_join(node: Join, parts: list[Expression]) -> Node:
    width = len(node.left.schema)
    left, right, both, stay = [], [], [], []
    for part in parts:
        used = columns_used(part)
        if used and max(used) < width and node.kind in _LEFT_PUSHABLE:
            left.append(part)
        elif used and min(used) >= width and node.kind in _RIGHT_PUSHABLE:
            right.append(shift(part, -width))
        elif node.kind == "inner":
            both.append(part)
        else:
            stay.append(part)
    condition = conjoin([*conjuncts(node.condition), *both])
    joined = Join(_push(node.left, left), _push(node.right, right), node.kind, condition)
    return _filtered(joined, stay)


_LEFT_CONDITION = ("inner", "right", "semi")
_RIGHT_CONDITION = ("inner", "left", "semi", "anti")


def _absorb_join_condition(node: Join) -> Node:
    """Moves one-sided conjuncts of ON into the side they speak of, where that changes nothing."""
    width = len(node.left.schema)
    left, right, stay = [], [], []
    for part in conjuncts(node.condition):
        used = columns_used(part)
        if used and max(used) < width and node.kind in _LEFT_CONDITION:
            left.append(part)
        elif used and min(used) >= width and node.kind in _RIGHT_CONDITION:
            right.append(shift(part, -width))
        else:
            stay.append(part)
    return Join(_filtered(node.left, left), _filtered(node.right, right), node.kind, conjoin(stay))

"""Outer, semi and anti joins in terms of inner joins, distinct keys and signed sums.

semi(L, R) = L joined with the distinct keys of R; anti = L - semi; an outer join is the inner join
plus the rows without partner, padded. Execution then knows one join, and it is bilinear.
"""

from millpond.cql.algebra import Distinct, Filter, Join, Project
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.node import Node
from millpond.planning.nodes import Combine
from millpond.planning.predicates import (
    all_columns,
    bottom_up,
    columns_used,
    conjoin,
    conjuncts,
    remap,
    shift,
)
from millpond.schema import Type


@bottom_up
def reduce_joins(node: Node) -> Node:
    """The plan with inner joins only."""
    if not isinstance(node, Join) or node.kind == "inner":
        return node
    if node.kind in ("semi", "anti"):
        partners = _semi(node.left, node.right, node.condition)
        return partners if node.kind == "semi" else Combine(node.left, partners, -1)
    inner: Node = Join(node.left, node.right, "inner", node.condition)
    if node.kind in ("left", "full"):
        inner = Combine(inner, _alone_left(node), 1)
    if node.kind in ("right", "full"):
        inner = Combine(inner, _alone_right(node), 1)
    return inner


def _alone_left(join: Join) -> Node:
    """The left rows without partner, padded with NULLs on the right."""
    alone = Combine(join.left, _semi(join.left, join.right, join.condition), -1)
    nulls = tuple(Literal(None, f.type) for f in join.right.schema.fields)
    return Project(alone, (*all_columns(alone), *nulls), join.schema.names)


def _alone_right(join: Join) -> Node:
    width, right_width = len(join.left.schema), len(join.right.schema)
    swap = {i: i + right_width for i in range(width)}
    swap |= {width + i: i for i in range(right_width)}
    condition = None if join.condition is None else remap(join.condition, swap)
    alone = Combine(join.right, _semi(join.right, join.left, condition), -1)
    nulls = tuple(Literal(None, f.type) for f in join.left.schema.fields)
    return Project(alone, (*nulls, *all_columns(alone)), join.schema.names)


def _semi(left: Node, right: Node, condition: Expression | None) -> Node:
    """The left rows with a partner, each as often as it is there."""
    width = len(left.schema)
    left_only, right_only, equal, rest = [], [], [], []
    for part in conjuncts(condition):
        used = columns_used(part)
        if used and max(used) < width:
            left_only.append(part)
        elif used and min(used) >= width:
            right_only.append(shift(part, -width))
        elif (sides := equality(part, width)) is not None:
            equal.append((*sides, part.function if isinstance(part, Call) else "="))
        else:
            rest.append(part)
    if rest:
        return _semi_by_pairs(left, right, condition)
    filtered_left, filtered_right = _filtered(left, left_only), _filtered(right, right_only)
    names = tuple(f"key{i}" for i in range(len(equal)))
    keys = Distinct(Project(filtered_right, tuple(shift(r, -width) for _, r, _ in equal), names))
    condition = conjoin(
        Call(function, (outer, Column(width + i, inner.type, names[i])), Type.BOOLEAN)
        for i, (outer, inner, function) in enumerate(equal)
    )
    joined = Join(filtered_left, keys, "inner", condition)
    return Project(joined, all_columns(joined)[:width], left.schema.names)


def _semi_by_pairs(left: Node, right: Node, condition: Expression | None) -> Node:
    """For other conditions: join, keep the distinct left rows, find them again by equality."""
    width = len(left.schema)
    pairs = Join(left, right, "inner", condition)
    matched = Distinct(Project(pairs, all_columns(left), left.schema.names))
    same = conjoin(
        Call("is_not_distinct", (column, Column(width + i, column.type)), Type.BOOLEAN)
        for i, column in enumerate(all_columns(left))
    )
    joined = Join(left, matched, "inner", same)
    return Project(joined, all_columns(joined)[:width], left.schema.names)


def equality(part: Expression, width: int) -> tuple[Expression, Expression] | None:
    """The left and right side of an equality between the two inputs of a join, or None."""
    if not (isinstance(part, Call) and part.function in ("=", "is_not_distinct")):
        return None
    first, second = part.arguments
    uses = columns_used(first), columns_used(second)
    if not (uses[0] and uses[1]):
        return None
    if max(uses[0]) < width <= min(uses[1]):
        return first, second
    if max(uses[1]) < width <= min(uses[0]):
        return second, first
    return None


def _filtered(node: Node, parts: list[Expression]) -> Node:
    predicate = conjoin(parts)
    return node if predicate is None else Filter(node, predicate)

"""Columns of the queries around a subquery: who names them, and changing what they name.

A level counts from the query in which a column is named, so one that is named in a subquery of a
subquery has a higher level than its query has there.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from millpond.cql.algebra import Filter, LateralJoin
from millpond.cql.expressions import (
    Exists,
    Expression,
    InSubquery,
    OuterColumn,
    Quantified,
    ScalarSubquery,
    children,
    with_children,
)
from millpond.cql.node import Node, follows_from_inputs, inputs_first

SUBQUERIES = (Exists, InSubquery, Quantified, ScalarSubquery)
Change = Callable[[OuterColumn], Expression]


def outer_columns(expression: Expression) -> Iterator[OuterColumn]:
    """What an expression names of the queries around its own, as it would name it itself.

    Subqueries in it are looked into: their columns of level 2 are of level 1 here.
    """
    if isinstance(expression, OuterColumn):
        yield expression
    if isinstance(expression, SUBQUERIES):
        further = (c for c in _outer_columns_of(expression.subquery) if c.level > 1)
        yield from (replace(c, level=c.level - 1) for c in further)
    for child in children(expression):
        yield from outer_columns(child)


def names_from_within(expression: Expression) -> bool:
    """Whether a subquery in an expression names a column of a query around the expression's own."""
    if isinstance(expression, SUBQUERIES):
        return any(c.level > 1 for c in _outer_columns_of(expression.subquery))
    return any(map(names_from_within, children(expression)))


@follows_from_inputs
def _outer_columns_of(plan: Node) -> tuple[OuterColumn, ...]:
    """What a plan names of the queries around it; only a WHERE does."""
    inputs = (plan.left,) if isinstance(plan, LateralJoin) else plan.inputs
    own = outer_columns(plan.predicate) if isinstance(plan, Filter) else ()
    below = (column for each in inputs for column in _outer_columns_of(each))
    return tuple(dict.fromkeys((*own, *below)))


def names_around(plan: Node) -> bool:
    """Whether a plan names columns of a query around it."""
    return bool(_outer_columns_of(plan))


def map_outer(expression: Expression, change: Change, level: int = 1) -> Expression:
    """The expression with ``change`` of what it names at a level, in its subqueries too."""
    if isinstance(expression, OuterColumn):
        return change(expression) if expression.level == level else expression
    new = with_children(
        expression, tuple(map_outer(child, change, level) for child in children(expression))
    )
    if isinstance(new, SUBQUERIES):
        return replace(new, subquery=_map_plan(new.subquery, change, level + 1))
    return new


def map_subqueries(expression: Expression, change: Change) -> Expression:
    """The expression with ``change`` of what its subqueries name of the query it stands in."""
    return map_outer(expression, change, 0)


def _map_plan(plan: Node, change: Change, level: int) -> Node:
    new: dict[int, Node] = {}
    for node in inputs_first(plan):
        inputs = tuple(new[id(below)] for below in node.inputs)
        if isinstance(node, LateralJoin):  # its right side names columns of its left one
            inputs = (inputs[0], node.right)
        over = node.with_inputs(inputs)
        if isinstance(over, Filter):
            over = replace(over, predicate=map_outer(over.predicate, change, level))
        new[id(node)] = over
    return new[id(plan)]

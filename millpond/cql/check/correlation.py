"""Subqueries that name columns of the directly enclosing query."""

from collections.abc import Callable
from dataclasses import replace

from millpond.cql.algebra import Filter
from millpond.cql.expressions import (
    Exists,
    Expression,
    InSubquery,
    OuterColumn,
    Quantified,
    ScalarSubquery,
    children,
    walk,
    with_children,
)
from millpond.cql.node import Node, inputs_first

ONLY_IN_WHERE = (
    "a column of the enclosing query can only be used in a subquery's WHERE: "
    "(SELECT max(x) FROM R WHERE R.k > S.a)"
)
NOT_IN_SET_OPERATIONS = (
    "a column of the enclosing query cannot be used inside UNION, EXCEPT or INTERSECT"
)
NOT_IN_SEVERAL_SETS = (
    "a column of the enclosing query cannot be used in a SELECT with several grouping sets; have "
    "the sets in a subquery in FROM, with the column that is compared as a key"
)
NOT_IN_RANKED = "a column of the enclosing query cannot be used in a SELECT with LIMIT or a rank"


def is_correlated(expression: Expression) -> bool:
    """Whether the expression names a column of the enclosing query."""
    return any(isinstance(part, OuterColumn) for part in walk(expression))


def map_subqueries(
    expression: Expression, change: Callable[[OuterColumn], OuterColumn]
) -> Expression:
    """The expression with ``change`` applied to the outer columns of its direct subqueries."""
    new = with_children(expression, tuple(map_subqueries(c, change) for c in children(expression)))
    if isinstance(new, (Exists, InSubquery, Quantified, ScalarSubquery)):
        return replace(new, subquery=_map_plan(new.subquery, change))
    return new


def _map_plan(plan: Node, change: Callable[[OuterColumn], OuterColumn]) -> Node:
    new: dict[int, Node] = {}
    for node in inputs_first(plan):
        over = node.with_inputs(tuple(new[id(below)] for below in node.inputs))
        if isinstance(over, Filter) and is_correlated(over.predicate):
            over = replace(over, predicate=_map_outer(over.predicate, change))
        new[id(node)] = over
    return new[id(plan)]


def _map_outer(expression: Expression, change: Callable[[OuterColumn], OuterColumn]) -> Expression:
    if isinstance(expression, OuterColumn):
        return change(expression)
    return with_children(expression, tuple(_map_outer(c, change) for c in children(expression)))

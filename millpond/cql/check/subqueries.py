"""Rules for subqueries in expressions: EXISTS, IN, ALL, ANY, and subqueries used as values."""

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from millpond.cql.algebra import Aggregate, Project
from millpond.cql.check.operators import compare
from millpond.cql.check.row_values import combined, row_parts, rows_equal
from millpond.cql.check.single_rows import has_one_row, is_aggregation
from millpond.cql.check.walk import Analyser, connect, negation
from millpond.cql.coercion import unify
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    Quantified,
    ScalarSubquery,
)
from millpond.cql.node import Node
from millpond.cql.text.places import StatementError, offset_of
from millpond.schema import Type

COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def _comparison(analyser: Analyser, node: exp.Binary) -> Expression:
    symbol = COMPARISONS[type(node)]
    if isinstance(node.this, (exp.Any, exp.All)):
        raise StatementError("ALL and ANY stand on the right of a comparison", node.this)
    if not isinstance(node.expression, (exp.Any, exp.All)):
        if (parts := row_parts(node.this)) and symbol in ("=", "<>"):
            equal = rows_equal(analyser, parts, node.expression)
            return equal if symbol == "=" else negation(equal)
        return compare(analyser, symbol, node.this, node.expression)
    word = "all" if isinstance(node.expression, exp.All) else "any"
    query = node.expression.this
    if not isinstance(query, exp.Query):
        raise StatementError(f"{word.upper()} is followed by a subquery", node.expression)
    value, plan = _against(analyser, node.this, query)
    return Quantified(value, symbol, word, plan)


def _in(analyser: Analyser, node: exp.In) -> Expression:
    query = node.args.get("query")
    if (parts := row_parts(node.this)) and query is not None:
        return _row_in_query(analyser, node, parts, query)
    if parts and node.expressions:
        return connect("or", [rows_equal(analyser, parts, each) for each in node.expressions])
    if query is not None:
        return InSubquery(*_against(analyser, node.this, query))
    if not node.expressions:
        raise StatementError("IN is followed by a list or a subquery in parentheses", node)
    parts = [node.this, *node.expressions]
    values = [analyser.expression(part) for part in parts]
    return Call("in", unify(values, list(map(offset_of, parts)), "cannot compare"), Type.BOOLEAN)


def _row_in_query(
    analyser: Analyser, node: exp.In, parts: list[exp.Expr], query: exp.Expr
) -> Expression:
    """(a, b) IN (subquery) as a condition: one text stands for the values of a row."""
    if not _is_condition(analyser, node):
        raise StatementError(
            "(a, b) IN (SELECT …) stands in WHERE or HAVING, joined by AND or OR; for NOT IN write "
            "NOT EXISTS (SELECT 1 FROM … WHERE x = a AND y = b)",
            node.this,
        )
    plan = _plan(analyser, query)
    if len(plan.schema) != len(parts):
        message = f"this subquery must have {len(parts)} columns, not {len(plan.schema)}"
        raise StatementError(message, query)
    left, right = list[Expression](), list[Expression]()
    for position, (part, field) in enumerate(zip(parts, plan.schema.fields, strict=True)):
        both = (analyser.expression(part), Column(position, field.type, field.name))
        value, column = unify(both, (offset_of(part), offset_of(query)), "cannot compare")
        left.append(value)
        right.append(column)
    names = (", ".join(plan.schema.names),)
    return InSubquery(combined(left), Project(plan, (combined(right),), names))


def _is_condition(analyser: Analyser, node: exp.Expr) -> bool:
    """Whether it does not matter if a condition is false or NULL."""
    above = node.parent
    while isinstance(above, (exp.Paren, exp.And, exp.Or)):
        above = above.parent
    is_top = above is None or isinstance(above, (exp.Where, exp.Having))
    return is_top and analyser.clause in ("WHERE", "HAVING")


def _exists(analyser: Analyser, node: exp.Exists) -> Expression:
    if not isinstance(node.this, exp.Query):
        raise StatementError("EXISTS is followed by a subquery in parentheses", node)
    return Exists(_plan(analyser, node.this))


def _scalar(analyser: Analyser, node: exp.Expr) -> Expression:
    plan = _one_column(analyser, node)
    if not is_aggregation(plan):
        if not has_one_row(plan, analyser.scope.key_of):
            raise StatementError(
                "a subquery used as a value must have one row at most: an aggregation without "
                "GROUP BY, (SELECT max(x) FROM R), ORDER BY … LIMIT 1, a window [ROWS 1], or a "
                "row of a relation by its PRIMARY KEY",
                node,
            )
        plan = _only(plan)
    return ScalarSubquery(plan, plan.schema[0].type)


def _only(plan: Node) -> Node:
    """The value of the only row; NULL if there is none."""
    field = plan.schema[0]
    largest = AggregateCall("max", Column(0, field.type, field.name), field.type)
    return Aggregate(plan, (), (largest,), (field.name,))


def _against(analyser: Analyser, value: exp.Expr, query: exp.Expr) -> tuple[Expression, Node]:
    """A value and the one column of a subquery, brought to the same type."""
    left, plan = analyser.expression(value), _one_column(analyser, query)
    name = plan.schema[0].name
    right: Expression = Column(0, plan.schema[0].type, name)
    left, cast_right = unify((left, right), (offset_of(value), offset_of(query)), "cannot compare")
    return left, plan if cast_right == right else Project(plan, (cast_right,), (name,))


def _one_column(analyser: Analyser, node: exp.Expr) -> Node:
    plan = _plan(analyser, node)
    if len(plan.schema) != 1:
        raise StatementError(f"this subquery must have one column, not {len(plan.schema)}", node)
    return plan


def _plan(analyser: Analyser, node: exp.Expr) -> Node:
    if analyser.subquery is None:
        raise StatementError(f"a subquery cannot stand in {analyser.clause}", node)
    return analyser.subquery(node, analyser.scope)


RULES: dict[type[exp.Expr], Callable[[Analyser, Any], Expression]] = {
    **dict.fromkeys(COMPARISONS, _comparison),
    exp.In: _in,
    exp.Exists: _exists,
    exp.Subquery: _scalar,
    exp.Select: _scalar,
}
"""One rule for each class of node."""

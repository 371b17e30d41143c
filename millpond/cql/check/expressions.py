"""Expressions of a query: the rules of all kinds put together."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from millpond.cql.check import calls, operators, subqueries
from millpond.cql.check.scope import Scope
from millpond.cql.check.walk import Analyser, SubqueryRule
from millpond.cql.expressions import AggregateCall, Expression

RULES: Mapping[type[exp.Expr], Callable[[Analyser, Any], Expression]] = {
    **operators.RULES,
    **calls.RULES,
    **subqueries.RULES,
}


def analyser(
    scope: Scope,
    clause: str,
    subquery: SubqueryRule | None = None,
    aggregates: list[AggregateCall] | None = None,
) -> Analyser:
    """An analyser of expressions that stand in ``clause`` and see ``scope``."""
    return Analyser(RULES, scope, clause, subquery, aggregates)


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate function stands in an expression, subqueries aside."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, exp.Anonymous) and calls.is_aggregate(part):
            return True
        if not isinstance(part, exp.Query):
            pending += part.iter_expressions()
    return False

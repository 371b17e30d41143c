"""Expressions of a query: the rules of all kinds put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from millpond.cql import analyse_calls, analyse_operators, analyse_subqueries
from millpond.cql.analyser import Analyser, SubqueryRule
from millpond.cql.expressions import AggregateCall, Expression
from millpond.cql.scope import Scope

RULES: Mapping[type[exp.Expr], Callable[[Analyser, Any], Expression]] = {
    **analyse_operators.RULES,
    **analyse_calls.RULES,
    **analyse_subqueries.RULES,
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
        if isinstance(part, exp.Anonymous) and analyse_calls.is_aggregate(part):
            return True
        if not isinstance(part, exp.Query):
            pending += part.iter_expressions()
    return False

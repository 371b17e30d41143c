"""Expressions of a query: the rules of all kinds put together."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sqlglot import exp

from millpond.cql.check import calls, operators, subqueries
from millpond.cql.check.scope import Scope
from millpond.cql.check.walk import Analyser, Clock, SubqueryRule
from millpond.cql.expressions import AggregateCall, Expression
from millpond.functions.user_function import UserFunction

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
    clock: Clock | None = None,
) -> Analyser:
    """An analyser of expressions that stand in ``clause`` and see ``scope``."""
    return Analyser(RULES, scope, clause, subquery, aggregates, clock=clock)


def has_aggregate(node: exp.Expr, own: Mapping[str, UserFunction]) -> bool:
    """Whether an aggregate function stands in an expression, subqueries aside."""
    return any(calls.is_aggregate(call, own) for call in _calls(node))


def has_aggregate_in_order(node: exp.Expr, own: Mapping[str, UserFunction]) -> bool:
    """Whether such a one does that goes by the order in which rows came."""
    return any(calls.is_in_order(call, own) for call in _calls(node))


def _calls(node: exp.Expr) -> Iterator[exp.Anonymous]:
    """The calls in an expression, subqueries aside."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, exp.Anonymous):
            yield part
        if not isinstance(part, exp.Query):
            pending += part.iter_expressions()

"""Rules for function calls, scalar and aggregate."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from millpond.cql import functions
from millpond.cql.aggregates import AGGREGATE_ALIASES, AGGREGATES, aggregate_call, fraction
from millpond.cql.check.moments import rounded_down, width_of
from millpond.cql.check.operators import arithmetic, case_of
from millpond.cql.check.row_values import combined
from millpond.cql.check.scope import NO_CLOCK, no_clock
from millpond.cql.check.walk import Analyser
from millpond.cql.coercion import cast, explicit_cast, typed
from millpond.cql.expressions import AggregateCall, Call, Column, Expression
from millpond.cql.text.from_clause import TO_STREAM
from millpond.cql.text.places import StatementError, offset_of
from millpond.schema import Type
from millpond.spelling import nearest

GROUPING = "grouping"
"""The function that tells which keys a grouping set lacks; it is gone when grouping is done."""

_WINDOW = "a window stands in FROM: FROM S {} GROUP BY window_start, window_end"
_WINDOW_COLUMN = "read it from a window in FROM: SELECT window_{} FROM S {}"
_TUMBLE, _HOP = "[TUMBLE 10 SECONDS]", "[HOP 10 SECONDS SLIDE 2 SECONDS]"
_OVER = "it needs an order: {}() OVER (ORDER BY x)"
INSTEAD = {
    "max_by": "read the rows of the largest: SELECT a FROM S WHERE x = (SELECT max(x) FROM S)",
    "min_by": "read the rows of the smallest: SELECT a FROM S WHERE x = (SELECT min(x) FROM S)",
    "first": "read the last elements with a window, [ROWS 1], or use min of the time",
    "last": "read the last elements with a window: [PARTITION BY a ROWS 1]",
    "try_cast": "CAST gives NULL for a string that cannot be read: CAST(s AS INT)",
    "date_format": "put it together: CAST(year(t) AS STRING) || '-' || …, or CAST(t AS STRING)",
    "regexp_like": "use LIKE: s LIKE 'a%'",
    "timestampdiff": "subtract: (b - a) / 1e6 is in seconds",
    "tumble": _WINDOW.format(_TUMBLE),
    "tumble_start": _WINDOW_COLUMN.format("start", _TUMBLE),
    "tumble_end": _WINDOW_COLUMN.format("end", _TUMBLE),
    "hop": _WINDOW.format(_HOP),
    "hop_start": _WINDOW_COLUMN.format("start", _HOP),
    "hop_end": _WINDOW_COLUMN.format("end", _HOP),
    **{name: _OVER.format(name.upper()) for name in ("row_number", "rank", "dense_rank")},
    "date_bin": "use a width: date_trunc('10 seconds', t)",
}
"""What to write instead of functions that other systems have."""

AGGREGATE_BASE = 1_000_000
"""Aggregates stand in an expression as columns from this position on, until grouping is done."""


def is_aggregate(node: exp.Anonymous) -> bool:
    """Whether a call names an aggregate function."""
    return node.name.lower() in AGGREGATES or node.name.lower() in AGGREGATE_ALIASES


def function(analyser: Analyser, node: exp.Anonymous) -> Expression:
    """A call of any function."""
    name = node.name.lower()
    if is_aggregate(node):
        return _aggregate(analyser, name, node)
    for argument in node.expressions:
        if isinstance(argument, exp.Distinct):
            raise StatementError(f"{name} does not take DISTINCT", argument)
    if name in _REWRITES:
        return _REWRITES[name](analyser, node)
    if name == "date_trunc" and _has_width(node):
        return _rounded_down(analyser, node)
    own = analyser.scope.functions.get(name)
    known = functions.FUNCTIONS.get(functions.ALIASES.get(name, name))
    called = _checked(known if own is None else functions.of_user(own), name, node, analyser)
    values = [analyser.expression(argument) for argument in node.expressions]
    offsets = list(map(offset_of, node.expressions))
    if own is not None:
        return functions.user_call(own, values, offsets)
    return functions.call(called.name, values, offsets)


def _checked(
    known: functions.Function | None, written: str, node: exp.Anonymous, analyser: Analyser
) -> functions.Function:
    """The function that a call names, if it can be called so."""
    if written.upper() in TO_STREAM:
        raise StatementError(f"{written} stands around a query, or after SELECT", node)
    if written.upper() in NO_CLOCK:
        raise no_clock(written, offset_of(node))
    if written.upper() in ("ALL", "ANY", "SOME", "EXISTS"):
        raise StatementError(f"{written.upper()} is followed by a subquery in parentheses", node)
    if known is None and written in INSTEAD:
        raise StatementError(f"{written} is not supported; {INSTEAD[written]}", node)
    if known is None:
        names = [*functions.FUNCTIONS, *functions.ALIASES, *functions.REWRITTEN, *AGGREGATES]
        hint = nearest(written, [*names, *analyser.scope.functions]) or ";"
        raise StatementError(f'no function "{written}"{hint} docs/cql.md lists the functions', node)
    if not known.accepts(len(node.expressions)):
        raise StatementError(
            f"{written} is called as {known.signature}, not with {_count(node.expressions)}", node
        )
    return known


def _count(arguments: list[exp.Expr]) -> str:
    return f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}"


def _exactly(node: exp.Anonymous, count: int) -> list[exp.Expr]:
    arguments: list[exp.Expr] = node.expressions
    if len(arguments) != count:
        form = functions.REWRITTEN[node.name.lower()].split(" is ")[0]
        raise StatementError(
            f"{node.name.lower()} is called as {form}, not with {_count(arguments)}", node
        )
    return arguments


def _mod(analyser: Analyser, node: exp.Anonymous) -> Expression:
    left, right = _exactly(node, 2)
    return arithmetic(analyser, exp.Mod(this=left.copy(), expression=right.copy()))


def _if(analyser: Analyser, node: exp.Anonymous) -> Expression:
    condition, *results = _exactly(node, 3)
    return case_of(analyser, [analyser.predicate(condition, "if")], results)


def _to_moment(analyser: Analyser, node: exp.Anonymous) -> Expression:
    (argument,) = _exactly(node, 1)
    to = Type.DATE if node.name.lower() == "to_date" else Type.TIMESTAMP
    return explicit_cast(analyser.expression(argument), to, offset_of(node))


def _has_width(node: exp.Anonymous) -> bool:
    """Whether date_trunc is told a width, such as '10 seconds', instead of a unit."""
    first = node.expressions[0] if len(node.expressions) == 2 else None
    return isinstance(first, exp.Literal) and first.is_string and any(map(str.isdigit, first.this))


def _rounded_down(analyser: Analyser, node: exp.Anonymous) -> Expression:
    width, moment = node.expressions
    found = analyser.expression(moment)
    if found.type not in (Type.TIMESTAMP, Type.DATE, Type.NULL):
        raise StatementError(f"date_trunc needs a TIMESTAMP, not {found.type}", moment)
    return rounded_down(cast(found, Type.TIMESTAMP), width_of(width.this, offset_of(width)))


def _grouping(analyser: Analyser, node: exp.Anonymous) -> Expression:
    if analyser.aggregates is None or analyser.inside_aggregate or not node.expressions:
        raise StatementError(
            "grouping(key, …) stands in the SELECT list or HAVING of a query with GROUP BY", node
        )
    return Call(GROUPING, tuple(map(analyser.expression, node.expressions)), Type.INT)


_REWRITES: dict[str, Callable[[Analyser, exp.Anonymous], Expression]] = {
    GROUPING: _grouping,
    "mod": _mod,
    "if": _if,
    "to_date": _to_moment,
    "to_timestamp": _to_moment,
}


def _aggregate(analyser: Analyser, written: str, node: exp.Anonymous) -> Expression:
    """An aggregate becomes a column of the grouped row."""
    if analyser.inside_aggregate:
        raise StatementError("an aggregate function cannot stand inside another", node)
    if analyser.aggregates is None:
        raise StatementError(
            f"{written} is an aggregate function; it cannot stand in {analyser.clause}", node
        )
    made = _aggregate_of(analyser, written, node)
    if made not in analyser.aggregates:
        analyser.aggregates.append(made)
    return Column(AGGREGATE_BASE + analyser.aggregates.index(made), made.type, str(made))


def _filtered(analyser: Analyser, node: exp.Filter) -> Expression:
    """aggregate(x) FILTER (WHERE c) is the aggregate of those x for which c is true."""
    call = node.this
    if not isinstance(call, exp.Anonymous) or not is_aggregate(call):
        raise StatementError("FILTER stands behind an aggregate function", node)
    inner = replace(analyser, inside_aggregate=True, subquery=None, clause="FILTER", offsets={})
    inner.predicate(node.expression)
    wanted = call.copy()
    first = wanted.expressions[0] if wanted.expressions else exp.Null()
    distinct = first.expressions if isinstance(first, exp.Distinct) else None
    operands = wanted.expressions if distinct is None else distinct
    if not operands:
        return function(analyser, call)
    value = exp.true() if _counts_rows(call) else operands[0].copy()
    branch = exp.If(this=node.expression.copy(), true=value)
    operands[0] = exp.Case(ifs=[branch]).update_positions(call)
    arguments = operands if distinct is None else [exp.Distinct(expressions=operands)]
    wanted.set("expressions", arguments)
    return function(analyser, wanted)


def _counts_rows(node: exp.Anonymous) -> bool:
    """Whether a call is count(*)."""
    arguments = node.expressions
    is_star = len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    return is_star and node.name.lower() == "count"


def _aggregate_of(analyser: Analyser, written: str, node: exp.Anonymous) -> AggregateCall:
    name = AGGREGATE_ALIASES.get(written, written)
    arguments: list[exp.Expr] = node.expressions
    if _counts_rows(node):
        return AggregateCall("count", None, Type.BIGINT)
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    operands = [*arguments[0].expressions, *arguments[1:]] if distinct else arguments
    wanted, parameter = 1, 0.5 if written == "median" else None
    if written == "percentile" and len(operands) == 2:
        wanted = 2
        parameter = fraction(analyser.expression(operands[1]), offset_of(operands[1]))
    combines = name == "count" and distinct and len(operands) > 1
    if not combines and (len(operands) != wanted or (name == "percentile" and parameter is None)):
        form = "percentile(x, fraction)" if written == "percentile" else f"{written}(x)"
        raise StatementError(f"{written} is called as {form}", node)
    inner = replace(
        analyser, inside_aggregate=True, subquery=None, clause="an aggregate function", offsets={}
    )
    if combines:
        values = [typed(inner.expression(operand)) for operand in operands]
        return aggregate_call(name, combined(values), distinct, None, offset_of(operands[0]))
    value = inner.expression(operands[0])
    return aggregate_call(name, value, distinct, parameter, offset_of(operands[0]))


RULES: dict[type[exp.Expr], Callable[[Analyser, Any], Expression]] = {
    exp.Anonymous: function,
    exp.Filter: _filtered,
}
"""All functions parse as one class of node."""

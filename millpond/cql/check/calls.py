"""Rules for function calls, scalar and aggregate."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from millpond.cql import functions
from millpond.cql.aggregates import (
    AGGREGATE_ALIASES,
    AGGREGATES,
    BY,
    IN_ORDER,
    aggregate_call,
    call_in_order,
    fraction,
    separator,
    user_aggregate,
)
from millpond.cql.check.clock import CLOCKS, clock
from millpond.cql.check.date_formats import formatted
from millpond.cql.check.moments import HOUR_MICROSECONDS, rounded_down, width_of
from millpond.cql.check.nested import made_struct
from millpond.cql.check.operators import CAST_IN_ZONES, arithmetic, case_of, zoned_value
from millpond.cql.check.row_values import combined, row_parts
from millpond.cql.check.scope import TSTAMP
from millpond.cql.check.walk import Analyser
from millpond.cql.coercion import cast, explicit_cast, typed
from millpond.cql.expressions import AggregateCall, Call, Column, Expression, Literal
from millpond.cql.text.elsewhere import NUMBERED
from millpond.cql.text.from_clause import TO_STREAM
from millpond.cql.text.places import StatementError, offset_of
from millpond.cql.zones import in_zone, instant_of, local_time
from millpond.functions.user_function import UserFunction
from millpond.schema import Type
from millpond.spelling import nearest
from millpond.time_zones import UTC

GROUPING = "grouping"
"""The function that tells which keys a grouping set lacks; it is gone when grouping is done."""

_WINDOW = "a window stands in FROM: FROM S {} GROUP BY window_start, window_end"
_WINDOW_COLUMN = "read it from a window in FROM: SELECT window_{} FROM S {}"
_TUMBLE, _HOP = "[TUMBLE 10 SECONDS]", "[HOP 10 SECONDS SLIDE 2 SECONDS]"
_SESSION = "[SESSION 10 MINUTES PARTITION BY a]"
_OVER = "it needs an order: {}() OVER (ORDER BY x)"
_ELEMENTS = (
    "ask for elements by their place, a[1], and whether one is there, array_contains(a, x), or "
    "push a tuple for each element"
)
_FIRST = "first(x) is the first value that came; in order first_value(x) OVER (ORDER BY y)"
_LAST = "last(x) is the last value that came; in order last_value(x) OVER (ORDER BY y)"
_BY_CHANCE = "answers do not depend on chance; of a part of a stream SAMPLE(10) is the same always"
_OF_MATCHES = "a match is one row: say what you need of each variable, count(A.*), LAST(B.x)"
INSTEAD = {
    "timestampdiff": "subtract: (b - a) / 1e6 is in seconds",
    "tumble": _WINDOW.format(_TUMBLE),
    "tumble_start": _WINDOW_COLUMN.format("start", _TUMBLE),
    "tumble_end": _WINDOW_COLUMN.format("end", _TUMBLE),
    "hop": _WINDOW.format(_HOP),
    "hop_start": _WINDOW_COLUMN.format("start", _HOP),
    "hop_end": _WINDOW_COLUMN.format("end", _HOP),
    "session": _WINDOW.format(_SESSION),
    "session_start": _WINDOW_COLUMN.format("start", _SESSION),
    "session_end": _WINDOW_COLUMN.format("end", _SESSION),
    **{name: _OVER.format(name.upper()) for name in ("row_number", "rank", "dense_rank")},
    "date_bin": "use a width: date_trunc('10 seconds', t)",
    "unnest": _ELEMENTS,
    "explode": _ELEMENTS,
    "element_at": "write a[1]",
    "array": "write ARRAY[1, 2]",
    "map": "write MAP['a', 1, 'b', 2]",
    "map_from_arrays": "write MAP['a', 1, 'b', 2]",
    "map_contains_key": "m['a'] is NULL where there is none; array_contains(map_keys(m), 'a')",
    "row": "write STRUCT(1 AS a, 'x' AS b)",
    "collect_list": "array_agg(x) does so, in order of time and arrival",
    "listagg": "string_agg(x, ', ') does so, in order of time and arrival",
    "group_concat": "string_agg(x, ', ') does so, in order of time and arrival",
    **dict.fromkeys(("first_value", "earliest_by_offset"), _FIRST),
    **dict.fromkeys(("last_value", "latest_by_offset"), _LAST),
    **dict.fromkeys(("count_if", "countif"), "write count(*) FILTER (WHERE x)"),
    "approx_percentile": "percentile(x, 0.9) is exact",
    "any_value": "min(x) takes the same one whatever the order of rows; first(x) the first",
    "bool_and": "count rows: count(*) FILTER (WHERE NOT (x)) = 0",
    "every": "count rows: count(*) FILTER (WHERE NOT (x)) = 0",
    "bool_or": "count rows: count(*) FILTER (WHERE x) > 0",
    "stddev_pop": "stddev is that of a sample; of all: stddev(x) * sqrt((count(x) - 1) / count(x))",
    "var_pop": "variance is that of a sample; of all: variance(x) * (count(x) - 1) / count(x)",
    "decode": "write a CASE: CASE x WHEN 1 THEN 'a' ELSE 'b' END",
    "nvl2": "write a CASE: CASE WHEN x IS NULL THEN b ELSE a END",
    "isnull": "write x IS NULL",
    "to_char": "date_format(t, 'yyyy-MM-dd HH:mm') writes a time, CAST(x AS STRING) the rest",
    "date_part": "write EXTRACT(HOUR FROM t), or hour(t)",
    **dict.fromkeys(("dateadd", "timestampadd"), "add a length: t + INTERVAL '5' MINUTE"),
    "age": "subtract: (b - a) / 1e6 is in seconds",
    "concat_ws": "write a || ', ' || b",
    "log": "ln(x) is the natural logarithm, log10(x) that to base 10",
    "log2": "write ln(x) / ln(2)",
    **dict.fromkeys(("trunc", "truncate"), "write CAST(x AS BIGINT), which cuts the fraction off"),
    "position": "write strpos(s, 'a')",
    **dict.fromkeys(("random", "rand", "uuid"), _BY_CHANCE),
    **dict.fromkeys(("classifier", "match_number"), _OF_MATCHES),
    "proctime": "a stream without TIMESTAMP BY has the time at which tuples come",
    **NUMBERED,
}
"""What to write instead of functions that other systems have."""

AGGREGATE_BASE = 1_000_000
"""Aggregates stand in an expression as columns from this position on, until grouping is done."""


def is_aggregate(node: exp.Anonymous, own: Mapping[str, UserFunction]) -> bool:
    """Whether a call names an aggregate function, maybe one of the user's own functions."""
    name = node.name.lower()
    known = own.get(name)
    is_own = known is not None and known.is_aggregate
    return name in AGGREGATES or name in AGGREGATE_ALIASES or is_own


def is_in_order(node: exp.Anonymous, own: Mapping[str, UserFunction]) -> bool:
    """Whether a call names an aggregate function that goes by the order in which rows came."""
    name = AGGREGATE_ALIASES.get(node.name.lower(), node.name.lower())
    return name in IN_ORDER or (is_aggregate(node, own) and name not in AGGREGATES)


def function(analyser: Analyser, node: exp.Anonymous) -> Expression:
    """A call of any function."""
    name = node.name.lower()
    if is_aggregate(node, analyser.scope.functions):
        return _aggregate(analyser, name, node)
    for argument in node.expressions:
        if isinstance(argument, exp.Distinct):
            raise StatementError(f"{name} does not take DISTINCT", argument)
    if name in _REWRITES:
        return _REWRITES[name](analyser, node)
    if name.upper() in CLOCKS and not node.expressions and name not in analyser.scope.functions:
        return clock(analyser, name, offset_of(node))
    if name == "date_trunc" and _has_width(node):
        return _rounded_down(analyser, node)
    own = analyser.scope.functions.get(name)
    known = functions.FUNCTIONS.get(functions.ALIASES.get(name, name))
    called = _checked(known if own is None else functions.of_user(own), name, node, analyser)
    offsets = list(map(offset_of, node.expressions))
    if own is None and called.name in functions.IN_ZONES:
        return _of_calendar(analyser, called, node.expressions, offsets)
    values = [analyser.expression(argument) for argument in node.expressions]
    if own is not None:
        return functions.user_call(own, values, offsets)
    return functions.call(called.name, values, offsets)


def _of_calendar(
    analyser: Analyser,
    called: functions.Function,
    nodes: list[exp.Expr],
    offsets: Sequence[int | None],
) -> Expression:
    """A function that reads the calendar of an instant, its last argument."""
    *others, last = nodes
    values = [analyser.expression(each) for each in others]
    moment, zone = zoned_value(analyser, last)
    with in_zone(zone):
        return functions.of_calendar(functions.call(called.name, [*values, moment], offsets))


def _checked(
    known: functions.Function | None, written: str, node: exp.Anonymous, analyser: Analyser
) -> functions.Function:
    """The function that a call names, if it can be called so."""
    if written.upper() in TO_STREAM:
        raise StatementError(f"{written} stands around a query, or after SELECT", node)
    if written.upper() in ("ANY", "SOME"):
        raise StatementError(
            f"{written.upper()} is followed by a subquery in parentheses; whether an ARRAY has a "
            "value says array_contains(a, x)",
            node,
        )
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


def _pi(analyser: Analyser, node: exp.Anonymous) -> Expression:
    _exactly(node, 0)
    return Literal(math.pi, Type.DOUBLE)


def _sha2(analyser: Analyser, node: exp.Anonymous) -> Expression:
    text, bits = _exactly(node, 2)
    name = {"0": "sha256", "256": "sha256", "512": "sha512"}.get(bits.name)
    if name is None:
        raise StatementError("sha2 has 256 or 512 bits: sha2(s, 256)", bits)
    return functions.call(name, [analyser.expression(text)], [offset_of(text)])


def _mod(analyser: Analyser, node: exp.Anonymous) -> Expression:
    left, right = _exactly(node, 2)
    return arithmetic(analyser, exp.Mod(this=left.copy(), expression=right.copy()))


def _if(analyser: Analyser, node: exp.Anonymous) -> Expression:
    condition, *results = _exactly(node, 3)
    return case_of(analyser, [analyser.predicate(condition, "if")], results)


def _to_moment(analyser: Analyser, node: exp.Anonymous) -> Expression:
    (argument,) = _exactly(node, 1)
    to = Type.DATE if node.name.lower() == "to_date" else Type.TIMESTAMP
    value, zone = zoned_value(analyser, argument, *CAST_IN_ZONES)
    with in_zone(zone):
        return explicit_cast(value, to, offset_of(node))


def _has_width(node: exp.Anonymous) -> bool:
    """Whether date_trunc is told a width, such as '10 seconds', instead of a unit."""
    first = node.expressions[0] if len(node.expressions) == 2 else None
    return isinstance(first, exp.Literal) and first.is_string and any(map(str.isdigit, first.this))


def _rounded_down(analyser: Analyser, node: exp.Anonymous) -> Expression:
    width, moment = node.expressions
    found, zone = zoned_value(analyser, moment)
    if found.type not in (Type.TIMESTAMP, Type.DATE, Type.NULL):
        raise StatementError(f"date_trunc needs a TIMESTAMP, not {found.type}", moment)
    size = width_of(width.this, offset_of(width))
    with in_zone(zone):
        if zone != UTC and size > HOUR_MICROSECONDS:
            raise StatementError(
                f"widths of more than an hour go by UTC, and days of {zone} have 23 to 25 hours: "
                "write date_trunc('day', …), or … AT TIME ZONE 'UTC'",
                width,
            )
        return rounded_down(cast(instant_of(found), Type.TIMESTAMP), size)


def _formatted(analyser: Analyser, node: exp.Anonymous) -> Expression:
    moment, pattern = _exactly(node, 2)
    found, zone = zoned_value(analyser, moment)
    if found.type not in (Type.TIMESTAMP, Type.DATE, Type.NULL):
        raise StatementError(f"date_format needs a TIMESTAMP or DATE, not {found.type}", moment)
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise StatementError("the pattern of date_format is written out: 'yyyy-MM-dd'", pattern)
    with in_zone(zone):
        shown = local_time(found) if found.type is Type.TIMESTAMP else found
    return formatted(cast(shown, Type.TIMESTAMP), str(pattern.this), offset_of(pattern))


def _time_of_element(analyser: Analyser, node: exp.Anonymous) -> Expression:
    (source,) = _exactly(node, 1)
    if not isinstance(source, exp.Column) or source.table:
        raise StatementError("tstamp takes the name of a stream in FROM: tstamp(S)", node)
    return analyser.scope.resolve(source.name, TSTAMP, offset_of(source))


def _named_struct(analyser: Analyser, node: exp.Anonymous) -> Expression:
    names, values = node.expressions[::2], node.expressions[1::2]
    for name in names:
        if not isinstance(name, exp.Literal) or not name.is_string:
            raise StatementError("a name of named_struct is a text: named_struct('a', 1)", name)
    if not names or len(names) != len(values):
        raise StatementError(
            "named_struct has a value behind each name: named_struct('a', 1)", node
        )
    named = [(str(name.this), value) for name, value in zip(names, values, strict=True)]
    return made_struct(analyser, named, node)


def _grouping(analyser: Analyser, node: exp.Anonymous) -> Expression:
    if analyser.aggregates is None or analyser.inside_aggregate or not node.expressions:
        raise StatementError(
            "grouping(key, …) stands in the SELECT list or HAVING of a query with GROUP BY", node
        )
    return Call(GROUPING, tuple(map(analyser.expression, node.expressions)), Type.INT)


_REWRITES: dict[str, Callable[[Analyser, exp.Anonymous], Expression]] = {
    GROUPING: _grouping,
    "mod": _mod,
    "named_struct": _named_struct,
    "sha2": _sha2,
    "pi": _pi,
    "if": _if,
    "to_date": _to_moment,
    "to_timestamp": _to_moment,
    "date_format": _formatted,
    "tstamp": _time_of_element,
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
    if not isinstance(call, exp.Anonymous) or not is_aggregate(call, analyser.scope.functions):
        raise StatementError("FILTER stands behind an aggregate function", node)
    inner = _inside(analyser, "FILTER")
    inner.predicate(node.expression)
    wanted = call.copy()
    first = wanted.expressions[0] if wanted.expressions else exp.Null()
    distinct = first.expressions if isinstance(first, exp.Distinct) else None
    operands = wanted.expressions if distinct is None else distinct
    if not operands:
        return function(analyser, call)
    place = 1 if _goes_by_another(call) and len(operands) == 2 else 0
    value = exp.true() if _counts_rows(call) else operands[place].copy()
    branch = exp.If(this=node.expression.copy(), true=value)
    operands[place] = exp.Case(ifs=[branch]).update_positions(call)
    arguments = operands if distinct is None else [exp.Distinct(expressions=operands)]
    wanted.set("expressions", arguments)
    return function(analyser, wanted)


def _inside(analyser: Analyser, clause: str) -> Analyser:
    """The analyser of what stands inside an aggregate function, or behind it."""
    plain = replace(analyser, subquery=None, clock=None, offsets={})
    return replace(plain, inside_aggregate=True, clause=clause)


def _goes_by_another(node: exp.Anonymous) -> bool:
    """Whether a call is max_by or min_by: rows whose second argument is NULL do not count."""
    return AGGREGATE_ALIASES.get(node.name.lower(), node.name.lower()) in BY


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
    operands = [*_distinct_values(arguments[0]), *arguments[1:]] if distinct else arguments
    inner = _inside(analyser, "an aggregate function")
    if is_in_order(node, analyser.scope.functions):
        if distinct:
            raise StatementError(f"{written} does not take DISTINCT", node)
        return _in_order(inner, name, operands, node)
    wanted, parameter = 1, 0.5 if written == "median" else None
    if written == "percentile" and len(operands) == 2:
        wanted = 2
        parameter = fraction(analyser.expression(operands[1]), offset_of(operands[1]))
    combines = name == "count" and distinct and len(operands) > 1
    if not combines and (len(operands) != wanted or (name == "percentile" and parameter is None)):
        form = AGGREGATES[name].called if written == name else f"{written}(x)"
        raise StatementError(f"{written} is called as {form}", node)
    if combines:
        values = [typed(inner.expression(operand)) for operand in operands]
        return aggregate_call(name, combined(values), distinct, None, offset_of(operands[0]))
    value = inner.expression(operands[0])
    return aggregate_call(name, value, distinct, parameter, offset_of(operands[0]))


def _distinct_values(node: exp.Expr) -> list[exp.Expr]:
    """What stands behind DISTINCT: values, also as one row, (a, b)."""
    values: list[exp.Expr] = node.expressions
    return (row_parts(values[0]) if len(values) == 1 else []) or values


def _in_order(
    inner: Analyser, name: str, operands: list[exp.Expr], node: exp.Anonymous
) -> AggregateCall:
    """An aggregate that goes by the order in which rows came, if others do not tell them apart."""
    own, arrival = inner.scope.functions.get(name), inner.scope.arrival
    if own is not None:
        _checked(functions.of_user(own), name, node, inner)
        values = [inner.expression(operand) for operand in operands]
        made = functions.user_call(own, values, list(map(offset_of, operands)))
        return replace(user_aggregate(own, made.arguments, arrival), offset=offset_of(node))
    if len(operands) != (1 if name in ("first", "last", "array_agg") else 2) or _is_star(
        operands[0]
    ):
        raise StatementError(f"{node.name.lower()} is called as {AGGREGATES[name].called}", node)
    offset = offset_of(operands[0])
    values, between = [inner.expression(each) for each in operands], None
    if name == "string_agg":
        between = separator(values.pop(), offset_of(operands[1]))
    return call_in_order(name, values, between, arrival, offset)


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star)


RULES: dict[type[exp.Expr], Callable[[Analyser, Any], Expression]] = {
    exp.Anonymous: function,
    exp.Filter: _filtered,
}
"""All functions parse as one class of node."""

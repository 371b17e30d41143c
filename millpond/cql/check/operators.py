"""Rules for constants, columns and operators."""

import math
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from millpond.cql import decimals, functions
from millpond.cql.check import nested
from millpond.cql.check.clock import clock, names_clock
from millpond.cql.check.moments import MOMENTS, of_moments
from millpond.cql.check.walk import Analyser, connect, flatten, negation
from millpond.cql.coercion import (
    BIGINT_RANGE,
    arithmetic_type,
    binary_literal,
    cast,
    decimal_literal,
    exact_types,
    explicit_cast,
    literal_of,
    typed,
    unify,
)
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.text.constructors import MapOfEntries
from millpond.cql.text.dialect import DECIMAL_LITERAL
from millpond.cql.text.from_clause import IntervalLiteral
from millpond.cql.text.places import StatementError, offset_of
from millpond.cql.type_names import named_type
from millpond.cql.zones import in_zone, zone_in_force
from millpond.schema import Type
from millpond.time_zones import zone_named

ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


def _literal(analyser: Analyser, node: exp.Literal) -> Expression:
    if node.is_string:
        return Literal(node.this, Type.STRING)
    return number_literal(node.this, offset_of(node))


def _binary(analyser: Analyser, node: exp.HexString) -> Expression:
    return binary_literal(node.this, offset_of(node))


def number_literal(text: str, offset: int | None) -> Literal:
    """A number as written: INT, BIGINT or DOUBLE."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        whole = int(text)
        if not BIGINT_RANGE[0] <= whole <= BIGINT_RANGE[1]:
            raise StatementError(
                f"{text} is outside the range of BIGINT; write {text}.0 for a DOUBLE", offset
            )
        return literal_of(whole)
    try:
        value = float(text)
    except ValueError:
        raise StatementError(f"{text} is not a number", offset) from None
    if math.isinf(value):
        raise StatementError(f"{text} is outside the range of DOUBLE", offset)
    return Literal(value, Type.DOUBLE)


def _null(analyser: Analyser, node: exp.Null) -> Expression:
    return Literal(None, Type.NULL)


def _boolean(analyser: Analyser, node: exp.Boolean) -> Expression:
    return Literal(bool(node.this), Type.BOOLEAN)


def _interval(analyser: Analyser, node: IntervalLiteral) -> Expression:
    return Literal(int(node.this), Type.BIGINT)


def _star(analyser: Analyser, node: exp.Expr) -> Expression:
    raise StatementError("* stands alone in a SELECT list or in count(*)", node)


def _column(analyser: Analyser, node: exp.Column) -> Expression:
    offset = offset_of(node)
    if isinstance(node.this, exp.Star):
        return _star(analyser, node)
    if not isinstance(node.this, exp.Identifier):
        raise StatementError("a column is written as name or source.name", offset)
    if names_clock(node, analyser.scope):
        return clock(analyser, node.name, offset)
    if analyser.scope.means_struct(node.table):
        return nested.field_of(_resolved(analyser, None, node.table, offset), node.name, offset)
    return _resolved(analyser, node.table or None, node.name, offset)


def _resolved(analyser: Analyser, source: str | None, name: str, offset: int | None) -> Expression:
    found = analyser.scope.resolve(source, name, offset)
    if isinstance(found, Column):
        analyser.offsets.setdefault(found.position, offset)
    return found


def _paren(analyser: Analyser, node: exp.Paren) -> Expression:
    return analyser.expression(node.this)


def arithmetic(analyser: Analyser, node: exp.Binary) -> Expression:
    """+ - * / and %; a TIMESTAMP and an INTERVAL, and the difference of two TIMESTAMPs."""
    symbol = ARITHMETIC[type(node)]
    left, right = analyser.expression(node.this), analyser.expression(node.expression)
    if (moment := of_moments(node, symbol, left, right)) is not None:
        return moment
    _require_number(left, node.this, symbol)
    _require_number(right, node.expression, symbol)
    types = exact_types([left, right])
    if (types[0].is_decimal or types[1].is_decimal) and Type.DOUBLE not in types:
        return _of_decimals(symbol, left, right, types)
    to = Type.DOUBLE if symbol == "/" else arithmetic_type([left.type, right.type])
    return Call(symbol, (cast(left, to), cast(right, to)), to)


def _of_decimals(symbol: str, left: Expression, right: Expression, types: list[Type]) -> Expression:
    """Each operand keeps the digits it has; a whole number becomes a DECIMAL that holds it."""
    first, second = (
        Type.decimal(*decimals.digits_of(other if type_ is Type.NULL else type_))
        for type_, other in zip(types, reversed(types), strict=True)
    )
    to = decimals.result(symbol, first, second)
    return Call(symbol, (cast(left, first), cast(right, second)), to)


def _require_number(value: Expression, node: exp.Expr, symbol: str) -> None:
    if value.type in MOMENTS and symbol in "+-":
        raise StatementError(
            f"{symbol} of a {value.type} takes a length of time: {symbol} INTERVAL '5' MINUTE "
            "(datediff(a, b) gives the days between two DATEs)",
            node,
        )
    if not value.type.is_number and value.type is not Type.NULL:
        raise StatementError(f"{symbol} needs numbers, not {value.type}", node)


def _negate(analyser: Analyser, node: exp.Neg) -> Expression:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number_literal("-" + inner.this, offset_of(node))
    value = analyser.expression(inner)
    _require_number(value, inner, "-")
    to = arithmetic_type([value.type])
    return Call("neg", (cast(value, to),), to)


def _concat(analyser: Analyser, node: exp.DPipe) -> Expression:
    parts = list(flatten(node, exp.DPipe))
    values = [analyser.expression(part) for part in parts]
    return functions.call("concat", values, list(map(offset_of, parts)))


def compare(analyser: Analyser, symbol: str, left: exp.Expr, right: exp.Expr) -> Expression:
    """A comparison of two expressions, brought to one type."""
    sides = (analyser.expression(left), analyser.expression(right))
    return Call(
        symbol, unify(sides, (offset_of(left), offset_of(right)), "cannot compare"), Type.BOOLEAN
    )


def _null_safe_equal(analyser: Analyser, node: exp.Binary) -> Expression:
    return compare(analyser, "is_not_distinct", node.this, node.expression)


def _null_safe_unequal(analyser: Analyser, node: exp.Binary) -> Expression:
    return negation(compare(analyser, "is_not_distinct", node.this, node.expression))


def _connective(analyser: Analyser, node: exp.Connector) -> Expression:
    word = "and" if isinstance(node, exp.And) else "or"
    parts = flatten(node, type(node))
    return connect(word, [analyser.predicate(part, word.upper()) for part in parts])


def _not(analyser: Analyser, node: exp.Not) -> Expression:
    return negation(analyser.predicate(node.this, "NOT"))


def _is(analyser: Analyser, node: exp.Is) -> Expression:
    other = node.expression
    answer: Expression
    if isinstance(other, exp.Null):
        answer = Call("is_null", (typed(analyser.expression(node.this)),), Type.BOOLEAN)
    elif isinstance(other, exp.Boolean):
        operand = analyser.predicate(node.this, "IS TRUE or IS FALSE")
        truth = Literal(bool(other.this), Type.BOOLEAN)
        answer = Call("is_not_distinct", (operand, truth), Type.BOOLEAN)
    else:
        raise StatementError("IS is followed by [NOT] NULL, TRUE, FALSE or DISTINCT FROM", node)
    return negation(answer) if node.args.get("negate") else answer


def _between(analyser: Analyser, node: exp.Between) -> Expression:
    low = compare(analyser, ">=", node.this, node.args["low"])
    high = compare(analyser, "<=", node.this, node.args["high"])
    return connect("and", [low, high])


def _like(analyser: Analyser, node: exp.Binary, escape: Expression | None = None) -> Expression:
    operands = [_text(analyser, node.this), _text(analyser, node.expression)]
    if isinstance(node, exp.ILike):
        operands = [Call("lower", (operand,), Type.STRING) for operand in operands]
    arguments = tuple(operands) if escape is None else (*operands, escape)
    answer = Call("like", arguments, Type.BOOLEAN)
    return negation(answer) if node.args.get("negate") else answer


def _escape(analyser: Analyser, node: exp.Escape) -> Expression:
    mark = node.expression
    if not isinstance(node.this, (exp.Like, exp.ILike)):
        raise StatementError("ESCAPE belongs to LIKE", node)
    if not isinstance(mark, exp.Literal) or len(mark.this) != 1:
        raise StatementError("ESCAPE is followed by one character in quotes", node)
    return _like(analyser, node.this, Literal(mark.this, Type.STRING))


def _text(analyser: Analyser, node: exp.Expr) -> Expression:
    value = analyser.expression(node)
    if value.type not in (Type.STRING, Type.NULL):
        raise StatementError(f"LIKE needs a STRING, not {value.type}; CAST it", node)
    return cast(value, Type.STRING)


def _case(analyser: Analyser, node: exp.Case) -> Expression:
    conditions = []
    for branch in node.args["ifs"]:
        if node.this is not None:
            conditions.append(compare(analyser, "=", node.this, branch.this))
        else:
            conditions.append(analyser.predicate(branch.this, "WHEN"))
    results = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    return case_of(analyser, conditions, results + ([] if default is None else [default]))


def case_of(
    analyser: Analyser, conditions: list[Expression], results: list[exp.Expr]
) -> Expression:
    """CASE with these conditions; one more result than conditions is the ELSE."""
    values = unify(
        [analyser.expression(result) for result in results],
        list(map(offset_of, results)),
        "the branches of a CASE mix",
    )
    arguments: list[Expression] = []
    for condition, value in zip(conditions, values, strict=False):
        arguments += (condition, value)
    return Call("case", (*arguments, *values[len(conditions) :]), values[0].type)


def _cast(analyser: Analyser, node: exp.Cast) -> Expression:
    if node.args["to"].name == DECIMAL_LITERAL:
        return decimal_literal(node.this.this, offset_of(node.this))
    to = named_type(node.args["to"].name, offset_of(node.args["to"]))
    value, zone = zoned_value(analyser, node.this, *CAST_IN_ZONES)
    with in_zone(zone):
        return explicit_cast(value, to, offset_of(node))


CAST_IN_ZONES = (Type.DATE, Type.STRING)
"""What becomes an instant by the clocks of a zone."""


def zoned_value(analyser: Analyser, node: exp.Expr, *others: Type) -> tuple[Expression, str]:
    """An argument without AT TIME ZONE, and the zone that this names, or the one in force."""
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, exp.AtTimeZone):
        return analyser.expression(node), zone_in_force()
    value = analyser.expression(inner.this)
    if value.type not in (Type.TIMESTAMP, Type.NULL, *others):
        raise StatementError(f"AT TIME ZONE goes with a TIMESTAMP, not {value.type}", inner)
    zone = inner.args["zone"]
    try:
        return value, zone_named(zone.this)
    except ValueError as error:
        said = zone.this if isinstance(zone, exp.Literal) else "this"
        raise StatementError(f"'{said}' is not {error}", zone) from None


def _at_time_zone(analyser: Analyser, node: exp.AtTimeZone) -> Expression:
    raise StatementError(
        "an instant is the same in all time zones; AT TIME ZONE stands where its calendar is read: "
        "hour(ts AT TIME ZONE 'Asia/Tokyo'), date_trunc('day', …), date_format(…, 'HH:mm'), "
        "CAST(… AS DATE), CAST(… AS STRING)",
        node,
    )


RULES: dict[type[exp.Expr], Callable[[Analyser, Any], Expression]] = {
    exp.Literal: _literal,
    exp.HexString: _binary,
    exp.AtTimeZone: _at_time_zone,
    exp.Null: _null,
    exp.Boolean: _boolean,
    IntervalLiteral: _interval,
    exp.Star: _star,
    exp.Column: _column,
    exp.Paren: _paren,
    **dict.fromkeys(ARITHMETIC, arithmetic),
    exp.Neg: _negate,
    exp.DPipe: _concat,
    exp.NullSafeEQ: _null_safe_equal,
    exp.NullSafeNEQ: _null_safe_unequal,
    exp.And: _connective,
    exp.Or: _connective,
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Array: nested.array,
    exp.Struct: nested.struct,
    MapOfEntries: nested.map_of_entries,
    exp.Bracket: nested.element,
    exp.Dot: nested.dot,
}
"""One rule for each class of node."""

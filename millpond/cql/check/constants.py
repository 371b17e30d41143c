"""Evaluates constant expressions, for INSERT."""

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np

from millpond.cql import decimals
from millpond.cql.coercion import BIGINT_RANGE, INT_RANGE, read_date, read_timestamp
from millpond.cql.expressions import Call, Expression, Literal, Value
from millpond.cql.text.places import StatementError
from millpond.cql.zones import LOCAL_TIME, ZONED_TEXT, ZONED_TIME, in_zone
from millpond.schema import Type
from millpond.time_zones import first_instants, shown


def evaluate(expression: Expression, offset: int | None) -> Value:
    """The value of an expression of constants; NULL in, NULL out."""
    with localcontext(_EXACT):
        return _evaluated(expression, offset)


_EXACT = Context(prec=200)
"""Of DECIMALs with 38 digits, more than any constant expression needs."""


def is_fraction(value: Value) -> bool:
    """Whether a whole number would not be all of a value.

    >>> is_fraction(2.0), is_fraction(2.5), is_fraction(Decimal("2.50")), is_fraction("2.5")
    (False, True, True, False)
    """
    if isinstance(value, Decimal):
        return value != value.to_integral_value(context=_EXACT)
    return isinstance(value, float) and not value.is_integer()


def _evaluated(expression: Expression, offset: int | None) -> Value:
    if isinstance(expression, Literal):
        return expression.value
    if not isinstance(expression, Call) or (
        expression.function != "cast"
        and expression.function not in _MADE
        and expression.function not in _COMPUTED
    ):
        raise StatementError(
            "VALUES takes constants: literals, casts and simple arithmetic", offset
        )
    if expression.function in _MADE:
        parts = tuple(_evaluated(argument, offset) for argument in expression.arguments)
        return _MADE[expression.function](parts, expression.type)
    arguments = [_evaluated(argument, offset) for argument in expression.arguments]
    if any(argument is None for argument in arguments):
        return None
    if expression.function == "cast":
        return _cast(arguments[0], expression.type, offset)
    found: Value = _COMPUTED[expression.function](arguments)
    if expression.type.is_decimal and found is not None:
        return _cast(found, expression.type, offset)
    return _in_range(found, expression.type, offset)


def _struct(parts: tuple[Value, ...], type_: Type) -> Value:
    names = (field.name for field in type_.fields)
    return dict(zip(names, parts, strict=True))


def _map(parts: tuple[Value, ...], type_: Type) -> Value:
    return None if None in parts[::2] else dict(zip(parts[::2], parts[1::2], strict=True))


_MADE: dict[str, Callable[[tuple[Value, ...], Type], Value]] = {
    "array": lambda parts, _: parts,
    "struct": _struct,
    "map": _map,
}


def _divided(operands: Sequence[Any]) -> Value:
    return None if operands[1] == 0 else operands[0] / operands[1]


def _remainder(operands: Sequence[Any]) -> Value:
    left, right = operands
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    return left % right if isinstance(left, Decimal) else math.fmod(left, right)


def _in_zone(function: Callable[[str, Any], Any]) -> Callable[[Sequence[Any]], Value]:
    """A function of microseconds as one of times."""

    def computed(operands: Sequence[Any]) -> Value:
        moment, zone = operands
        since = np.array([(moment - _EPOCH) // timedelta(microseconds=1)])
        return _EPOCH + timedelta(microseconds=int(function(zone, since)[0]))

    return computed


def _zoned_text(operands: Sequence[Any]) -> Value:
    text, zone = operands
    with in_zone(zone):
        return read_timestamp(text)


_EPOCH = datetime(1970, 1, 1)

_COMPUTED: dict[str, Callable[[Sequence[Any]], Any]] = {
    LOCAL_TIME: _in_zone(shown),
    ZONED_TIME: _in_zone(first_instants),
    ZONED_TEXT: _zoned_text,
    "+": lambda v: v[0] + v[1],
    "-": lambda v: v[0] - v[1],
    "*": lambda v: v[0] * v[1],
    "/": _divided,
    "%": _remainder,
    "neg": lambda v: -v[0],
    "concat": "".join,
}


def _in_range(value: Value, to: Type, offset: int | None) -> Value:
    if isinstance(value, int) and not isinstance(value, bool):
        low, high = INT_RANGE if to is Type.INT else BIGINT_RANGE
        if not low <= value <= high:
            raise StatementError(f"{value} is outside the range of {to}", offset)
    return value


def _cast(value: Value, to: Type, offset: int | None) -> Value:
    if isinstance(value, tuple | dict):
        return _nested(value, to, offset)
    if to.is_nested:
        return value  # a text of JSON, which is read with the row
    try:
        return _in_range(_decimal(value, to) if to.is_decimal else _CASTS[to](value), to, offset)
    except (ValueError, OverflowError, InvalidOperation):
        raise StatementError(f"{_shown(value)} cannot be read as {to}", offset) from None


def _nested(value: Any, to: Type, offset: int | None) -> Value:
    if not to.is_nested or isinstance(value, tuple) != to.is_array:
        kind = "an ARRAY" if isinstance(value, tuple) else "a STRUCT or MAP"
        raise StatementError(f"{kind} in VALUES cannot be cast to {to}", offset)
    if to.is_array:
        return tuple(_part(each, to.element, offset) for each in value)
    if to.is_map:
        return {key: _part(each, to.element, offset) for key, each in value.items()}
    pairs = zip(to.fields, value.values(), strict=True)
    return {field.name: _part(each, field.type, offset) for field, each in pairs}


def _part(value: Value, to: Type, offset: int | None) -> Value:
    return None if value is None else _cast(value, to, offset)


def _shown(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _decimal(value: Any, to: Type) -> Decimal:
    made = decimals.fitted(Decimal(value) if isinstance(value, str) else value, to)
    if made is None:
        raise ValueError(value)
    return made


def _truth(value: Any) -> bool:
    words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ValueError(value)


def _bytes(value: Any) -> bytes:
    return str(value).encode()


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _day(value: Any) -> date:
    return value.date() if isinstance(value, datetime) else read_date(value)


def _moment(value: Any) -> datetime:
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return read_timestamp(value)


_CASTS: dict[Type, Callable[[Any], Any]] = {
    Type.BOOLEAN: _truth,
    Type.INT: int,
    Type.BIGINT: int,
    Type.DOUBLE: float,
    Type.STRING: _text,
    Type.BINARY: _bytes,
    Type.DATE: _day,
    Type.TIMESTAMP: _moment,
}

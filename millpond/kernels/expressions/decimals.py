"""DECIMALs: exact sums and products, rounded once, half away from zero, where digits are too many.

An operand has whole numbers of its smallest unit. What does not fit its type is a fault.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.cql import decimals as rules
from millpond.cql.expressions import Call
from millpond.kernels.decimals import NARROW_DIGITS, Wholes, rounded
from millpond.kernels.expressions import reading
from millpond.kernels.expressions.faults import Fault, fault_where, first_of
from millpond.kernels.expressions.operand import Array, Operand, Text, Value, to_array
from millpond.kernels.expressions.rows import by_row
from millpond.kernels.expressions.strict import failing, nothing_fails, partial, plain
from millpond.kernels.groups import Bools, Floats
from millpond.schema import MOST_DIGITS, Type

Function = Callable[..., Value]
Checked = tuple[Wholes, Bools | None]


def arithmetic(call: Call) -> Function | None:
    """How DECIMALs are computed with; None of other calls."""
    types = [argument.type for argument in call.arguments]
    if not any(type_.is_decimal for type_ in types):
        return None
    build = _BUILT.get(call.function)
    return build(call, types) if build else _PLAIN.get(call.function)


def fits(data: Wholes, type_: Type) -> Bools:
    """Which whole numbers have no more digits than a type."""
    found: Bools = np.abs(data) < 10**type_.precision
    return found.astype(np.bool_)


def stored(data: Wholes, type_: Type) -> Wholes:
    """Whole numbers as operands of a type have them; those that do not fit become zero."""
    inside = fits(data, type_)
    data = data if inside.all() else np.where(inside, data, 0)
    return data.astype(object if type_.precision > NARROW_DIGITS else np.int64)


def scaled(data: Wholes, by: int, digits: int) -> Wholes:
    """Numbers with so many digits more behind the point; ``digits``: how many they have then."""
    if digits > NARROW_DIGITS and data.dtype != object:
        data = data.astype(object)
    if by < 0:
        return rounded(data, 10**-by)
    found: Wholes = data * 10**by if by else data
    return found


def made(data: Wholes, scale: int, digits: int, to: Type) -> Checked:
    """Numbers of a scale as those of a type, and which do not fit."""
    data = scaled(data, to.scale - scale, digits + max(to.scale - scale, 0))
    too_large = digits - scale >= to.precision - to.scale  # also what is rounded up may be
    fails = nothing_fails(~fits(data, to)) if too_large or data.dtype == object else None
    return stored(data, to), fails


def _added(call: Call, types: list[Type]) -> Function:
    sign = 1 if call.function == "+" else -1
    digits, scale = rules.exact_digits("+", *types)

    def add(a: Wholes, b: Wholes) -> Checked:
        left, right = (
            scaled(data, scale - type_.scale, digits)
            for data, type_ in zip((a, b), types, strict=True)
        )
        return made(left + sign * right, scale, digits, call.type)

    return failing(add, Fault.NUMERIC_VALUE_OUT_OF_RANGE)


def _multiplied(call: Call, types: list[Type]) -> Function:
    digits, scale = rules.exact_digits("*", *types)

    def multiply(a: Wholes, b: Wholes) -> Checked:
        return made(scaled(a, 0, digits) * b, scale, digits, call.type)

    return failing(multiply, Fault.NUMERIC_VALUE_OUT_OF_RANGE)


def _divided(call: Call, types: list[Type]) -> Function:
    more = call.type.scale - types[0].scale + types[1].scale

    def divide(a: Operand, b: Operand) -> Operand:
        over, under = a.data.astype(object), b.data.astype(object)
        is_zero = (under == 0).astype(np.bool_)
        over = np.where(under < 0, -over, over) * 10 ** max(more, 0)
        size = np.where(is_zero, 1, np.abs(under)) * 10 ** max(-more, 0)
        data = rounded(over, size)
        quotient = partial(lambda *_: (stored(data, call.type), ~is_zero))(a, b)
        fails = ~fits(data, call.type) & ~is_zero
        fails = fails if quotient.valid is None else fails & quotient.valid
        faults = fault_where(fails, Fault.NUMERIC_VALUE_OUT_OF_RANGE)
        return Operand(quotient.data, quotient.valid, first_of(quotient.faults, faults))

    return divide


def _remainder(call: Call, types: list[Type]) -> Function:
    digits, scale = rules.exact_digits("+", *types)

    def remain(a: Wholes, b: Wholes) -> tuple[Wholes, Bools]:
        left, right = (
            scaled(data, scale - type_.scale, digits)
            for data, type_ in zip((a, b), types, strict=True)
        )
        is_zero = (right == 0).astype(np.bool_)
        size = np.abs(left) % np.where(is_zero, 1, np.abs(right))
        return stored(np.where(left < 0, -size, size), call.type), ~is_zero

    return partial(remain)


def _rounded(call: Call, types: list[Type]) -> Function:
    """round: also to tens and hundreds."""
    given = call.arguments[1] if len(call.arguments) > 1 else None
    digits = getattr(given, "value", 0) or 0
    source = types[0]

    def cut(a: Wholes) -> Checked:
        if digits >= 0:
            return made(a, source.scale, source.precision, call.type)
        tens = rounded(a.astype(object), 10 ** (source.scale - digits)) * 10**-digits
        return made(tens, 0, MOST_DIGITS + 1, call.type)

    apply = failing(cut, Fault.NUMERIC_VALUE_OUT_OF_RANGE)
    return lambda value, *_: apply(value)


def _to_whole(call: Call, types: list[Type]) -> Function:
    """ceil and floor."""
    sign = -1 if call.function == "ceil" else 1
    unit = 10 ** types[0].scale
    return plain(lambda a: stored(sign * ((sign * scaled(a, 0, MOST_DIGITS)) // unit), call.type))


_BUILT: dict[str, Callable[[Call, list[Type]], Function]] = {
    "+": _added,
    "-": _added,
    "*": _multiplied,
    "/": _divided,
    "%": _remainder,
    "round": _rounded,
    "ceil": _to_whole,
    "floor": _to_whole,
}
_PLAIN: dict[str, Function] = {
    "neg": plain(lambda a: -a),
    "abs": plain(np.abs),
    "sign": plain(lambda a: (a > 0).astype(np.int32) - (a < 0).astype(np.int32)),
}


# -- casts -----------------------------------------------------------------------------------


def cast(source: Type, target: Type) -> Function | None:
    """CAST from or to a DECIMAL; None of other types."""
    if (source.is_decimal and target.is_decimal) or (source in _WHOLE and target.is_decimal):
        digits, scale = rules.digits_of(source)
        return failing(
            lambda a: made(a.astype(np.int64) if a.dtype == np.int32 else a, scale, digits, target),
            Fault.NUMERIC_VALUE_OUT_OF_RANGE,
        )
    if source.is_decimal:
        build = _FROM.get(target)
        return build(source) if build else None
    return _TO[source](target) if source in _TO and target.is_decimal else None


_WHOLE = (Type.INT, Type.BIGINT)


def _as_doubles(source: Type) -> Function:
    """Doubles next to the numbers; a quotient of two that are exact is rounded once."""
    unit = 10**source.scale

    def double(a: Wholes) -> Floats:
        if a.dtype != object and source.precision <= _EXACT_DIGITS:
            return a / float(unit)
        return np.array([number / unit for number in a.tolist()], np.float64)

    return plain(double)


_EXACT_DIGITS = 15
"""Whole numbers with so many digits, and powers of ten with them, are exact as doubles."""


def _as_whole(bits: int) -> Callable[[Type], Function]:
    def build(source: Type) -> Function:
        unit = 10**source.scale

        def cut(a: Wholes) -> tuple[Array, Bools | None]:
            size = np.abs(a) // unit
            data = np.where(a < 0, -size, size)
            inside = ((data >= -(2 ** (bits - 1))) & (data < 2 ** (bits - 1))).astype(np.bool_)
            dtype = np.int32 if bits == 32 else np.int64
            return np.where(inside, data, 0).astype(dtype), nothing_fails(~inside)

        return failing(cut, Fault.CAST_OVERFLOW)

    return build


def _as_text(source: Type) -> Function:
    def write(value: Operand) -> Text:
        array = to_array(value, source, len(value.data))
        texts = [None if each is None else format(each, "f") for each in array.to_pylist()]
        return Text(pa.array(texts, pa.string()), value.faults)

    return write


def _of_rows(reader: Callable[[Any], float | Decimal | None], target: Type) -> Function:
    """Numbers that are made one by one; what has no number is NULL, and what is too large fails
    or, of a text, is NULL too."""

    def read(value: Value) -> Operand:
        found = by_row(reader, value)
        units = [None if each is None else rules.units(each, target) for each in found]
        known = np.array([each is not None for each in units], np.bool_)
        array = stored(np.array([each or 0 for each in units], object), target)
        if isinstance(value, Text):
            return Operand(array, known, value.faults)
        fails = ~known if value.valid is None else ~known & value.valid
        faults = fault_where(fails, Fault.NUMERIC_VALUE_OUT_OF_RANGE)
        return Operand(array, value.valid, first_of(value.faults, faults))

    return read


def _of_doubles(target: Type) -> Function:
    return _of_rows(lambda number: number, target)


def _of_texts(target: Type) -> Function:
    return _of_rows(reading.decimal, target)


_FROM: dict[Type, Callable[[Type], Function]] = {
    Type.DOUBLE: _as_doubles,
    Type.INT: _as_whole(32),
    Type.BIGINT: _as_whole(64),
    Type.STRING: _as_text,
}
_TO: dict[Type, Callable[[Type], Function]] = {Type.DOUBLE: _of_doubles, Type.STRING: _of_texts}

"""Which functions can fail on some values, so that it is known what ON ERROR SKIP has to guard."""

import re
from collections.abc import Callable

from millpond.cql import decimals
from millpond.cql.expressions import Call, Expression, Literal, UserCall
from millpond.schema import MOST_DIGITS, Type

_BIGINT = 2**63
_NARROWING = {
    (Type.BIGINT, Type.INT),
    (Type.DOUBLE, Type.INT),
    (Type.DOUBLE, Type.BIGINT),
    (Type.DATE, Type.TIMESTAMP),
}


def can_fail(call: Call) -> bool:
    """Whether the function itself fails on some values of its arguments."""
    if isinstance(call, UserCall):
        return True
    if call.type.is_decimal or any(argument.type.is_decimal for argument in call.arguments):
        return _may_be_too_large(call)
    rule = _RULES.get(call.function)
    return rule is not None and rule(call)


def _may_be_too_large(call: Call) -> bool:
    """Whether a number may come of DECIMALs that has more digits than its type."""
    source = call.arguments[0].type
    if call.function in ("+", "-", "*"):  # these have a digit to spare for what is rounded up
        precision, scale = decimals.exact_digits(call.function, source, call.arguments[1].type)
        return precision - scale > call.type.precision - call.type.scale
    if call.function == "/":
        return decimals.exact_digits(call.function, source, call.arguments[1].type)[0] > MOST_DIGITS
    if call.function == "round":
        return source.precision == MOST_DIGITS
    return call.function == "cast" and not decimals.holds(call.type, source)


def is_pattern(text: str, escape: str = "\\") -> bool:
    r"""Whether LIKE can read a pattern: the escape character stands before %, _ or itself.

    >>> is_pattern("100\\%"), is_pattern("\\d"), is_pattern("%!_", escape="!")
    (True, False, True)
    """
    quoted = re.escape(escape) + "[%_" + re.escape(escape) + "]"
    return escape not in re.sub(quoted, "", text)


def _overflows(call: Call) -> bool:
    return call.type is Type.BIGINT and _magnitude(call) >= _BIGINT


def _negates(call: Call) -> bool:
    """Whether the least number may be divided by -1."""
    divisor = call.arguments[1]
    is_known = isinstance(divisor, Literal) and divisor.value != -1
    return not is_known and _magnitude(call.arguments[0]) >= _BIGINT


def _magnitude(expression: Expression) -> int:
    """A bound of the absolute value of an INT or BIGINT."""
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return abs(expression.value)
    if expression.type is Type.INT:
        return 2**31
    if isinstance(expression, Call):
        bounds = [_magnitude(argument) for argument in expression.arguments]
        match expression.function:
            case "+" | "-":
                return bounds[0] + bounds[1]
            case "*":
                return bounds[0] * bounds[1]
            case "%":
                return min(bounds)
            case "neg" | "abs" | "attempt":
                return bounds[0]
            case "cast" if expression.arguments[0].type is Type.INT:
                return bounds[0]
            case "round" if len(bounds) == 2:
                return bounds[0] + int(10 ** bounds[1])
    return _BIGINT


def _rounds_up(call: Call) -> bool:
    digits = call.arguments[1] if len(call.arguments) == 2 else None
    is_negative = isinstance(digits, Literal) and isinstance(digits.value, int) and digits.value < 0
    return is_negative and _overflows(call)


def _reads_double(call: Call) -> bool:
    return call.arguments[0].type is Type.DOUBLE


def _narrows(call: Call) -> bool:
    return (call.arguments[0].type, call.type) in _NARROWING


def _may_be_part_zero(call: Call) -> bool:
    number = call.arguments[2]
    return not isinstance(number, Literal) or number.value == 0


def _pattern_may_be_wrong(call: Call) -> bool:
    pattern = call.arguments[1]
    if not isinstance(pattern, Literal):
        return True
    return isinstance(pattern.value, str) and not is_pattern(pattern.value, escape_of(call))


def escape_of(like: Call) -> str:
    """The escape character of a LIKE."""
    mark = like.arguments[2] if len(like.arguments) == 3 else None
    return str(mark.value) if isinstance(mark, Literal) else "\\"


def _always(call: Call) -> bool:
    return True


_RULES: dict[str, Callable[[Call], bool]] = {
    "+": _overflows,
    "-": _overflows,
    "*": _overflows,
    "neg": _overflows,
    "div": _negates,
    "abs": _overflows,
    "ceil": _reads_double,
    "floor": _reads_double,
    "round": _rounds_up,
    "sign": _reads_double,
    "cast": _narrows,
    "like": _pattern_may_be_wrong,
    "split_part": _may_be_part_zero,
    "date_trunc": _always,
    "timestamp_seconds": _always,
    "timestamp_millis": _always,
}
"""Functions that are not here never fail."""

"""date_format: a time as text by a pattern, as expressions of its parts."""

import re
from collections.abc import Callable

from millpond.cql.coercion import cast
from millpond.cql.expressions import Call, Expression, Literal
from millpond.cql.text.places import StatementError
from millpond.schema import Type

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
KNOWN = "yyyy, yy, M, MM, MMM, MMMM, d, dd, E, EEEE, H, HH, h, hh, a, m, mm, s, ss and S to SSSSSS"
_PIECES = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<field>([A-Za-z])\3*)|(?P<other>[^A-Za-z']+)")

Field = Callable[[Expression], Expression]


def formatted(moment: Expression, pattern: str, offset: int | None) -> Expression:
    """A TIMESTAMP as text by a pattern of Java's, as far as its letters are known."""
    parts: list[Expression] = []
    position, has_fields = 0, False
    for piece in _PIECES.finditer(pattern):
        if piece.start() != position:
            break
        position = piece.end()
        if piece["field"] is not None:
            has_fields = True
            parts.append(_field(piece["field"], offset)(moment))
        else:
            quoted = piece["quoted"]
            text = piece["other"] if quoted is None else quoted.replace("''", "'") or "'"
            parts.append(Literal(text, Type.STRING))
    if position < len(pattern):
        raise StatementError("a quote in this pattern of date_format does not end", offset)
    if not has_fields:
        raise StatementError(f"this pattern of date_format has no field; known: {KNOWN}", offset)
    return Call("concat", tuple(parts), Type.STRING)


def _field(letters: str, offset: int | None) -> Field:
    if letters.strip("S") == "" and len(letters) <= 6:
        return lambda moment: _fraction(moment, len(letters))
    if letters not in _FIELDS:
        raise StatementError(f"date_format does not know '{letters}'; known: {KNOWN}", offset)
    return _FIELDS[letters]


def _number(function: str, moment: Expression) -> Expression:
    return Call(function, (moment,), Type.INT)


def _text(number: Expression) -> Expression:
    return cast(number, Type.STRING)


def _padded(number: Expression, width: int) -> Expression:
    arguments = (_text(number), Literal(width, Type.INT), Literal("0", Type.STRING))
    return Call("lpad", arguments, Type.STRING)


def _plain(function: str) -> Field:
    return lambda moment: _text(_number(function, moment))


def _wide(function: str, width: int = 2) -> Field:
    return lambda moment: _padded(_number(function, moment), width)


def _rest(number: Expression, by: int) -> Expression:
    """The remainder of a division, never negative."""
    divisor = Literal(by, Type.BIGINT)
    rest = Call("%", (cast(number, Type.BIGINT), divisor), Type.BIGINT)
    positive = Call("+", (rest, divisor), Type.BIGINT)
    return Call("%", (positive, divisor), Type.BIGINT)


def _fraction(moment: Expression, digits: int) -> Expression:
    microseconds = _rest(Call("unix_micros", (moment,), Type.BIGINT), 1_000_000)
    return Call("left", (_padded(microseconds, 6), Literal(digits, Type.INT)), Type.STRING)


def _hour_of_twelve(moment: Expression) -> Expression:
    before = Call("+", (_number("hour", moment), Literal(11, Type.BIGINT)), Type.BIGINT)
    return Call("+", (_rest(before, 12), Literal(1, Type.BIGINT)), Type.BIGINT)


def _named(function: str, names: tuple[str, ...], width: int | None) -> Field:
    def field(moment: Expression) -> Expression:
        number = _number(function, moment)
        parts: list[Expression] = []
        for place, name in enumerate(names, 1):
            is_one = Call("=", (number, Literal(place, Type.INT)), Type.BOOLEAN)
            parts += [is_one, Literal(name[:width], Type.STRING)]
        return Call("case", tuple(parts), Type.STRING)

    return field


def _half(moment: Expression) -> Expression:
    is_early = Call("<", (_number("hour", moment), Literal(12, Type.INT)), Type.BOOLEAN)
    is_late = Call(">=", (_number("hour", moment), Literal(12, Type.INT)), Type.BOOLEAN)
    parts = (is_early, Literal("AM", Type.STRING), is_late, Literal("PM", Type.STRING))
    return Call("case", parts, Type.STRING)


_FIELDS: dict[str, Field] = {
    "yyyy": _wide("year", 4),
    "yy": lambda moment: _padded(_rest(_number("year", moment), 100), 2),
    "M": _plain("month"),
    "MM": _wide("month"),
    "MMM": _named("month", MONTHS, 3),
    "MMMM": _named("month", MONTHS, None),
    "d": _plain("day"),
    "dd": _wide("day"),
    "E": _named("dayofweek", DAYS, 3),
    "EEEE": _named("dayofweek", DAYS, None),
    "H": _plain("hour"),
    "HH": _wide("hour"),
    "h": lambda moment: _text(_hour_of_twelve(moment)),
    "hh": lambda moment: _padded(_hour_of_twelve(moment), 2),
    "a": _half,
    "m": _plain("minute"),
    "mm": _wide("minute"),
    "s": _plain("second"),
    "ss": _wide("second"),
}

"""Lengths of windows as they are written, in ticks or as numbers."""

from sqlglot import exp

from millpond.cql.text.durations import ticks
from millpond.cql.text.from_clause import Length
from millpond.cql.text.places import StatementError, offset_of


def ticks_of(length: Length, tick_microseconds: int) -> int:
    """How many ticks a length has."""
    unit = length.args.get("unit")
    number, offset = number_of(length), offset_of(length) or 0
    return ticks(number, unit.name if unit is not None else None, tick_microseconds, offset)


def number_of(length: Length) -> str:
    """The number of a length, with its sign."""
    is_negative = isinstance(length.this, exp.Neg)
    number = str((length.this.this if is_negative else length.this).this)
    if not number.replace(".", "", 1).isdecimal():
        raise StatementError(f"'{number}' is no number", length)
    return f"-{number}" if is_negative else number

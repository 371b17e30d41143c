"""Lengths of time, counted in ticks."""

from __future__ import annotations

import re
from fractions import Fraction

from millpond.cql.places import StatementError
from millpond.schema import FOREVER

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def unit_microseconds(unit: str, offset: int) -> int:
    """The length of a unit of time, singular or plural."""
    word = unit.upper()
    found = MICROSECONDS.get(word) or MICROSECONDS.get(word.removesuffix("S"))
    if found is None:
        known = ", ".join(MICROSECONDS)
        raise StatementError(f'no unit of time is called "{unit}"; known: {known}', offset)
    return found


def ticks(number: str, unit: str | None, tick_microseconds: int, offset: int) -> int:
    """The number of ticks in a length such as 5 MINUTES; without a unit the number counts ticks."""
    amount = Fraction(number)
    if unit is not None:
        amount = amount * unit_microseconds(unit, offset) / tick_microseconds
    if amount.denominator != 1:
        written = f"{number} {unit}" if unit else number
        raise StatementError(
            f"{written} is not a whole number of ticks; a tick is {describe(tick_microseconds)} "
            "(SET tick = '…' changes it)",
            offset,
        )
    if abs(amount) >= FOREVER:
        raise StatementError("this length of time is too long; use [UNBOUNDED]", offset)
    return int(amount)


_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([A-Za-z]+)\s*")


def parse_tick(value: object, offset: int) -> int:
    """The microseconds of a tick, from text such as '1 second'."""
    matched = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        raise StatementError("the tick is a length of time in quotes, such as '1 second'", offset)
    length = ticks(matched[1] or "1", matched[2], 1, offset)
    if length <= 0:
        raise StatementError("the tick must be at least one microsecond", offset)
    return length


def describe(microseconds: int) -> str:
    """A length of time in its largest whole unit.

    >>> describe(1_000_000), describe(1_500)
    ('1 second', '1500 microseconds')
    """
    for unit, length in reversed(MICROSECONDS.items()):
        if microseconds % length == 0:
            count = microseconds // length
            return f"{count} {unit.lower()}{'' if count == 1 else 's'}"
    return f"{microseconds} microseconds"

"""Lengths of time, counted in ticks."""

import re
from fractions import Fraction

from millpond.cql.text.places import StatementError
from millpond.schema import FOREVER
from millpond.settings import UNIT_MICROSECONDS, format_duration


def ticks(number: str, unit: str | None, tick_microseconds: int, offset: int) -> int:
    """The number of ticks in a length such as 5 MINUTES; without a unit the number counts ticks.

    >>> ticks("5", "MINUTES", 1_000_000, 0), ticks("5", None, 1_000_000, 0)
    (300, 5)
    """
    amount = Fraction(number)
    if unit is not None:
        amount = amount * _unit_microseconds(unit, offset) / tick_microseconds
    if amount.denominator != 1:
        written = f"{number} {unit}" if unit else number
        raise StatementError(
            f"{written} is not a whole number of ticks; a tick is "
            f"{format_duration(tick_microseconds)} (SET tick = '…' changes it)",
            offset,
        )
    if abs(amount) >= FOREVER:
        raise StatementError("this length of time is too long; use [UNBOUNDED]", offset)
    return int(amount)


def _unit_microseconds(unit: str, offset: int) -> int:
    """The length of a unit of time, singular or plural."""
    found = UNIT_MICROSECONDS.get(unit.upper().removesuffix("S"))
    if found is None:
        known = ", ".join(UNIT_MICROSECONDS)
        raise StatementError(f'no unit of time is called "{unit}"; known: {known}', offset)
    return found


_MONTHS = ("MONTH", "QUARTER", "YEAR")
_PAIRS = re.compile(r"\s*([+-]?\d+(?:\.\d*)?)\s*([A-Za-z]+)")


def microseconds(text: str, unit: str | None, offset: int) -> int:
    """The microseconds in an INTERVAL: '5' MINUTE, or '1 day 2 hours' with the units in it.

    >>> microseconds("5", "MINUTE", 0), microseconds("1 day 2 hours", None, 0)
    (300000000, 93600000000)
    """
    pairs = [(text.strip(), unit)] if unit is not None else _PAIRS.findall(text)
    is_read = unit is not None or not _PAIRS.sub("", text).strip()
    if not pairs or not is_read or not all(_NUMBER.fullmatch(number) for number, _ in pairs):
        raise StatementError(
            f"'{text}' is no length of time; write INTERVAL '5' MINUTE or INTERVAL '1 day 2 hours'",
            offset,
        )
    lengths = (Fraction(number) * _fixed_length(word or "", offset) for number, word in pairs)
    total = sum(lengths, Fraction(0))
    if total.denominator != 1 or abs(total) >= FOREVER:
        raise StatementError(f"'{text}' is no whole number of microseconds that fits", offset)
    return int(total)


_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?")


def _fixed_length(unit: str, offset: int) -> int:
    if unit.upper().removesuffix("S") in _MONTHS:
        raise StatementError(
            f"{unit} has no fixed length; an INTERVAL is of days or less: INTERVAL '30' DAY", offset
        )
    return _unit_microseconds(unit, offset)

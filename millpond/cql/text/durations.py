"""Lengths of time, counted in ticks."""

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

"""Text read as a value, exactly as Spark's TRY_CAST reads it; None where it cannot be read."""

import re
from datetime import date
from decimal import Decimal, InvalidOperation

from millpond.cql.moments import TIMESTAMP_TEXT

_BLANK = "".join(map(chr, range(33)))
_CONTROL = _BLANK + chr(127)
"""What is ignored at both ends: spaces and control characters; for doubles, not the last one."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?")
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?"
)
_INFINITE = {"inf", "+inf", "infinity", "+infinity"}
_MINUS_INFINITE = {"-inf", "-infinity"}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_TIMESTAMP = re.compile(TIMESTAMP_TEXT)
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)


def whole(text: str, bits: int) -> int | None:
    """A whole number of so many bits."""
    text = text.strip(_CONTROL)
    if not _WHOLE.fullmatch(text) or len(text) > 4000:
        return None
    value = int(text)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def double(text: str) -> float | None:
    """A double: decimal or hexadecimal, with Java's letters behind it, or infinite, or NaN."""
    text = text.strip(_BLANK)
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("dDfF"))
    word = text.lower()
    if word in _INFINITE or word in _MINUS_INFINITE:
        return float(word)
    if word == "nan":
        return float("nan")
    return _hexadecimal(text) if _HEXADECIMAL.fullmatch(text) else None


def decimal(text: str) -> Decimal | None:
    """A number with digits before and behind a point, perhaps with an exponent."""
    text = text.strip(_CONTROL)
    if not _DECIMAL.fullmatch(text) or text[-1] in "dDfF":
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all
        return None


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text.rstrip("dDfF"))
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def truth(text: str) -> bool | None:
    """A truth value."""
    word = text.strip(_CONTROL).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def days(text: str) -> int | None:
    """A date: a year, or a year and a month, or a day with anything behind it."""
    match = _DATE.fullmatch(text.strip(_CONTROL))
    if match is None:
        return None
    sign, year, month, day = match.groups()
    return day_number(int(sign + year), int(month or 1), int(day or 1))


def microseconds(text: str) -> int | None:
    """A time: a date with or without a time of day, and perhaps an offset from UTC."""
    found = time_and_offset(text)
    return None if found is None else found[0]


def time_and_offset(text: str) -> tuple[int, bool] | None:
    """The same, and whether there is an offset."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    days_ = day_number(int(year), int(month or 1), int(day or 1))
    clock = [int(hour or 0), int(minute or 0), int(second or 0)]
    if days_ is None or clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return None
    seconds = days_ * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2] - _offset(zone or "Z")
    value = seconds * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))
    return (value, zone is not None) if -(2**63) <= value < 2**63 else None


def _offset(zone: str) -> int:
    """The seconds by which a zone is ahead of UTC: +h, +hh, +hhmm or +hh:mm."""
    if zone[0] not in "+-":
        return 0
    hours, colon, minutes = zone[1:].partition(":")
    if not colon and len(hours) == 4:
        hours, minutes = hours[:2], hours[2:]
    seconds = int(hours) * 3600 + int(minutes or 0) * 60
    return -seconds if zone[0] == "-" else seconds


def day_number(year: int, month: int, day: int) -> int | None:
    """The days since 1970, of any year; None if there is no such day."""
    cycles, within = divmod(year - 2000, 400)  # the calendar repeats every 400 years
    try:
        there = date(2000 + within, month, day)
    except ValueError:
        return None
    return there.toordinal() - _EPOCH + cycles * 146_097


_EPOCH = date(1970, 1, 1).toordinal()

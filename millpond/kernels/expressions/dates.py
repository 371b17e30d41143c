"""Dates as days and times as microseconds since 1970, in the proleptic Gregorian calendar."""

from collections.abc import Callable

import numpy as np

from millpond.cql.expressions import Call, Literal
from millpond.kernels.expressions.faults import Fault
from millpond.kernels.expressions.operand import Array, Operand
from millpond.kernels.expressions.strict import failing, nothing_fails, plain
from millpond.kernels.groups import Bools, Ints

SECOND = 1_000_000
DAY = 86_400 * SECOND
_LARGEST = 2**63 - 1

Checked = tuple[Array, Bools | None]


def days_of(moments: Array) -> Ints:
    """The day of a DATE (a 32-bit number) or TIMESTAMP (a 64-bit one)."""
    if moments.dtype == np.int32:
        return moments.astype(np.int64)
    return np.floor_divide(moments, DAY)


def _months_of(days: Ints) -> Ints:
    """Whole months since 1970."""
    months: Ints = days.view("datetime64[D]").astype("datetime64[M]").view(np.int64)
    return months


def _first_day(months: Ints) -> Ints:
    """The first day of a month."""
    days: Ints = months.view("datetime64[M]").astype("datetime64[D]").view(np.int64)
    return days


def year(moments: Array) -> Array:
    """The year."""
    return (_months_of(days_of(moments)) // 12 + 1970).astype(np.int32)


def month(moments: Array) -> Array:
    """The month, 1 to 12."""
    return (_months_of(days_of(moments)) % 12 + 1).astype(np.int32)


def day(moments: Array) -> Array:
    """The day of the month, 1 to 31."""
    days = days_of(moments)
    return (days - _first_day(_months_of(days)) + 1).astype(np.int32)


def day_of_week(moments: Array) -> Array:
    """The day of the week, 1 (Sunday) to 7; the first day of 1970 was a Thursday."""
    return ((days_of(moments) + 4) % 7 + 1).astype(np.int32)


def part(unit: int, modulus: int) -> Callable[[Ints], Array]:
    """The function that counts units of so many seconds, up to a modulus."""
    return lambda times: (times // (unit * SECOND) % modulus).astype(np.int32)


def truncate(call: Call) -> Callable[..., Operand]:
    """date_trunc to the unit that the call names."""
    unit = call.arguments[0]
    cut = _CUTS[str(unit.value)] if isinstance(unit, Literal) else _CUTS["day"]
    own = failing(cut, Fault.DATETIME_OVERFLOW)
    return lambda _, times: own(times)


def _to_seconds(seconds: int) -> Callable[[Ints], Checked]:
    size = seconds * SECOND

    def cut(times: Ints) -> Checked:
        begun = times - times % size
        return begun, nothing_fails(begun > times)

    return cut


def _to_days(first: Callable[[Ints], Ints]) -> Callable[[Ints], Checked]:
    return lambda times: midnight(first(days_of(times)))


_CUTS: dict[str, Callable[[Ints], Checked]] = {
    "second": _to_seconds(1),
    "minute": _to_seconds(60),
    "hour": _to_seconds(3600),
    "day": _to_days(lambda days: days),
    "week": _to_days(lambda days: days - (days + 3) % 7),
    "month": _to_days(lambda days: _first_day(_months_of(days))),
    "year": _to_days(lambda days: _first_day(_months_of(days) // 12 * 12)),
}


def midnight(days: Array) -> Checked:
    """A DATE as a TIMESTAMP."""
    wide = days.astype(np.int64)
    return wide * DAY, nothing_fails(np.abs(wide) > _LARGEST // DAY)


def later(days: Array, by: Array) -> Array:
    """So many days later; days are counted in 32 bits, and wrap around as in Spark."""
    return days + by


def earlier(days: Array, by: Array) -> Array:
    """So many days earlier."""
    return days - by


def since(units_per_second: int) -> Callable[[Ints], Ints]:
    """The function that counts units since 1970, rounded down."""
    return lambda times: times // (SECOND // units_per_second)


def after(units_per_second: int) -> Callable[[Ints], Checked]:
    """The function from a number of units since 1970 to the time."""
    size = SECOND // units_per_second
    low, high = -(2**63) // size, _LARGEST // size

    def time(units: Ints) -> Checked:
        fails = (units > high) | (units < (low if low * size >= -(2**63) else low + 1))
        return units * size, None if size == 1 else nothing_fails(fails)

    return time


def aligned(time: Ints, slide: Ints, offset: Ints, shift: Ints, unit: Ints) -> Ints:
    """The last multiple of a slide up to a time, from an offset on; shifted, in other units."""
    return (time - (time - offset) % slide + shift) * unit


def as_date(times: Array) -> Array:
    """The date of a TIMESTAMP."""
    return days_of(times).astype(np.int32)


FUNCTIONS: dict[str, Callable[..., Operand]] = {
    "year": plain(year),
    "month": plain(month),
    "day": plain(day),
    "dayofweek": plain(day_of_week),
    "hour": plain(part(3600, 24)),
    "minute": plain(part(60, 60)),
    "second": plain(part(1, 60)),
    "date_add": plain(later),
    "date_sub": plain(earlier),
    "datediff": plain(earlier),
    "unix_seconds": plain(since(1)),
    "unix_millis": plain(since(1_000)),
    "unix_micros": plain(since(1_000_000)),
    "timestamp_seconds": failing(after(1), Fault.DATETIME_OVERFLOW),
    "timestamp_millis": failing(after(1_000), Fault.DATETIME_OVERFLOW),
    "aligned": plain(aligned),
    "timestamp_micros": failing(after(1_000_000), Fault.DATETIME_OVERFLOW),
}

"""Time zones: what their clocks show at an instant, and when they show it, in microseconds.

The rules are those of the machine's zone database, as ``zoneinfo`` reads it: Arrow knows none for
the years from 2038 on. An offset is asked for once a day, and for each second of days on which it
changes.
"""

import difflib
import zoneinfo
from datetime import datetime, timedelta
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

UTC = "UTC"

SECOND = 1_000_000
_DAY = 86_400
_CYCLE = 146_097 * _DAY
"""So many seconds after which the calendar repeats, 400 years."""
_FIRST, _LAST = -5_364_662_400, 13_569_465_600
"""The years 1800, before which no zone had rules, and 2400, from which on they repeat."""
_NOTHING = timedelta()
_LEAST, _MOST = -(2**63), 2**63 - 1


@cache
def _names() -> dict[str, str]:
    """The zones of this machine's database, by their names in lower case."""
    return {name.lower(): name for name in zoneinfo.available_timezones()}


def zone_named(text: str) -> str:
    """The zone of a name, as it is written in the database; raises a ``ValueError`` if it is none.

    >>> zone_named("europe/berlin"), zone_named("utc"), zone_named("Z")
    ('Europe/Berlin', 'UTC', 'UTC')
    """
    name = text.strip().lower()
    if name in ("utc", "z", "etc/utc", "gmt", "etc/gmt"):
        return UTC
    found = _names().get(name)
    if found is None:
        near = difflib.get_close_matches(name, _names(), 1)
        hint = f"; did you mean '{_names()[near[0]]}'?" if near else ""
        raise ValueError(f"a time zone such as 'Europe/Berlin' or 'UTC'{hint}")
    return found


@cache
def _rules(zone: str) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(zone)


@lru_cache(maxsize=2**17)
def _offset(zone: str, second: int) -> int:
    """By how many seconds a zone is ahead of UTC at a second since 1970."""
    if second >= _LAST:
        second = _LAST + (second - _LAST) % _CYCLE
    ahead = datetime.fromtimestamp(max(second, _FIRST), _rules(zone)).utcoffset() or _NOTHING
    return ahead.days * _DAY + ahead.seconds


def _offsets(zone: str, times: Ints) -> Ints:
    """By how many microseconds a zone is ahead of UTC at instants."""
    seconds = times // SECOND
    days, places = np.unique(seconds // _DAY, return_inverse=True)
    begins = np.array([_offset(zone, day * _DAY) for day in days.tolist()], np.int64)
    ends = np.array([_offset(zone, (day + 1) * _DAY) for day in days.tolist()], np.int64)
    found = begins[places]
    changes = (begins != ends)[places].nonzero()[0]
    if len(changes):
        distinct, at = np.unique(seconds[changes], return_inverse=True)
        asked = np.array([_offset(zone, second) for second in distinct.tolist()], np.int64)
        found[changes] = asked[at]
    return found * SECOND


def shown(zone: str, instants: Ints) -> Ints:
    """What the clocks of a zone show at instants."""
    return _sum(instants, _offsets(zone, instants))


def first_instants(zone: str, local: Ints) -> Ints:
    """The first instants at which the clocks of a zone show times, or skip them."""
    day = np.array(_DAY * SECOND, np.int64)
    before, after = _offsets(zone, _sum(local, -day)), _offsets(zone, _sum(local, day))
    first, second = _sum(local, -before), _sum(local, -after)
    is_first, is_second = _offsets(zone, first) == before, _offsets(zone, second) == after
    found = np.where(is_first, first, second)
    found = np.where(is_first & is_second, np.minimum(first, second), found)
    for row in (~is_first & ~is_second).nonzero()[0].tolist():
        found[row] = _after_gap(zone, int(local[row]), int(second[row]), int(first[row]))
    return found


def _after_gap(zone: str, local: int, low: int, high: int) -> int:
    """The first whole second at which clocks show a time that is not before one that they skip."""
    low, high = min(low, high) // SECOND - 1, max(low, high) // SECOND + 1
    while high - low > 1:
        middle = (low + high) // 2
        is_before = (middle + _offset(zone, middle)) * SECOND < local
        low, high = (middle, high) if is_before else (low, middle)
    return high * SECOND


def _sum(a: Ints, b: Ints) -> Ints:
    """Sums that stay in 64 bits."""
    with np.errstate(over="ignore"):
        total: Ints = a + b
    wraps = ((a >= 0) == (b >= 0)) & ((total >= 0) != (a >= 0))
    return np.where(wraps, np.where(a >= 0, _MOST, _LEAST), total)

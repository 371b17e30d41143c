"""Time zones: in which of them a statement reads the calendar.

A TIMESTAMP is an instant and has no zone. What reads the calendar of instants (hours, days, months,
their beginnings, texts and dates) does so in a zone, which is in the checked expression: that of
AT TIME ZONE, or else of the setting when the statement is checked. So no plan depends on a setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta

import numpy as np

from millpond.cql.expressions import Call, Expression, Literal
from millpond.schema import Type
from millpond.time_zones import UTC, first_instants

LOCAL_TIME, ZONED_TIME, ZONED_TEXT = "local_time", "zoned_time", "zoned_text"
"""Functions: what the clocks of a zone show at an instant; the first instant at which they show a
time, or one after it; the instant of a text, which is in the zone unless it has an offset."""

_in_force: ContextVar[str] = ContextVar("time zone", default=UTC)


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """The calendar is that of a zone."""
    token = _in_force.set(name)
    try:
        yield
    finally:
        _in_force.reset(token)


def zone_in_force() -> str:
    """The zone in which the calendar is read."""
    return _in_force.get()


def local_time(moment: Expression) -> Expression:
    """What the clocks of the zone show at an instant, as a TIMESTAMP."""
    return _zoned(LOCAL_TIME, moment)


def instant_of(value: Expression) -> Expression:
    """The midnight of a DATE; a TIMESTAMP is an instant already."""
    if value.type is Type.DATE:
        return _zoned(ZONED_TIME, Call("cast", (value,), Type.TIMESTAMP))
    return value


def instant_shown(local: Expression) -> Expression:
    """The first instant at which the clocks of the zone show a time."""
    return _zoned(ZONED_TIME, local)


def instant_in_zone(local: datetime) -> datetime:
    """The first instant at which the clocks of the zone show a time, or skip it; both are naive."""
    zone = zone_in_force()
    if zone == UTC:
        return local
    shown = (local - _EPOCH) // timedelta(microseconds=1)
    return _EPOCH + timedelta(microseconds=int(first_instants(zone, np.array([shown]))[0]))


_EPOCH = datetime(1970, 1, 1)


def instant_of_text(text: Expression) -> Expression:
    """The instant of a text."""
    if zone_in_force() == UTC:
        return Call("cast", (text,), Type.TIMESTAMP)
    return Call(ZONED_TEXT, (text, _zone()), Type.TIMESTAMP)


def _zoned(function: str, value: Expression) -> Expression:
    return value if zone_in_force() == UTC else Call(function, (value, _zone()), Type.TIMESTAMP)


def _zone() -> Literal:
    return Literal(zone_in_force(), Type.STRING)

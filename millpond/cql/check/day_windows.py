"""TUMBLE by days and weeks of a time zone, which are not equally long: from midnight to midnight.

Each element knows when its window ends, and is there until then: what UNTIL says.
"""

from datetime import date

from millpond.catalog import Catalog
from millpond.cql.algebra import WINDOW_BOUNDS, Project, UntilWindow, WithTime
from millpond.cql.check.clock import in_units
from millpond.cql.check.hops import check_time, days_of_unit, tick_of
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.node import Node
from millpond.cql.text.from_clause import Window
from millpond.cql.text.lengths import number_of
from millpond.cql.text.places import StatementError
from millpond.cql.zones import instant_of, local_time, zone_in_force
from millpond.schema import Type
from millpond.settings import format_duration
from millpond.time_zones import UTC

_SECOND = 1_000_000
_FIRST = Literal(date(1970, 1, 1), Type.DATE)
"""From which days are counted."""


def is_of_days(stream: Node, window: Window, catalog: Catalog) -> bool:
    """Whether a window is one of days of a time zone; a stream without TIMESTAMPs has none."""
    has_days = days_of_unit(window, "length") > 0 and zone_in_force() != UTC
    return window.args["kind"] == "TUMBLE" and has_days and tick_of(stream, catalog) is not None


def day_windows(stream: Node, window: Window, catalog: Catalog) -> Node:
    """The elements of a stream until their days are over, with the bounds of these."""
    if window.args.get("time"):
        check_time(stream, window, catalog)
    for part in ("offset", "slide"):
        if window.args.get(part) is not None:
            raise StatementError(
                f"days of {zone_in_force()} begin at midnight; without {part.upper()}, or 24 HOURS",
                window.args[part],
            )
    if _SECOND % catalog.tick_microseconds:
        raise StatementError(
            f"a tick of {format_duration(catalog.tick_microseconds)} may go past a midnight of "
            f"{zone_in_force()}; SET tick = '1 second' before the first stream, or 24 HOURS",
            window,
        )
    columns = tuple(Column(i, f.type, f.name) for i, f in enumerate(stream.schema.fields))
    timed = WithTime(stream, tick_of(stream, catalog))
    begin = _begin(Column(len(columns), Type.TIMESTAMP, "time"), _days(window))
    end = Call("date_add", (begin, Literal(_days(window), Type.INT)), Type.DATE)
    bounds = (instant_of(begin), instant_of(end))
    made = Project(timed, (*columns, *bounds), (*stream.schema.names, *WINDOW_BOUNDS))
    until = Column(len(columns) + 1, Type.TIMESTAMP, WINDOW_BOUNDS[1])
    return UntilWindow(made, in_units(until), catalog.tick_microseconds)


def _days(window: Window) -> int:
    """How many days a window has."""
    length = window.args["length"]
    unit = days_of_unit(window, "length")
    number = number_of(length)
    if not number.isdecimal() or not 0 < int(number) * unit < _MOST:
        raise StatementError("a window has one or more whole days", length)
    return int(number) * unit


_MOST = 100_000


def _begin(time: Expression, days: int) -> Expression:
    """The first day of the window that an instant is in.

    Clocks that are turned back over midnight show the day before once more, when the next one has
    begun already.
    """
    shown = Call("cast", (local_time(time),), Type.DATE)
    following = Call("date_add", (shown, Literal(1, Type.INT)), Type.DATE)
    has_begun = Call("<=", (instant_of(following), time), Type.BOOLEAN)
    day: Expression = Call("case", (has_begun, following, shown), Type.DATE)
    if days == 1:
        return day
    number = Call("cast", (Call("datediff", (day, _FIRST), Type.INT),), Type.BIGINT)
    size = Literal(days, Type.BIGINT)
    rest = Call("%", (number, size), Type.BIGINT)
    rest = Call("%", (Call("+", (rest, size), Type.BIGINT), size), Type.BIGINT)
    return Call("date_sub", (day, Call("cast", (rest,), Type.INT)), Type.DATE)

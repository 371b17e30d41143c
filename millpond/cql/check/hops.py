"""TUMBLE and HOP, in brackets and as table functions."""

from millpond.catalog import Catalog, StreamEntry
from millpond.cql.algebra import Filter, HopWindow, Sample, StreamScan, WithTime
from millpond.cql.node import Node
from millpond.cql.text.from_clause import Window
from millpond.cql.text.lengths import ticks_of
from millpond.cql.text.places import StatementError
from millpond.cql.zones import zone_in_force
from millpond.schema import Field, Type
from millpond.time_zones import UTC

MOST_WINDOWS = 1_000
"""So many windows may an element be in at once."""


def hopping(stream: Node, window: Window, catalog: Catalog) -> HopWindow:
    """The relation that TUMBLE or HOP makes of a stream."""
    if window.args.get("time"):
        check_time(stream, window, catalog)
    is_hop = window.args["kind"] == "HOP"
    if is_hop != (window.args.get("slide") is not None):
        raise StatementError(
            "HOP needs a SLIDE: [HOP 10 SECONDS SLIDE 2 SECONDS]"
            if is_hop
            else "TUMBLE has no SLIDE; write [HOP 10 SECONDS SLIDE 2 SECONDS]",
            window,
        )
    if tick_of(stream, catalog) is not None:
        _refuse_local_days(window)
    length = length_of(window, "length", catalog)
    slide = length_of(window, "slide", catalog) if is_hop else length
    offset = window.args.get("offset")
    offset_ticks = 0 if offset is None else ticks_of(offset, catalog.tick_microseconds) % slide
    made = HopWindow(stream, length, slide, offset_ticks, tick_of(stream, catalog))
    if made.at_once > MOST_WINDOWS:
        raise StatementError(
            f"each element would be in {made.at_once:,} windows at once, and {MOST_WINDOWS:,} are "
            "allowed; a longer SLIDE makes fewer",
            window,
        )
    return made


def _refuse_local_days(window: Window) -> None:
    """Refuses days of a time zone in which they are not equally long."""
    zone = zone_in_force()
    for part in ("length", "slide"):
        if zone != UTC and days_of_unit(window, part):
            raise StatementError(
                f"windows that hop are equally long, and days of {zone} have 23 to 25 hours: write "
                "[TUMBLE 1 DAY], or 24 HOURS",
                window.args[part],
            )


def days_of_unit(window: Window, part: str) -> int:
    """How many days the unit of a length of a window has; 0 if it is none of days."""
    length = window.args.get(part)
    unit = None if length is None else length.args.get("unit")
    return 0 if unit is None else _DAYS.get(unit.name.upper().removesuffix("S"), 0)


_DAYS = {"DAY": 1, "WEEK": 7}


def length_of(window: Window, part: str, catalog: Catalog) -> int:
    """A length of a window in ticks, which must be above zero."""
    found = ticks_of(window.args[part], catalog.tick_microseconds)
    if found <= 0:
        raise StatementError(f"the {part} of a window must be above zero", window.args[part])
    return found


def tick_of(stream: Node, catalog: Catalog) -> int | None:
    """The length of a tick, or None if the time of a stream below counts ticks."""
    columns = [time_column(entry) for entry in _streams(stream, catalog)]
    in_ticks = any(column is not None and column.type is not Type.TIMESTAMP for column in columns)
    return None if in_ticks else catalog.tick_microseconds


def _streams(stream: Node, catalog: Catalog) -> list[StreamEntry]:
    names = [node.name for node in stream.walk_into_subqueries() if isinstance(node, StreamScan)]
    found = map(catalog.get, names)
    return [entry for entry in found if isinstance(entry, StreamEntry)]


def time_column(entry: StreamEntry) -> Field | None:
    """The column of TIMESTAMP BY."""
    return None if entry.timestamp_column is None else entry.schema[entry.timestamp_column]


def check_time(stream: Node, window: Window, catalog: Catalog) -> None:
    """Refuses a DESCRIPTOR of anything but the time of a stream."""
    names = window.args["time"]
    while isinstance(stream, (Filter, Sample, WithTime)):
        stream = stream.input
    entries = _streams(stream, catalog) if isinstance(stream, StreamScan) else []
    own = [column.name for entry in entries if (column := time_column(entry)) is not None]
    if not own:
        raise StatementError(
            "DESCRIPTOR takes the column of TIMESTAMP BY, and this stream has none; "
            "write the window in brackets behind it: [TUMBLE 10 SECONDS]",
            names[0],
        )
    if [name.name.lower() for name in names] != [own[0].lower()]:
        raise StatementError(
            f"windows go by the time of the stream: DESCRIPTOR({own[0]})", names[0]
        )

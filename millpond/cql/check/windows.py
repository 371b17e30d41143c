"""Stream to relation: SAMPLE, the window's WHERE and the window, in that order."""

from sqlglot import exp

from millpond.catalog import Catalog
from millpond.cql.algebra import Filter, RangeWindow, RowsWindow, Sample, UntilWindow
from millpond.cql.check.clock import in_units
from millpond.cql.check.day_windows import day_windows, is_of_days
from millpond.cql.check.expressions import analyser
from millpond.cql.check.hops import hopping
from millpond.cql.check.scope import Scope
from millpond.cql.check.sessions import sessions
from millpond.cql.coercion import with_article
from millpond.cql.expressions import Column
from millpond.cql.node import Node
from millpond.cql.text.from_clause import FromItem, Length, Window
from millpond.cql.text.lengths import number_of, ticks_of
from millpond.cql.text.places import StatementError, StatementText
from millpond.cql.zones import instant_of
from millpond.schema import Type

MAX_ROWS = 2**31 - 1


def windowed(
    stream: Node, item: FromItem, scope: Scope, catalog: Catalog, text: StatementText
) -> Node:
    """The relation that an item of FROM makes of a stream; without a window, unbounded."""
    sample, window = item.args.get("sample"), item.args.get("window")
    if sample is not None:
        stream = Sample(stream, _percent(sample))
    if window is None:
        return RangeWindow(stream, None)
    where = window.args.get("where")
    if where is not None:
        condition = analyser(scope, "a window's WHERE").predicate(where)
        stream = Filter(stream, condition, text.written("WHERE", where))
    if window.args.get("offset") is not None and window.args["kind"] not in ("TUMBLE", "HOP"):
        raise StatementError("OFFSET goes with TUMBLE and HOP", window.args["offset"])
    if window.args["kind"] == "ROWS":
        return _rows(stream, window, scope)
    if window.args["kind"] == "SESSION":
        return sessions(stream, window, _partition(window, scope), catalog)
    if window.args.get("partition"):
        raise StatementError("PARTITION BY in a window goes with ROWS and SESSION", window)
    if window.args["kind"] in ("TUMBLE", "HOP"):
        if is_of_days(stream, window, catalog):
            return day_windows(stream, window, catalog)
        return hopping(stream, window, catalog)
    if window.args["kind"] == "UNTIL":
        return _until(stream, window.args["until"], scope, catalog, text)
    return _range(stream, window, catalog.tick_microseconds)


def _until(
    stream: Node, node: exp.Expr, scope: Scope, catalog: Catalog, text: StatementText
) -> UntilWindow:
    """The elements of a stream, each until the time that it tells itself."""
    value = analyser(scope, "a window").expression(node)
    if value.type not in (Type.TIMESTAMP, Type.DATE, Type.BIGINT, Type.INT):
        raise StatementError(
            f"UNTIL takes a TIMESTAMP, or a whole number of ticks, not {with_article(value.type)}: "
            "[UNTIL expires]; for a length of time write [RANGE 5 MINUTES]",
            node,
        )
    is_number = value.type.is_number
    units = 1 if is_number else catalog.tick_microseconds
    until = in_units(value if is_number else instant_of(value))
    return UntilWindow(stream, until, units, text.written("UNTIL", node))


def _percent(node: exp.Expr) -> float:
    negative = isinstance(node, exp.Neg)
    percent = float(node.this.this if negative else node.this)
    if negative or not 0 < percent <= 100:
        raise StatementError("SAMPLE takes a percentage above 0 and up to 100", node)
    return percent


def _range(stream: Node, window: Window, tick_microseconds: int) -> Node:
    kind = window.args["kind"]
    if kind != "RANGE":
        return RangeWindow(stream, 0 if kind == "NOW" else None)
    length = ticks_of(window.args["length"], tick_microseconds)
    if length < 0:
        raise StatementError("the length of a window cannot be negative", window.args["length"])
    slide = window.args.get("slide")
    if slide is None:
        return RangeWindow(stream, length)
    slide_ticks = ticks_of(slide, tick_microseconds)
    if slide_ticks <= 0:
        raise StatementError("SLIDE must be above zero", slide)
    return RangeWindow(stream, length, slide_ticks)


def _rows(stream: Node, window: Window, scope: Scope) -> Node:
    rows = _row_count(window.args["length"], "ROWS")
    slide = window.args.get("slide")
    slide_rows = None if slide is None else _row_count(slide, "SLIDE")
    return RowsWindow(stream, rows, slide_rows, _partition(window, scope))


def _partition(window: Window, scope: Scope) -> tuple[Column, ...]:
    """The columns behind PARTITION BY."""
    names = analyser(scope, "PARTITION BY")
    partition = []
    for node in window.args.get("partition") or ():
        column = names.expression(node)
        if not isinstance(column, Column):
            raise StatementError("PARTITION BY takes columns", node)
        partition.append(column)
    return tuple(partition)


def _row_count(length: Length, word: str) -> int:
    if length.args.get("unit") is not None:
        raise StatementError(
            f"{word} counts elements; for a length of time use RANGE", length.args["unit"]
        )
    number = number_of(length)
    if not number.isdigit() or not 0 < int(number) <= MAX_ROWS:
        raise StatementError(f"{word} takes a whole number from 1 to {MAX_ROWS:,}", length)
    return int(number)

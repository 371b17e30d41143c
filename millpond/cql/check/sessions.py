"""SESSION, in brackets and as a table function."""

from millpond.catalog import Catalog
from millpond.cql.algebra import SessionWindow
from millpond.cql.check.hops import check_time, length_of, tick_of
from millpond.cql.expressions import Column
from millpond.cql.node import Node
from millpond.cql.text.from_clause import Window
from millpond.cql.text.places import StatementError


def sessions(
    stream: Node, window: Window, partition: tuple[Column, ...], catalog: Catalog
) -> SessionWindow:
    """The relation that SESSION makes of a stream."""
    if window.args.get("time"):
        check_time(stream, window, catalog)
    slide = window.args.get("slide")
    if slide is not None:
        raise StatementError(
            "SESSION has no SLIDE, for sessions begin and end with their elements; "
            "write [SESSION 10 MINUTES PARTITION BY a]",
            slide,
        )
    gap = length_of(window, "length", catalog)
    return SessionWindow(stream, gap, partition, tick_of(stream, catalog))

"""ALTER QUERY … SET WINDOW OF: a query's text with another length of one of its windows."""

from millpond.catalog import Catalog, QueryEntry
from millpond.cql.check.queries import QueryAnalyser
from millpond.cql.node import Node
from millpond.cql.text.from_clause import FromItem, Window
from millpond.cql.text.parse import parse_statement
from millpond.cql.text.places import StatementError, StatementText
from millpond.cql.text.syntax import CreateQueryStatement, WindowLength

ANEW = "DROP the query and CREATE it anew"


def with_length(entry: QueryEntry, change: WindowLength, catalog: Catalog) -> tuple[Node, str]:
    """The plan and the text of a query with another length of one window.

    The text is checked as if it were registered now, so views and the zone must be what they were.
    """
    if not entry.text or _checked(entry.text, entry, catalog) != entry.plan:
        raise StatementError(
            f'query "{entry.name}" reads a view that was dropped since, or was registered in '
            f"another time zone than {catalog.time_zone}: SET time_zone as it was, or {ANEW}",
            change.source.offset,
        )
    first, last = _place(entry, change)
    text = entry.text[:first] + change.length + entry.text[last:]
    try:
        return _checked(text, entry, catalog), text
    except StatementError as error:
        raise StatementError(error.message, change.offset) from None


def lengths_changed(old: str, new: str) -> list[tuple[str, str, str]] | None:
    """The windows of which one text of a query says another length than the other: what they are
    of, RANGE or ROWS, and the length. None if more differs, or the new one is no query."""
    try:
        before, after = _windows(old), _windows(new)
    except StatementError:
        return None
    if [each[:2] for each in before] != [each[:2] for each in after]:
        return None
    lengths = [new[slice(*place)] for _, _, place in after]
    text = old
    for (_, _, (first, last)), length in reversed(list(zip(before, lengths, strict=True))):
        text = text[:first] + length + text[last:]
    if text.split() != new.split():
        return None
    pairs = zip(before, lengths, strict=True)
    return [(name, kind, to) for (name, kind, at), to in pairs if old[slice(*at)] != to]


def _windows(text: str) -> list[tuple[str, str, tuple[int, int]]]:
    """The windows with a length in the text of a query, in order: what they are of, their kinds,
    and where their lengths stand."""
    items = [node for node in _syntax(text).query.walk() if isinstance(node, FromItem)]
    windows = [(_name(item), item.args.get("window")) for item in items]
    found = [
        (name, str(window.args["kind"]), tuple(window.args["length"].meta["text"]))
        for name, window in windows
        if window is not None and window.args.get("length") is not None
    ]
    return sorted(found, key=lambda each: each[2])


def _syntax(text: str) -> CreateQueryStatement:
    syntax = parse_statement(text)
    if not isinstance(syntax, CreateQueryStatement):
        raise StatementError("this is no query", 0)
    return syntax


def _checked(text: str, entry: QueryEntry, catalog: Catalog) -> Node:
    """The plan of a text that stands where that of the query does: faults name their places."""
    analyser = QueryAnalyser(catalog, StatementText(text, entry.position))
    return analyser.whole(_syntax(text).query).plan


def _place(entry: QueryEntry, change: WindowLength) -> tuple[int, int]:
    """Where the length of the window stands in the text of a query."""
    items = [node for node in _syntax(entry.text).query.walk() if isinstance(node, FromItem)]
    windows = [(_name(item), item.args.get("window")) for item in items]
    name, place = change.source.text, change.source.offset
    found = [window for each, window in windows if each.lower() == name.lower()]
    if not found:
        known = ", ".join(sorted({each for each, window in windows if window})) or "none"
        message = f'no "{name}" in the FROM of query "{entry.name}"; it has windows of: {known}'
        raise StatementError(message, place)
    if len(found) > 1:
        message = f'"{name}" stands {len(found)} times in the FROM of query "{entry.name}"'
        raise StatementError(f"{message}: {ANEW}, with an alias for each", place)
    return _length_of(found[0], entry, change)


def _length_of(window: Window | None, entry: QueryEntry, change: WindowLength) -> tuple[int, int]:
    kind = "UNBOUNDED" if window is None else str(window.args["kind"])
    if window is None or kind != change.kind:
        raise StatementError(
            f'the window of "{change.source.text}" in query "{entry.name}" is {kind}; only the '
            f"length of a window can be changed: {ANEW}",
            change.source.offset,
        )
    first, last = window.args["length"].meta["text"]
    return int(first), int(last)


def _name(item: FromItem) -> str:
    """What an item of FROM is called in its query."""
    alias = item.args.get("alias")
    return str((item.this if alias is None else alias).name)

"""A query whose text was edited: altered where only lengths of windows differ, else replaced."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from millpond.catalog import QueryEntry
from millpond.cql.check.window_lengths import lengths_changed
from millpond.cql.text.split import split_statements
from millpond.entities.catalogued import quoted
from millpond.errors import CqlError, MillpondError
from millpond.server.faults import RequestError
from millpond.server.service import Service

How = Literal["same", "altered", "replaced"]

LINES_ABOVE = 2
"""Where a query is replaced its text stands below so many lines of statements."""

MEANINGS: dict[How, str] = {
    "same": "Nothing differs.",
    "altered": "It is altered: it begins anew with what comes next, and its results go on in one "
    "log, with its readers and its sink.",
    "replaced": "It is replaced: the query is dropped with its results, its readers are told that "
    "it ends, and one of the same name begins with what comes next.",
}


@dataclass(frozen=True)
class Edit:
    """What makes the query that there is one of another text."""

    how: How
    statements: tuple[str, ...]
    difference: tuple[str, ...]
    """Lines of a unified difference, without its heading."""

    @property
    def meaning(self) -> str:
        """What happens to the query."""
        return MEANINGS[self.how]


def edited(service: Service, entry: QueryEntry, text: str, replaces: bool = False) -> Edit:
    """How a query becomes one of another text, checked; raises ``CqlError`` where it cannot.

    ``replaces``: it is replaced even where it could be altered.
    """
    new = text.strip().rstrip(";").strip()
    if len(split_statements(new)) != 1:
        raise RequestError(400, "text is one SELECT, and nothing behind it")
    difference = tuple(_difference(entry.text.strip(), new))
    if _plain(entry.text) == _plain(new):
        return Edit("same", (), ())
    if not replaces:
        altering = _altering(service, entry, new)
        if altering:
            return Edit("altered", altering, difference)
    statements = (f"DROP QUERY {quoted(entry.name)}", creating(entry, new))
    list(service.checked(";\n".join(statements)))
    return Edit("replaced", statements, difference)


def _altering(service: Service, entry: QueryEntry, new: str) -> tuple[str, ...]:
    """The statements that alter a query, if all that differs are lengths of windows."""
    try:
        changes = lengths_changed(entry.text, new)
        if not changes:
            return ()
        statements = tuple(
            f"ALTER QUERY {quoted(entry.name)} SET WINDOW OF {quoted(source)} = {kind} {length}"
            for source, kind, length in changes
        )
        list(service.checked(";\n".join(statements)))
    except CqlError:
        return ()
    return statements


def creating(entry: QueryEntry, text: str) -> str:
    """The statement that creates a query as it is, but for its text."""
    parts = [f"CREATE QUERY {quoted(entry.name)} WEIGHT {entry.weight!r}"]
    parts += [] if entry.active else ["INACTIVE"]
    parts += ["ON ERROR SKIP"] if entry.on_error == "skip" else []
    parts += ["EXACT" if entry.tolerates is None else str(entry.tolerates)]
    into = "" if entry.sink is None else f"\nINTO {entry.sink}"
    return f"{' '.join(parts)} AS\n{text}{into}"


def edit(service: Service, entry: QueryEntry, text: str, replaces: bool) -> Edit:
    """Makes a query one of another text; raises ``RequestError`` where it would be replaced and
    nobody has said that it may."""
    found = edited(service, entry, text, replaces)
    if found.how == "replaced" and not replaces:
        raise RequestError(
            409, f'query "{entry.name}" can not be altered to that; with replace it is replaced'
        )
    if found.statements:
        try:
            service.execute(";\n".join(found.statements))
        except MillpondError:
            if service.engine.catalog.get(entry.name) is None:
                service.execute(creating(entry, entry.text))  # the old one is better than none
            raise
    return found


def _plain(text: str) -> str:
    return " ".join(text.strip().rstrip(";").split())


def _difference(old: str, new: str) -> Iterator[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=100, lineterm="")
    return (line for line in lines if not line.startswith(("---", "+++", "@@")))

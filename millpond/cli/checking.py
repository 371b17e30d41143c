"""Checks a script as far as that goes without data: statements, settings, connectors."""

from __future__ import annotations

from collections.abc import Iterator

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry
from millpond.connectors.registry import check_connector
from millpond.cql import check_script
from millpond.cql.statements import Create, Statement
from millpond.errors import CqlError, InputError
from millpond.settings import Settings


def checked(text: str, settings: Settings) -> Iterator[Statement]:
    """The statements of a script, each checked when its turn comes; raises ``CqlError``."""
    for statement in check_script(text, Catalog(settings.tick_microseconds)):
        try:
            _check_connectors(statement)
        except InputError as error:
            raise CqlError(str(error), statement.position) from None
        yield statement


def _check_connectors(statement: Statement) -> None:
    entry = statement.action.entry if isinstance(statement.action, Create) else None
    if isinstance(entry, StreamEntry | RelationEntry):
        check_connector(entry.source, "source")
    elif isinstance(entry, QueryEntry) and entry.sink is not None:
        check_connector(entry.sink, "sink")

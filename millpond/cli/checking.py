"""Checks a script as far as that goes without data: statements, settings, connectors."""

from __future__ import annotations

from collections.abc import Iterator

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry
from millpond.connectors.registry import check_connector
from millpond.cql import check_script
from millpond.cql.statements import Create, SetOption, Statement
from millpond.errors import CqlError, MillpondError
from millpond.settings import Settings


def checked(text: str, settings: Settings) -> Iterator[Statement]:
    """The statements of a script, each checked when its turn comes; raises ``CqlError``."""
    for statement in check_script(text, Catalog(settings.tick_microseconds)):
        try:
            settings = _check_names(statement, settings)
        except MillpondError as error:
            raise CqlError(str(error), statement.position) from None
        yield statement


def _check_names(statement: Statement, settings: Settings) -> Settings:
    action = statement.action
    if isinstance(action, SetOption):
        return settings.with_option(action.key, str(action.value))
    if isinstance(action, Create) and isinstance(action.entry, StreamEntry | RelationEntry):
        check_connector(action.entry.source, "source")
    if isinstance(action, Create) and isinstance(action.entry, QueryEntry) and action.entry.sink:
        check_connector(action.entry.sink, "sink")
    return settings

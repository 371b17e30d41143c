"""Checks a script as far as that goes without data: statements, settings, connectors."""

from collections.abc import Iterator

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry
from millpond.connectors.registry import check_connector
from millpond.cql.check.statements import check_script
from millpond.cql.statements import Create, SetOption, Statement
from millpond.errors import CqlError, InputError, StrategyError
from millpond.scheduling.strategy_text import engine_strategy
from millpond.settings import Settings


def checked(text: str, settings: Settings) -> Iterator[Statement]:
    """The statements of a script, each checked when its turn comes; raises ``CqlError``."""
    for statement in check_script(text, Catalog(settings.tick_microseconds)):
        try:
            _check_connectors(statement)
            settings = _changed(settings, statement)
        except (InputError, StrategyError) as error:
            raise CqlError(str(error), statement.position) from None
        yield statement


def _changed(settings: Settings, statement: Statement) -> Settings:
    """The settings behind a SET; raises ``StrategyError`` if no engine could run with them."""
    action = statement.action
    if not isinstance(action, SetOption):
        return settings
    settings = settings.with_option(action.key, str(action.value))
    engine_strategy(settings.strategy, settings.budget_bytes, settings.mode)
    return settings


def _check_connectors(statement: Statement) -> None:
    entry = statement.action.entry if isinstance(statement.action, Create) else None
    if isinstance(entry, StreamEntry | RelationEntry):
        check_connector(entry.source, "source")
    elif isinstance(entry, QueryEntry) and entry.sink is not None:
        check_connector(entry.sink, "sink")

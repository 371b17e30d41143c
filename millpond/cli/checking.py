"""Checks a script as far as that goes without data: statements, settings, connectors."""

from collections.abc import Iterator

from millpond.catalog import Catalog
from millpond.connectors.registry import check_connectors
from millpond.cql.check.statements import check_script
from millpond.cql.statements import SetOption, Statement
from millpond.errors import CqlError, InputError, StrategyError
from millpond.scheduling.strategy_text import engine_strategy
from millpond.settings import Settings


def checked(text: str, settings: Settings) -> Iterator[Statement]:
    """The statements of a script, each checked when its turn comes; raises ``CqlError``."""
    catalog = Catalog(settings.tick_microseconds, time_zone=settings.time_zone)
    for statement in check_script(text, catalog):
        try:
            check_connectors(getattr(statement.action, "entry", None))
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

"""SET: a setting is changed while there is an engine, as far as that still changes anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millpond.catalog import QueryEntry
from millpond.cql.apply import apply
from millpond.cql.statements import SetOption
from millpond.errors import StateError
from millpond.scheduling.strategy_text import engine_strategy
from millpond.settings import Settings, refuse_late_change

if TYPE_CHECKING:
    from millpond.facade.engine import Engine


def setting(engine: Engine, action: SetOption) -> Callable[[], None]:
    """What does what SET says, and what can be refused is; the lock is held."""
    key, is_replaying = action.key.lower(), engine.journal.is_replaying
    if is_replaying and key == "store":
        return lambda: None  # the store is where it is found
    settings = engine.settings.with_option(action.key, str(action.value))
    moves = not is_replaying and settings.store != engine.settings.store
    if not is_replaying:
        _refuse(engine, action.key, settings)
    strategy = engine_strategy(settings.strategy, settings.budget_bytes, settings.mode)
    if key == "tick":
        apply(action, engine.catalog.copy())

    def set_it() -> None:
        if moves:
            engine.move_to(settings.store)
        if key == "tick":
            apply(action, engine.catalog)
        engine.use(settings)
        if key in ("strategy", "mode", "budget"):
            engine.use_strategy(strategy)

    return set_it


def _refuse(engine: Engine, key: str, settings: Settings) -> None:
    """Refuses what comes too late."""
    has_queries = any(engine.catalog.of_kind(QueryEntry))
    refuse_late_change(key, engine.lazy_spark.is_started, engine.has_runtime, has_queries)
    moves = settings.store != engine.settings.store
    if moves and (engine.catalog.entries or engine.has_runtime):
        raise StateError(
            "SET store comes before everything that is kept there: make it the first statement"
        )

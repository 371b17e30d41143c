"""SET: a setting is changed while there is an engine, as far as that still changes anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from millpond.catalog import QueryEntry
from millpond.cql.apply import apply
from millpond.cql.statements import SetOption
from millpond.errors import StateError
from millpond.scheduling.strategy import Strategy
from millpond.scheduling.strategy_text import engine_strategy
from millpond.settings import Settings, refuse_late_change
from millpond.sharing.queries import Queries


class Whole(Protocol):
    """The engine as a whole, as statements need it."""

    def use(self, settings: Settings) -> None:
        """Goes on with other settings."""
        ...

    def use_strategy(self, strategy: Strategy) -> None:
        """Has another strategy decide from now on."""
        ...

    def move_to(self, location: str) -> None:
        """Has everything in another store."""
        ...

    def validate_if_set(self) -> None:
        """Checks that all parts agree, if the setting says so."""
        ...


def setting(queries: Queries, whole: Whole, action: SetOption) -> Callable[[], None]:
    """What does what SET says, and what can be refused is; the lock is held."""
    ground = queries.ground
    key, is_replaying = action.key.lower(), ground.journal.is_replaying
    if is_replaying and key == "store":
        return lambda: None  # the store is where it is found
    settings = ground.settings.with_option(action.key, str(action.value))
    moves = not is_replaying and settings.store != ground.settings.store
    if not is_replaying:
        _refuse(queries, action.key, settings)
    strategy = engine_strategy(settings.strategy, settings.budget_bytes, settings.mode)
    if key == "tick":
        apply(action, ground.catalog.copy())

    def set_it() -> None:
        if moves:
            whole.move_to(settings.store)
        if key == "tick":
            apply(action, ground.catalog)
        whole.use(settings)
        if key in ("strategy", "mode", "budget"):
            whole.use_strategy(strategy)

    return set_it


def _refuse(queries: Queries, key: str, settings: Settings) -> None:
    """Refuses what comes too late."""
    ground = queries.ground
    has_queries = any(ground.catalog.of_kind(QueryEntry))
    refuse_late_change(key, ground.lazy_spark.is_started, queries.has_runtime, has_queries)
    moves = settings.store != ground.settings.store
    if moves and (ground.catalog.entries or queries.has_runtime):
        raise StateError(
            "SET store comes before everything that is kept there: make it the first statement"
        )

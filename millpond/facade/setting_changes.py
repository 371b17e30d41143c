"""SET: a setting is changed while there is an engine, as far as that still changes anything."""

import logging
from dataclasses import replace
from typing import Protocol

from millpond.catalog import QueryEntry, StreamEntry
from millpond.cql.apply import apply
from millpond.cql.statements import SetOption
from millpond.errors import StateError
from millpond.scheduling.strategy import Strategy
from millpond.scheduling.strategy_text import engine_strategy
from millpond.settings import Settings, refuse_late_change
from millpond.sharing.queries import Queries
from millpond.tracing.telling import check_packages

logger = logging.getLogger("millpond")


class Whole(Protocol):
    """The engine as a whole, as statements need it."""

    def use(self, settings: Settings) -> None:
        """Goes on with other settings."""

    def use_strategy(self, strategy: Strategy) -> None:
        """Has another strategy decide from now on."""

    def use_partitions(self) -> None:
        """Has the partitions be as they are declared."""

    def move_to(self, location: str) -> None:
        """Has everything in another store."""

    def validate_if_set(self) -> None:
        """Checks that all parts agree, if the setting says so."""


def refuse_setting(queries: Queries, action: SetOption) -> None:
    """Refuses what cannot be set, or comes too late; the lock is held."""
    ground = queries.ground
    settings = _with(queries, action)
    has_queries = any(ground.catalog.of_kind(QueryEntry))
    refuse_late_change(action.key, ground.lazy_spark.is_started, queries.has_runtime, has_queries)
    moves = settings.store != ground.settings.store
    if moves and (ground.catalog.entries or queries.has_runtime):
        raise StateError(
            "SET store comes before everything that is kept there: make it the first statement"
        )
    if action.key.lower() == "durability" and not ground.store.is_durable:
        raise StateError(
            "SET durability is about a store that lasts: SET store = 'DIRECTORY' first, or --store"
        )
    if settings.working_directory != ground.settings.working_directory and ground.store.is_durable:
        raise StateError("SET working_directory comes before SET store, which makes use of it")
    engine_strategy(settings.strategy, settings.budget_bytes, settings.mode)
    check_packages(settings)
    apply(action, ground.catalog.copy())


def use_setting(queries: Queries, whole: Whole, action: SetOption) -> None:
    """Does what SET says."""
    key, settings = action.key.lower(), _with(queries, action)
    if key == "store":
        return  # it is where it is found
    apply(action, queries.ground.catalog)
    whole.use(settings)
    if key in ("strategy", "mode", "budget"):
        whole.use_strategy(queries.partitioning.strategy())
        queries.partitioning.tell()
    if not settings.latency_seconds:
        _keep_as_said(queries)


def _keep_as_said(queries: Queries) -> None:
    """Without a latency the engine drops nothing by itself: what it had decided counts no more."""
    ground = queries.ground
    for entry in list(ground.catalog.of_kind(StreamEntry)):
        if entry.shed_percent is not None:
            kept = replace(entry, shed_percent=None)
            ground.catalog.replace(kept)
            ground.inputs.use_entry(kept.identity)
            ground.inputs.kept_because[kept.identity] = "no latency is set any more"
            logger.info(
                "stream %s keeps %g percent from now on: no latency is set any more",
                kept.name,
                kept.kept_percent,
            )


def _with(queries: Queries, action: SetOption) -> Settings:
    return queries.ground.settings.with_option(action.key, str(action.value))

"""The control tables of the engine and its scheduler; their knobs are the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millpond.catalog import QueryEntry
from millpond.entities.attributes import Attribute, Read, Write, integer, knob, number, text
from millpond.entities.catalogued import QUERY, RELATION, STREAM
from millpond.entities.control_tables import Entities, Kind
from millpond.entities.controlled import Controlled
from millpond.entities.partitions import PARTITION
from millpond.entities.running import OPERATOR, QUEUE, SYNOPSIS, THREAD, UNIT
from millpond.settings import OF_THE_OWNER, Change, Settings

if TYPE_CHECKING:
    from millpond.execution.runtime import EngineRuntime

OF_SCHEDULER = ("strategy", "mode", "slice", "processors")
"""The settings that are knobs of the scheduler; the others are the engine's."""


def _setting(key: str) -> Read:
    return lambda view, _: next(v for k, v, *_ in view.ground.settings_now.listing() if k == key)


def _set(key: str) -> Write:
    def write(view: Controlled, _: str, value: Any) -> None:
        written = str(value).replace("'", "''")
        view.execute(f"SET {key} = '{written}'")

    return write


def _settings(of_scheduler: bool) -> tuple[Attribute, ...]:
    """Settings as attributes: knobs, if they may change at any time."""
    found = []
    for key, _, meaning, change in Settings().listing():
        if (key in OF_SCHEDULER) is not of_scheduler:
            continue
        is_knob = change == Change.ANY_TIME.value and key not in OF_THE_OWNER
        found.append(
            knob(key, "text", meaning, _setting(key), _set(key))
            if is_knob
            else text(key, f"{meaning}; changes {change}", _setting(key))
        )
    return tuple(found)


def _of_runtime(read: Callable[[EngineRuntime], Any]) -> Read:
    return lambda view, _: read(view.runtime) if view.has_runtime else 0


def _load(runtime: EngineRuntime) -> float:
    return sum(each.busy.per_second() for each in runtime.statistics.values())


ENGINE = Kind(
    "engine",
    "the engine as a whole",
    lambda view: ["engine"],
    (
        integer(
            "queries",
            "registered queries",
            lambda e, _: len(list(e.ground.catalog.of_kind(QueryEntry))),
        ),
        integer("failures", "queries that have failed", lambda e, _: len(list(e.queries.failures))),
        integer(
            "backlog_bytes", "what waits in queues", _of_runtime(lambda r: r.backlog.bytes), "bytes"
        ),
        integer("backlog_rows", "rows that wait", _of_runtime(lambda r: r.backlog.rows), "rows"),
        integer(
            "peak_backlog_bytes",
            "the most that has waited",
            _of_runtime(lambda r: r.backlog.peak_bytes),
            "bytes",
        ),
        integer(
            "memory_bytes",
            "what queues hold in memory, windows included",
            _of_runtime(lambda r: r.backlog.memory_bytes),
            "bytes",
        ),
        integer(
            "budget_bytes",
            "the memory for what waits, what windows retain, what is kept and what caches hold",
            lambda e, _: e.ground.budget.limit_bytes,
            "bytes",
        ),
        number("load", "seconds of work in a second", _of_runtime(_load)),
        integer("driver_steps", "steps in the driver", _of_runtime(lambda r: r.tally.driver_steps)),
        integer(
            "executor_steps",
            "steps on Spark's executors",
            _of_runtime(lambda r: r.tally.executor_steps),
        ),
        *_settings(of_scheduler=False),
    ),
)

SCHEDULER = Kind(
    "scheduler",
    "what decides which operator works next",
    lambda view: ["scheduler"],
    (
        *_settings(of_scheduler=True),
        text(
            "falls_behind",
            "why the strategy cannot keep up with what comes; empty if it can",
            lambda e, _: e.queries.partitioning.falls_behind,
        ),
        integer(
            "at_once", "steps that may run at once", _of_runtime(lambda r: r.limits.processors)
        ),
    ),
)

KINDS = (
    *(ENGINE, SCHEDULER, QUERY, STREAM, RELATION, OPERATOR, QUEUE, SYNOPSIS, UNIT, THREAD),
    PARTITION,
)


def entities(view: Controlled) -> Entities:
    """Everything that runs in an engine."""
    return Entities(view, KINDS)

"""The control tables of partitions that users have made."""

from __future__ import annotations

from typing import Any

from millpond.catalog import PartitionEntry
from millpond.entities.attributes import Write, integer, knob, number, text
from millpond.entities.catalogued import quoted
from millpond.entities.control_tables import Kind
from millpond.entities.controlled import Controlled
from millpond.errors import StateError


def _entry(view: Controlled, name: str) -> PartitionEntry:
    entry = view.ground.catalog.get(name)
    if not isinstance(entry, PartitionEntry):
        raise StateError(f'no partition "{name}"')
    return entry


def _option(word: str) -> Write:
    def write(view: Controlled, name: str, value: Any) -> None:
        told = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
        view.execute(f"ALTER PARTITION {quoted(name)} {word} {told}")

    return write


def _load(view: Controlled, name: str) -> float:
    operators = view.queries.partitioning.operators(name)
    return sum(view.runtime.statistics[each].busy.per_second() for each in operators)


PARTITION = Kind(
    "partition",
    "queries and operators that some threads execute by one strategy",
    lambda view: [entry.name for entry in view.queries.partitioning.entries],
    (
        knob(
            "strategy",
            "text",
            "its strategy; empty: the one that is set",
            lambda e, p: _entry(e, p).strategy,
            _option("STRATEGY"),
        ),
        knob(
            "threads",
            "integer",
            "how many of its steps may run at once",
            lambda e, p: _entry(e, p).threads,
            _option("THREADS"),
            above=0,
        ),
        knob(
            "priority",
            "number",
            "its share of the processors beside others; what is in none has 1",
            lambda e, p: _entry(e, p).priority,
            _option("PRIORITY"),
            above=0,
        ),
        text(
            "queries",
            "the queries in it",
            lambda e, p: ", ".join(e.queries.partitioning.queries(p)),
        ),
        text(
            "operators",
            "its operators",
            lambda e, p: ", ".join(e.queries.partitioning.operators(p)),
        ),
        integer(
            "under_way", "its steps that run now", lambda e, p: e.queries.partitioning.under_way(p)
        ),
        integer(
            "waiting_rows",
            "rows that wait for its operators",
            lambda e, p: e.queries.partitioning.waiting_rows(p),
            "rows",
        ),
        number("load", "how busy it is", _load),
    ),
    activity="load",
)

"""What is in a stream or relation, and who reads it."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from millpond.catalog import QueryEntry, RelationEntry, StreamEntry, ViewEntry
from millpond.connectors import arrow_schema
from millpond.connectors.json_values import json_value
from millpond.connectors.nested import outside_table
from millpond.connectors.python_values import python_values
from millpond.cql.apply import scanned
from millpond.facade.engine import Engine
from millpond.identities import OperatorId
from millpond.insight.operator_names import named_queries
from millpond.schema import BEGINNING, FOREVER
from millpond.sharing.waits import time_text
from millpond.storage.pages import concatenated
from millpond.storage.queues import Queue

TIMES_AND_COUNTS = ("_ts", "_te", "_w", "_seq")
"""What pages have beside the columns of their input."""


def last_tuples(engine: Engine, entry: StreamEntry, most: int) -> list[dict[str, Any]]:
    """The tuples of a stream that came last, the last one first: their times and rows."""
    with engine.held():
        queue = engine.inputs.streams[entry.identity].queue
        table = queue.latest.table()
        if table is None:  # none has come in this run: what is retained of earlier ones
            table = concatenated(queue.between(BEGINNING - 1, FOREVER)[-1:], queue.schema)
    table = table.slice(max(0, table.num_rows - most))
    times = [_time(engine, queue, ticks) for ticks in table["_ts"].to_pylist()]
    rows = _rows(table, entry)
    return [{"ts": ts, "row": row} for ts, row in zip(times, rows, strict=True)][::-1]


def _time(engine: Engine, queue: Queue, ticks: int) -> str | None:
    return None if ticks <= BEGINNING else time_text(engine.catalog, queue, ticks)


def _rows(table: pa.Table, entry: StreamEntry | RelationEntry) -> Iterator[dict[str, Any]]:
    names = entry.schema.names
    data = [name for name in table.column_names if name not in TIMES_AND_COUNTS][: len(names)]
    shown = outside_table(table.select(data), entry.schema.types)
    columns = [[json_value(v) for v in python_values(column)] for column in shown.columns]
    rows = zip(*columns, strict=True) if columns else iter([()] * table.num_rows)
    return (dict(zip(names, row, strict=True)) for row in rows)


def content(engine: Engine, entry: RelationEntry) -> pa.Table:
    """The rows of a relation now: ts (NULL), weight, and its columns."""
    with engine.held():
        held = engine.inputs.relation(entry.name).content()
    schema = arrow_schema(entry.schema)
    data = held.select(range(held.num_columns - len(schema), held.num_columns))
    columns = [pa.nulls(held.num_rows, pa.int64()), held["_w"], *data.columns]
    table = pa.table(columns, names=["ts", "weight", *schema.names])
    return outside_table(table, entry.schema.types, first=2)


def readers(engine: Engine, name: str) -> list[dict[str, str]]:
    """Who reads a stream or relation: the views, and the queries, also through views."""
    with engine.held():
        views = [
            {"kind": "view", "name": entry.name}
            for entry in engine.catalog.of_kind(ViewEntry)
            if _reads(entry.plan, name)
        ]
        running = dict.fromkeys(_running_readers(engine, name))
        inactive = (
            entry.name
            for entry in engine.catalog.of_kind(QueryEntry)
            if entry.identity not in engine.queries.outputs and _reads(entry.plan, name)
        )
        queries = dict.fromkeys([*running, *inactive])
        return views + [{"kind": "query", "name": each} for each in queries]


def _reads(plan: Any, name: str) -> bool:
    return any(each.lower() == name.lower() for each in scanned(plan))


def _running_readers(engine: Engine, name: str) -> Iterator[str]:
    """The queries that run and depend on an input; those of a group are all of its."""
    operators: dict[OperatorId, None] = {}
    for queue in engine.inputs.queues_of(name):
        operators |= dict.fromkeys(engine.graph.readers(queue.name))
    outputs = dict.fromkeys(q.asked_by for each in operators for q in engine.graph.queries(each))
    yield from named_queries(engine.queries, outputs)

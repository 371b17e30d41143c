"""The tuples that pass a queue, for whoever wants to see them (the STREAM paper's future work).

A watcher is a reader of the queue like any operator, so nothing is missed while it keeps up; it
works on nothing, so nobody counts what waits for it as backlog.
"""

from typing import Any

from millpond.connectors.json_values import json_value
from millpond.connectors.nested import outside_table
from millpond.connectors.python_values import python_values
from millpond.facade.engine import Engine
from millpond.identities import OperatorId, QueueId
from millpond.schema import Schema
from millpond.server.faults import not_found
from millpond.storage.pages import concatenated
from millpond.storage.readers import Reader

MOST_ROWS = 100
"""So many tuples are shown at a time; the others are counted."""


class Watcher:
    """Reads a queue until it is closed."""

    def __init__(self, engine: Engine, queue: str) -> None:
        self._engine = engine
        with engine.held():
            found = engine.inputs.queues.get(QueueId(queue))
            if found is None:
                raise not_found(f'no queue "{queue[:100]}"')
            self._queue = found
            self._reader = self._queue.subscribe(Reader(self._queue.heartbeat, works=False))
            self._schema = self._columns(found.name)

    def _columns(self, queue: QueueId) -> Schema:
        operators = self._engine.graph.operators
        if isinstance(queue, OperatorId) and queue in operators:
            return operators[queue].schema
        entry = self._engine.catalog.get(queue.input)
        found: Schema = Schema(()) if entry is None else getattr(entry, "schema")  # noqa: B009
        return found

    def passed(self) -> dict[str, Any]:
        """The tuples that have passed since the last time: how many, and the first of them."""
        with self._engine.held():
            if self._engine.inputs.queues.get(self._queue.name) is not self._queue:
                raise not_found("the queue is gone")
            spans = self._queue.between(self._reader.cursor, self._queue.heartbeat)
            table = concatenated(spans, self._queue.schema) if spans else None
            self._reader.cursor = max(self._reader.cursor, self._queue.heartbeat)
            self._queue.free()
        if table is None:
            return {"passed": 0, "tuples": []}
        data = [n for n in table.column_names if n not in ("_ts", "_te", "_w", "_seq")]
        some = table.slice(max(0, table.num_rows - MOST_ROWS))
        is_known = len(self._schema) == len(data)
        names = list(self._schema.names) if is_known else data
        shown = outside_table(some.select(data), self._schema.types if is_known else ())
        columns = [[json_value(v) for v in python_values(column)] for column in shown.columns]
        times = some["_ts"].to_pylist()
        weights = some["_w"].to_pylist() if "_w" in some.column_names else [1] * some.num_rows
        rows = zip(*columns, strict=True) if columns else ((),) * some.num_rows
        tuples = [
            {"ts": str(ts), "weight": weight, "row": dict(zip(names, row, strict=True))}
            for ts, weight, row in zip(times, weights, rows, strict=False)
        ]
        return {"passed": table.num_rows, "tuples": tuples}

    def close(self) -> None:
        """Watches no more."""
        with self._engine.held():
            if self._engine.inputs.queues.get(self._queue.name) is self._queue:
                self._queue.unsubscribe(self._reader)
                self._queue.free()

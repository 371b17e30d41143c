"""The sources and sinks that statements name, opened for a ground."""

from typing import Any

from millpond.catalog import QueryEntry, RelationEntry, StreamEntry
from millpond.connectors import Source, open_sink, open_source
from millpond.connectors.bad_rows import BAD_ROW
from millpond.connectors.sinks import NamedSink
from millpond.cql.algebra import StreamScan
from millpond.errors import StateError
from millpond.identities import BAD_ROWS
from millpond.sharing.ground import Ground


def bad_rows_entry(entry: StreamEntry) -> QueryEntry | None:
    """What stands for the bad rows of a stream's source among the queries, if they are put aside:
    they are handed on as results are."""
    if not entry.skips_bad_rows:
        return None
    name = f"{entry.name}{BAD_ROWS}"
    return QueryEntry(name, StreamScan(name, BAD_ROW), sink=entry.dead_letters)


def open_source_of(ground: Ground, entry: StreamEntry | RelationEntry) -> Source:
    """Opens the source of a stream or relation."""
    where = ground.settings_now, ground.directory, ground.claims
    return open_source(entry, *where, ground.store.is_durable, lambda: ground.spark)


def open_sink_of(ground: Ground, entry: QueryEntry, resume: Any = None) -> NamedSink | None:
    """Opens the sink of a query, if it has one, to go on where a mark says."""
    if entry.sink is None:
        return None
    sink = open_sink(entry, ground.directory, ground.claims, resume, lambda: ground.spark)
    if ground.store.is_durable and sink.mark() is None:
        raise StateError(
            f"query {entry.name} INTO {entry.sink}: this sink can not go on after a restart, "
            "so a store that lasts is no use to it; leave INTO or the store away"
        )
    sink.forces = lambda: ground.journal.forces
    sink.refuse_lost = ground.store.refuse_lost
    return sink

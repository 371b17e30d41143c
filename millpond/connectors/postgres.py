"""Tables of PostgreSQL, read and written, by ``psycopg``, which is installed apart."""

from __future__ import annotations

from typing import Any

from millpond.connectors.postgres_client import Server, text_given
from millpond.connectors.postgres_polling import PollingSource
from millpond.connectors.postgres_sink import PostgresSink, Target
from millpond.connectors.postgres_source import Origin, PostgresSource
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results
from millpond.connectors.sources import Declaration, is_true

Given = str | Secret


def source(
    declaration: Declaration,
    dsn: Given,
    *,
    table: Given,
    snapshot: bool = True,
    poll: Given = "",
    slot: Given = "millpond",
    publication: Given = "",
    password: Given = "",
) -> PostgresSource | PollingSource:
    """Reads the rows of a table and those that come, by logical replication; with ``poll`` by a
    column whose values grow."""
    origin = _origin(declaration, dsn, table, slot, publication, password, snapshot)
    if poll:
        key = text_given(declaration.name, "poll", poll)
        return PollingSource(declaration, origin.server, origin.table, key, origin.skips_snapshot)
    return PostgresSource(declaration, origin, has_changes=False)


def changes(
    declaration: Declaration,
    dsn: Given,
    *,
    table: Given,
    slot: Given = "millpond",
    publication: Given = "",
    password: Given = "",
) -> PostgresSource:
    """Reads a table as a relation that changes, by logical replication."""
    origin = _origin(declaration, dsn, table, slot, publication, password, True)
    return PostgresSource(declaration, origin, has_changes=True)


def _origin(
    declaration: Declaration,
    dsn: Given,
    table: Given,
    slot: Given,
    publication: Given,
    password: Given,
    snapshot: Any,
) -> Origin:
    server = Server(declaration.name, dsn, password)
    return Origin(
        server,
        text_given(declaration.name, "table", table),
        text_given(declaration.name, "slot", slot).lower(),
        str(revealed(publication)),
        skips_snapshot=not is_true(declaration.name, "snapshot", snapshot),
    )


def sink(
    results: Results,
    dsn: str | Secret,
    *,
    table: str | Secret,
    key: str | Secret = "",
    password: str | Secret = "",
) -> PostgresSink:
    """Writes the results of a query to a table; with ``key`` one row for each of its values."""
    owner = f"query {results.query}"
    server = Server(owner, dsn, password)
    text_given(owner, "table", table)
    columns = [each.strip() for each in str(revealed(key)).split(",")] if key else []
    return PostgresSink(Target(results, server, table, tuple(columns)))

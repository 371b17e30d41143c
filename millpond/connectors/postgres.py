"""Tables of PostgreSQL, written by ``psycopg``, which is installed apart."""

from __future__ import annotations

from millpond.connectors.postgres_client import Server, text_given
from millpond.connectors.postgres_sink import PostgresSink, Target
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results


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

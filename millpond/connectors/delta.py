"""Tables of Delta Lake, read and written, by ``deltalake``, which is installed apart."""

from __future__ import annotations

from typing import Any

from millpond.connectors.delta_sink import DeltaSink, DeltaTarget
from millpond.connectors.delta_source import DeltaSource
from millpond.connectors.delta_table import DeltaPlace
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results
from millpond.connectors.sources import Declaration, is_true
from millpond.errors import OutputError

Given = str | Secret


def source(
    declaration: Declaration,
    table: Given,
    *,
    snapshot: bool = True,
    follow: bool = True,
    **storage: Any,
) -> DeltaSource:
    """Reads the rows of a table and those that come."""
    owner = declaration.name
    return DeltaSource(
        declaration,
        DeltaPlace(owner, table, declaration.directory, storage),
        has_changes=False,
        skips_snapshot=not is_true(owner, "snapshot", snapshot),
        follows=is_true(owner, "follow", follow),
    )


def changes(declaration: Declaration, table: Given, **storage: Any) -> DeltaSource:
    """Reads a table as a relation that changes."""
    place = DeltaPlace(declaration.name, table, declaration.directory, storage)
    return DeltaSource(declaration, place, has_changes=True)


def sink(results: Results, table: Given, *, key: Given = "", **storage: Any) -> DeltaSink:
    """Writes the results of a query to a table; with ``key`` one row for each of its values."""
    place = DeltaPlace(f"query {results.query}", table, results.directory, storage, OutputError)
    columns = [each.strip() for each in str(revealed(key)).split(",")] if key else []
    return DeltaSink(DeltaTarget(results, place, tuple(columns)))

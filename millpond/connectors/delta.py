"""Tables of Delta Lake, read and written, by ``deltalake``, which is installed apart."""

from __future__ import annotations

from typing import Any

from millpond.connectors.delta_log import DeltaLog
from millpond.connectors.delta_sink import DeltaSink
from millpond.connectors.delta_table import DeltaPlace
from millpond.connectors.lake_sink import LakeTarget, named_columns
from millpond.connectors.lake_source import LakeSource
from millpond.connectors.secrets import Secret
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
) -> LakeSource:
    """Reads the rows of a table and those that come."""
    owner = declaration.name
    place = DeltaPlace(owner, table, declaration.directory, storage)
    return LakeSource(
        declaration,
        DeltaLog(declaration, place),
        has_changes=False,
        skips_snapshot=not is_true(owner, "snapshot", snapshot),
        follows=is_true(owner, "follow", follow),
    )


def changes(declaration: Declaration, table: Given, **storage: Any) -> LakeSource:
    """Reads a table as a relation that changes."""
    place = DeltaPlace(declaration.name, table, declaration.directory, storage)
    return LakeSource(declaration, DeltaLog(declaration, place), has_changes=True)


def sink(results: Results, table: Given, *, key: Given = "", **storage: Any) -> DeltaSink:
    """Writes the results of a query to a table; with ``key`` one row for each of its values."""
    place = DeltaPlace(f"query {results.query}", table, results.directory, storage, OutputError)
    return DeltaSink(LakeTarget(results, place, named_columns(key)), place)

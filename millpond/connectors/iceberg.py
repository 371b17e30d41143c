"""Tables of Iceberg, read and written, by ``pyiceberg``, which is installed apart."""

from __future__ import annotations

from typing import Any

from millpond.connectors.iceberg_log import IcebergLog
from millpond.connectors.iceberg_sink import IcebergSink
from millpond.connectors.iceberg_table import IcebergPlace
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
    catalog: Given = "default",
    snapshot: bool = True,
    follow: bool = True,
    **properties: Any,
) -> LakeSource:
    """Reads the rows of a table and those that come."""
    owner = declaration.name
    place = IcebergPlace(owner, table, catalog, properties)
    return LakeSource(
        declaration,
        IcebergLog(declaration, place),
        has_changes=False,
        skips_snapshot=not is_true(owner, "snapshot", snapshot),
        follows=is_true(owner, "follow", follow),
    )


def changes(
    declaration: Declaration, table: Given, *, catalog: Given = "default", **properties: Any
) -> LakeSource:
    """Reads a table as a relation that changes."""
    place = IcebergPlace(declaration.name, table, catalog, properties)
    return LakeSource(declaration, IcebergLog(declaration, place), has_changes=True)


def sink(
    results: Results,
    table: Given,
    *,
    catalog: Given = "default",
    key: Given = "",
    **properties: Any,
) -> IcebergSink:
    """Writes the results of a query to a table; with ``key`` one row for each of its values."""
    place = IcebergPlace(f"query {results.query}", table, catalog, properties, OutputError)
    return IcebergSink(LakeTarget(results, place, named_columns(key)), place)

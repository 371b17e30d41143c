"""Short ways to declare streams and relations for the tests of connectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond.catalog import Connector, RelationEntry, StreamEntry
from millpond.connectors import Source, open_source
from millpond.connectors.sources import as_page
from millpond.cql.type_names import named_type
from millpond.schema import Field, Schema, apart
from millpond.settings import Settings


def schema(text: str) -> Schema:
    """A schema from text such as ``a INT, b STRING``."""
    pairs = [column.split(" ", 1) for column in apart(text)]
    return Schema(tuple(Field(name, named_type(kind, None)) for name, kind in pairs))


def opened(columns: str, connector: str, *arguments: Any, **options: Any) -> Source:
    """The source of a stream S; ``page_rows``, ``pace`` and ``time`` are not for the connector."""
    page_rows = options.pop("page_rows", 100_000)
    tick, pace = options.pop("tick", "1 microsecond"), options.pop("pace", "fast")
    time = options.pop("time", None)
    directory = options.pop("directory", Path())
    declared = schema(columns)
    position = None if time is None else declared.position(time)
    call = Connector(connector, arguments, tuple(options.items()))
    settings = Settings(page_rows=page_rows, pace=pace).with_option("tick", tick)
    return open_source(StreamEntry("S", declared, position, 0, call), settings, directory)


def opened_changes(columns: str, connector: str, *arguments: Any, tick: str = "1 second") -> Source:
    """The source of a relation R with changes."""
    entry = RelationEntry("R", schema(columns), (), Connector(connector, arguments), True)
    return open_source(entry, Settings().with_option("tick", tick))


def rows(source: Source) -> list[tuple[Any, ...]]:
    """All rows of a source."""
    return [row for page in source.pages() for row in tuples(as_page(page).rows)]


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

"""Feeds a stream or relation from a file, as the shell's `\\push` does."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from millpond.catalog import Connector, RelationEntry, StreamEntry
from millpond.connectors import open_source
from millpond.errors import StateError
from millpond.facade.engine import Engine

_ENDINGS = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}


def pages_of(engine: Engine, name: str, file: str) -> Iterator[pa.Table]:
    """The rows of a CSV, JSON or Parquet file, as the stream or relation declares them."""
    entry = engine.catalog.get(name)
    if not isinstance(entry, StreamEntry | RelationEntry):
        known = [e.name for e in engine.catalog.entries.values() if hasattr(e, "source")]
        raise StateError(
            f'no stream or relation "{name}"; known: {", ".join(sorted(known)) or "none"}'
        )
    source = Connector(connector_for(file), (file,))
    if isinstance(entry, RelationEntry):
        entry = replace(entry, has_changes=False)
    return open_source(replace(entry, source=source), engine.settings_now).pages()


def connector_for(file: str) -> str:
    """The connector that reads a file of this name; CSV unless its ending says otherwise.

    >>> connector_for("x.jsonl.gz"), connector_for("x.parquet"), connector_for("x.txt")
    ('json', 'parquet', 'csv')
    """
    name = file.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2")
    found = (kind for ending, kind in _ENDINGS.items() if name.endswith(ending))
    return next(found, "csv")

"""What a source is, and the files it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.claims import Claims
from millpond.connectors.locations import existing_files, located
from millpond.schema import Schema
from millpond.settings import Settings


@dataclass(frozen=True)
class Declaration:
    """What a source must deliver: the declared name and columns, and where files are looked for."""

    name: str
    schema: Schema
    timestamp_column: int | None = None
    settings: Settings = field(default_factory=Settings)
    directory: Path = Path()
    claims: Claims = field(default_factory=Claims)


@dataclass(frozen=True)
class Progress:
    """How far a source has been read; ``total`` is None where no end is known."""

    done: int
    total: int | None
    unit: str = "bytes"


class Source(Protocol):
    """Tuples of one stream or relation, page by page."""

    ends: bool
    """Whether nothing will ever follow the last page."""

    def pages(self) -> Iterator[pa.Table]:
        """Tables of the declared schema with at most ``settings.page_rows`` rows, read lazily."""

    def progress(self) -> Progress:
        """How far the pages have been read."""


def files_of(declaration: Declaration, name: str, *suffixes: str) -> list[Path]:
    """The files that a name stands for, claimed for this source."""
    location = located(declaration.name, declaration.directory, name, *suffixes)
    files = existing_files(declaration.name, location)
    declaration.claims.read(declaration.name, location, files)
    return files


def cut_pages(tables: Iterator[pa.Table], schema: Schema, page_rows: int) -> Iterator[pa.Table]:
    """The same rows in pages of ``page_rows``, the last one shorter."""
    rest = arrow_schema(schema).empty_table()
    for table in tables:
        rest = pa.concat_tables([rest, table])
        while rest.num_rows >= page_rows:
            yield rest.slice(0, page_rows).combine_chunks()
            rest = rest.slice(page_rows)
    if rest.num_rows:
        yield rest.combine_chunks()

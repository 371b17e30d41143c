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
    is_held: bool = False
    """Whether a page waits that there is no room for."""


class Source(Protocol):
    """Tuples of one stream or relation, page by page.

    One that may have nothing to deliver for a while, a pipe say, has ``is_live = True``: asking it
    for a page waits until there is one.
    """

    ends: bool
    """Whether nothing will ever follow the last page."""

    def pages(self) -> Iterator[pa.Table]:
        """Tables of the declared schema with at most ``settings.page_rows`` rows, read lazily."""

    def progress(self) -> Progress:
        """How far the pages have been read."""


def is_live(source: Source) -> bool:
    """Whether a source may have nothing to deliver for a while."""
    return getattr(source, "is_live", False)


@dataclass(eq=False)
class OpenPages:
    """The pages of a source that is being read, and how many rows of it have been handed out."""

    pages: Iterator[pa.Table]
    rows: int = 0

    @staticmethod
    def of(source: Source, rows: int) -> OpenPages:
        """The pages behind so many rows, without those before where the source can skip them."""
        if rows and hasattr(source, "pages_after"):
            return OpenPages(source.pages_after(rows), rows)
        return OpenPages(source.pages())

    def behind(self, rows: int) -> pa.Table | None:
        """The next page behind so many rows, which others may have read; None at the end."""
        for page in self.pages:
            start, self.rows = self.rows, self.rows + page.num_rows
            if self.rows > rows:
                return page.slice(max(0, rows - start))
        return None


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

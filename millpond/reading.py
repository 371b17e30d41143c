"""Which sources a run reads, how much of them, and what keeps it from ending.

A source that no running query reads is left alone: it would cost time, and an endless one would
keep the run from ending though nobody asks for it.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry
from millpond.connectors import Source
from millpond.connectors.changes import ChangesSource
from millpond.connectors.text_files import TextFiles
from millpond.cql.apply import scanned
from millpond.errors import InputError
from millpond.planning.physical import Graph


def is_read(graph: Graph, queues: Iterable[str]) -> bool:
    """Whether an operator of a running query reads one of an input's queues."""
    return any(graph.readers(queue) for queue in queues)


@dataclass(frozen=True)
class Endless:
    """An input whose source has no end, and the queries that wait for it."""

    entry: StreamEntry | RelationEntry
    queries: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.queries)
        verb = "reads" if len(self.queries) == 1 else "read"
        return f"{self.entry.name} FROM {self.entry.source} has no end, and {names} {verb} it"


def endless(catalog: Catalog, sources: dict[str, Source]) -> list[Endless]:
    """The endless sources that keep queries running; ``sources`` by the inputs' keys."""
    found = []
    for key, source in sources.items():
        entry = catalog.entries[key]
        queries = tuple(active_readers(catalog, key))
        if not source.ends and queries and isinstance(entry, StreamEntry | RelationEntry):
            found.append(Endless(entry, queries))
    return found


def refuse_endless_content(entry: RelationEntry, source: Source) -> None:
    """Refuses a relation that could never be read, as its content is there from the beginning."""
    if not source.ends:
        raise InputError(
            f"{entry.name}: {entry.source} has no end, but the content of a relation is read at "
            "once; give it an end, such as rows = 100"
        )


def active_readers(catalog: Catalog, key: str) -> Iterator[str]:
    """The names of the active queries that read an input."""
    for entry in catalog.of_kind(QueryEntry):
        if entry.active and key in (name.lower() for name in scanned(entry.plan)):
            yield entry.name


@dataclass(frozen=True)
class ReadLimits:
    """How long, and how many rows of each source, a run reads; then it reads no further."""

    seconds: float | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("rows", self.rows)):
            if value is not None and not (isinstance(value, int | float) and value >= 0):
                raise InputError(f"{name} must be a number from 0, not {value!r}")

    def after(self, rows: int) -> ReadLimits:
        """The limits of a run that goes on with one that has read so many rows."""
        return self if self.rows is None else replace(self, rows=max(0, self.rows - rows))

    def apply(self, source: Source, pages: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The pages with these limits, counted from now, in place of those they may have."""
        pages = pages.lifted() if isinstance(pages, LimitedPages) else pages
        deadline = time.monotonic() + (math.inf if self.seconds is None else self.seconds)
        if isinstance(source, TextFiles | ChangesSource):
            source.stop_at(deadline)
        if self == ReadLimits():
            return pages
        return LimitedPages(pages, math.inf if self.rows is None else self.rows, deadline)


class LimitedPages:
    """Pages of which so many rows are read, and none after a time; what is left can be read on."""

    def __init__(self, pages: Iterator[pa.Table], rows: float, deadline: float) -> None:
        self._pages, self._rows, self._deadline = pages, rows, deadline

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be read now; that the pages end is another matter."""
        return self._rows <= 0 or time.monotonic() >= self._deadline

    def __iter__(self) -> Iterator[pa.Table]:
        return self

    def __next__(self) -> pa.Table:
        page = next(self._pages)
        if page.num_rows > self._rows:
            self._pages = itertools.chain([page.slice(int(self._rows))], self._pages)
            page = page.slice(0, int(self._rows))
        self._rows -= page.num_rows
        return page

    def lifted(self) -> Iterator[pa.Table]:
        """What is left, without the limits."""
        return self._pages


def may_be_read(pages: Iterator[pa.Table]) -> bool:
    """Whether the limits of a run, if it has any, let a source be read on."""
    return not (isinstance(pages, LimitedPages) and pages.is_over)

"""Which sources a run reads, how much of them, and what keeps it from ending.

A source that no running query reads is left alone: it would cost time, and an endless one would
keep the run from ending though nobody asks for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry
from millpond.connectors import Source
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
    """How long, and how many rows of each source, a run reads; then it takes them for ended."""

    seconds: float | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("rows", self.rows)):
            if value is not None and not (isinstance(value, int | float) and value >= 0):
                raise InputError(f"{name} must be a number from 0, not {value!r}")

    def apply(self, pages: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The pages within the limits, counted from now."""
        deadline = None if self.seconds is None else time.monotonic() + self.seconds
        return _limited(pages, self.rows, deadline)


def _limited(
    pages: Iterator[pa.Table], rows: int | None, deadline: float | None
) -> Iterator[pa.Table]:
    while (rows is None or rows > 0) and (deadline is None or time.monotonic() < deadline):
        page = next(pages, None)
        if page is None:
            return
        page = page if rows is None else page.slice(0, rows)
        rows = None if rows is None else rows - page.num_rows
        yield page

"""Which sources a run reads, how much of them, and what keeps it from ending.

A source that no running query reads is left alone: it would cost time, and an endless one would
keep the run from ending though nobody asks for it.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry
from millpond.connectors import Source
from millpond.cql.apply import scanned
from millpond.errors import InputError
from millpond.identities import InputId, QueueId
from millpond.planning.graph import Graph


def is_read(graph: Graph, queues: Iterable[QueueId]) -> bool:
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


def endless(catalog: Catalog, sources: dict[InputId, Source]) -> list[Endless]:
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


def active_readers(catalog: Catalog, key: InputId) -> Iterator[str]:
    """The names of the active queries that read an input."""
    for entry in catalog.of_kind(QueryEntry):
        if entry.active and key in (InputId(name) for name in scanned(entry.plan)):
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


class Allowance:
    """What a run may still take of each source.

    ``taken`` are the rows of each that count already: those of a run that this one goes on with.
    """

    def __init__(self, limits: ReadLimits, taken: Mapping[InputId, int]) -> None:
        self._rows = math.inf if limits.rows is None else limits.rows
        self._deadline = time.monotonic() + (math.inf if limits.seconds is None else limits.seconds)
        self._taken = Counter(taken)

    @property
    def is_limited(self) -> bool:
        """Whether the number of rows has a limit."""
        return self._rows < math.inf

    def of(self, source: InputId) -> float:
        """How many rows of a source may be taken now."""
        if time.monotonic() >= self._deadline:
            return 0
        return max(0, self._rows - self._taken[source])

    def use(self, source: InputId, rows: int) -> None:
        """So many rows of a source were taken."""
        self._taken[source] += rows

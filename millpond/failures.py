"""Failures of queries: what went wrong, where and when; the others go on."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from millpond.errors import InputError, StateError
from millpond.identities import QueryId


@dataclass(frozen=True)
class Failure:
    """Why a query stands still."""

    query: str
    operator: str
    """What the failed operator does."""
    error: str
    after: int
    until: int
    """The step that failed covers (after, until]."""
    rows: tuple[str, ...] = ()
    """Some of the rows that caused it, where they are known."""
    at_seconds: float = field(default_factory=time.time, compare=False)
    """When that was, in seconds since 1970."""


class Failures:
    """The failures of the queries that have failed, until they are restarted or dropped."""

    def __init__(self) -> None:
        self._by_query: dict[QueryId, Failure] = {}
        self._untold: list[tuple[QueryId, Exception]] = []

    def add(self, failures: list[Failure], error: Exception) -> None:
        """Notes that queries have failed, all for one reason."""
        for failure in failures:
            self._by_query[QueryId(failure.query)] = failure
        self._untold.append((QueryId(failures[0].query), error))

    def forget(self, query: str) -> None:
        """The query was dropped, or restarted."""
        self._by_query.pop(QueryId(query), None)
        self._untold = [(name, error) for name, error in self._untold if name != QueryId(query)]

    def of(self, query: str) -> Failure | None:
        """Why a query has failed, if it has."""
        return self._by_query.get(QueryId(query))

    def __iter__(self) -> Iterator[Failure]:
        return iter(list(self._by_query.values()))

    def told(self) -> None:
        """What went wrong so far was told by an earlier run."""
        self._untold = []

    @property
    def are_told(self) -> bool:
        """Whether nothing has gone wrong that was not told."""
        return not self._untold

    def raise_untold(self) -> None:
        """Raises what went wrong since the last call."""
        untold, self._untold = self._untold, []
        if untold:
            (_, first), *others = untold
            more = f" (and {len(others)} more: {others[0][1]})" if others else ""
            kind = InputError if isinstance(first, InputError) else StateError
            raise kind(f"{first}{more}") from first

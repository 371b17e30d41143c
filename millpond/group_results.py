"""What a group of queries has put out: one log, of which each query reads its part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.latency import LatencyRecord
from millpond.results import ResultLog
from millpond.storage.pages import Page
from millpond.storage.store import Store


@dataclass(frozen=True)
class _ByQuery:
    """The rows of a page in order of their queries' numbers."""

    table: pa.Table
    numbers: Ints

    @staticmethod
    def of(page: Page) -> _ByQuery:
        table = page.table
        tags = integers(table.column(table.num_columns - 1))
        order = np.argsort(tags, kind="stable")
        return _ByQuery(table.take(pa.array(order)), tags[order])

    def rows_of(self, number: int) -> pa.Table:
        low, high = np.searchsorted(self.numbers, (number, number + 1)).tolist()
        rows = self.table.slice(low, high - low)
        return rows.remove_column(rows.num_columns - 1)


@dataclass
class GroupLog(ResultLog):
    """The output of the queries of one group; the last column says whose a row is."""

    readers: dict[int, ResultLog] = field(default_factory=dict)
    """The queries of which somebody wants, or wanted, every page as it comes."""
    _counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _by_query: WeakKeyDictionary[Page, _ByQuery] = field(default_factory=WeakKeyDictionary)

    def add(self, page: Page | None, until: int) -> None:
        """Takes what one step put out for all queries: complete up to a time."""
        if page is not None:
            self._count(page)
        super().add(page, until)

    def _count(self, page: Page) -> None:
        table = page.table
        tags = integers(table.column(table.num_columns - 1))
        most = max(len(self._counts), int(tags.max()) + 1)
        counts = np.bincount(tags, minlength=most).astype(np.int64)
        counts[: len(self._counts)] += self._counts
        self._counts = counts

    def passed_on(self, page: Page, store: Store) -> Iterator[ResultLog]:
        """Hands a page on to the queries that are read as it comes; those that got something."""
        for number, log in self.readers.items():
            if log.is_read:
                rows = self.rows_of(page, number)
                if rows.num_rows:
                    part = Page.of(store, rows)
                    part.origins = page.origins
                    log.pass_on(part)
                    yield log

    def rows_of(self, page: Page, number: int) -> pa.Table:
        """A query's part of a page."""
        if page not in self._by_query:
            self._by_query[page] = _ByQuery.of(page)
        return self._by_query[page].rows_of(number)

    def count_of(self, number: int) -> int:
        """How many elements were put out for a query."""
        return int(self._counts[number]) if number < len(self._counts) else 0

    def counts(self) -> list[int]:
        """How many elements were put out for each query, by its number."""
        return [int(count) for count in self._counts]

    def restore_counts(self, counts: list[int]) -> None:
        """Takes what an earlier run has counted."""
        self._counts = np.array(counts, np.int64)


@dataclass(frozen=True)
class Part:
    """What a query has of the results of its group."""

    log: GroupLog
    number: int

    @property
    def until(self) -> int:
        """Up to when everything was put out."""
        return self.log.own_until

    @property
    def rows(self) -> int:
        """How many elements were put out, kept or not."""
        return self.log.count_of(self.number)

    @property
    def latency(self) -> LatencyRecord:
        """How long the results of the group took."""
        return self.log.own_latency

    def tables(self) -> Iterator[pa.Table]:
        """What is kept of it."""
        for page in self.log.kept:
            rows = self.log.rows_of(page, self.number)
            if rows.num_rows:
                yield rows

    def read_by(self, log: ResultLog) -> None:
        """From now on pages are handed on as they come."""
        self.log.readers[self.number] = log


def facts_of(log: ResultLog) -> dict[str, Any]:
    """What is known of a log beside its pages, for the log of a store."""
    return {"counts": log.counts()} if isinstance(log, GroupLog) else {}

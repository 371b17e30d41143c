"""What a group of queries has put out: one log, of which each query reads its part."""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.latency import LatencyRecord
from millpond.results import ResultLog
from millpond.settings import Keeping
from millpond.storage.pages import Page


@dataclass(frozen=True)
class Tags:
    """Whose the rows of a page are: the numbers of queries in order, and how many rows each has."""

    numbers: Ints
    counts: Ints

    @staticmethod
    def of(page: Page) -> Tags:
        """Counts the rows of a page."""
        counts = np.bincount(_tags(page.table)).astype(np.int64)
        numbers = np.flatnonzero(counts)
        return Tags(numbers, counts[numbers])

    def to_json(self) -> str:
        """The same as a text, for the log of a store."""
        pairs = np.concatenate([self.numbers, self.counts]).astype("<i8")
        return base64.b64encode(zlib.compress(pairs.tobytes(), 1)).decode()

    @staticmethod
    def from_json(text: str) -> Tags:
        """What ``to_json`` has written."""
        pairs = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i8").astype(np.int64)
        return Tags(*np.split(pairs, 2))


def _tags(table: pa.Table) -> Ints:
    return integers(table.column(table.num_columns - 1))


@dataclass(frozen=True)
class _ByQuery:
    """The rows of a page in order of their queries' numbers."""

    table: pa.Table
    numbers: Ints

    @staticmethod
    def of(page: Page) -> _ByQuery:
        table = page.table
        tags = _tags(table)
        order = np.argsort(tags, kind="stable")
        return _ByQuery(table.take(pa.array(order)), tags[order])

    def rows_of(self, number: int) -> pa.Table:
        low, high = np.searchsorted(self.numbers, (number, number + 1)).tolist()
        rows = self.table.slice(low, high - low)
        return rows.remove_column(rows.num_columns - 1)


class PartOfPage(Page):
    """The rows of a page that are one query's; the page stays as long as this does."""

    def __init__(self, log: GroupLog, page: Page, number: int, rows: int) -> None:
        self.rows, self.origins = rows, page.origins
        self.made_seconds = page.made_seconds
        self.is_free = False
        self._log, self._page, self._number = log, page, number
        log.hold(page)

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self._log.rows_of(self._page, self._number)

    @property
    def is_in_driver(self) -> bool:
        """They are read here."""
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """The files of the page."""
        return self._page.names

    @property
    def sound_names(self) -> tuple[str, ...]:
        """The same, for whoever is to read them."""
        return self._page.sound_names

    @property
    def is_there(self) -> bool:
        """Whether the page is."""
        return self._page.is_there

    def pin(self) -> None:
        """Somebody reads it."""
        self._page.pin()

    def unpin(self) -> None:
        """It is read."""
        self._page.unpin()

    def free(self) -> None:
        """Nobody wants it any more."""
        if not self.is_free:
            self.is_free = True
            self._log.let_go(self._page)

    def reference(self) -> dict[str, Any]:
        """What the log of a store says of it."""
        return {
            "group": self._log.entry.name,
            "number": self._number,
            "rows": self.rows,
            "page": self._page.reference(),
        }


@dataclass
class GroupLog(ResultLog):
    """The output of the queries of one group; the last column says whose a row is."""

    members: int = 0
    """How many queries belong to the group."""
    readers: dict[int, ResultLog] = field(default_factory=dict)
    """The queries of which somebody wants, or wanted, every page as it comes."""
    elders: dict[int, ResultLog] = field(default_factory=dict)
    """The queries of which results are kept from before they belonged to the group."""
    _counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    _holders: Counter[Page] = field(default_factory=Counter)
    """How many need each page: this log, and queries that have a part of it."""
    _tags: WeakKeyDictionary[Page, Tags] = field(default_factory=WeakKeyDictionary)
    _by_query: WeakKeyDictionary[Page, _ByQuery] = field(default_factory=WeakKeyDictionary)

    def add(self, page: Page | None, until: int) -> None:
        """Takes what one step put out for all queries: complete up to a time."""
        if page is not None:
            self.hold(page)
            tags = self.tags_of(page)
            most = max(len(self._counts), int(tags.numbers.max(initial=-1)) + 1)
            counts = np.zeros(most, np.int64)
            counts[: len(self._counts)] = self._counts
            counts[tags.numbers] += tags.counts
            self._counts = counts
        super().add(page, until)

    @property
    def queries(self) -> int:
        """How many queries put it out."""
        return max(1, self.members)

    def tags_of(self, page: Page) -> Tags:
        """Whose its rows are."""
        if page not in self._tags:
            self._tags[page] = Tags.of(page)
        return self._tags[page]

    def know(self, page: Page, tags: Tags) -> None:
        """Whose the rows of a page of an earlier run are."""
        self._tags[page] = tags

    def passed_on(self, page: Page) -> Iterator[ResultLog]:
        """Hands a page on to the queries that are read as it comes; those that got something."""
        tags = self.tags_of(page)
        for number, log in self.readers.items():
            rows = _count_of(tags, number) if log.is_read else 0
            if rows:
                log.pass_on(PartOfPage(self, page, number, rows))
                yield log

    def keep_to(self, keeping: Keeping) -> None:
        """Lets the oldest results go, also those of its queries from before."""
        super().keep_to(keeping)
        for number, log in list(self.elders.items()):
            if log.share is not None:
                log.keep_to(keeping)
            if log.share is None or not log.kept:
                del self.elders[number]

    def parts(self, number: int) -> Iterator[PartOfPage]:
        """A query's parts of the pages that are kept."""
        for page in self.kept:
            rows = _count_of(self.tags_of(page), number)
            if rows:
                yield PartOfPage(self, page, number, rows)

    def rows_of(self, page: Page, number: int) -> pa.Table:
        """A query's part of a page."""
        if page not in self._by_query:
            self._by_query[page] = _ByQuery.of(page)
        return self._by_query[page].rows_of(number)

    def counts_in(self, pages: Iterable[Page]) -> Ints:
        """How many rows of some pages each query has, by its number."""
        counts = np.zeros(len(self._counts), np.int64)
        for page in pages:
            tags = self.tags_of(page)
            counts[tags.numbers] += tags.counts
        return counts

    def count_of(self, number: int) -> int:
        """How many elements were put out for a query."""
        return int(self._counts[number]) if number < len(self._counts) else 0

    # -- pages that several need -----------------------------------------------------------

    def hold(self, page: Page) -> None:
        """Somebody more needs a page."""
        self._holders[page] += 1

    def let_go(self, page: Page) -> None:
        """Somebody less needs a page."""
        self._holders[page] -= 1
        if self._holders[page] == 0:
            del self._holders[page]
            page.free()

    def part_again(self, page: Page, number: int, rows: int) -> PartOfPage:
        """A part of a page of an earlier run."""
        known = next((each for each in self._holders if each.names == page.names), page)
        return PartOfPage(self, known, number, rows)

    # -- after a restart -------------------------------------------------------------------

    def restore(
        self,
        pages: list[Page],
        waiting: list[Page],
        until: int,
        rows: int,
        came: int,
        position: int,
    ) -> None:
        """Takes what an earlier run has put out."""
        known = {page.names: page for page in self._holders}
        pages = [known.get(page.names, page) for page in pages]
        super().restore(pages, waiting, until, rows, came, position)
        for page in self.pages:
            self.hold(page)

    def facts(self) -> dict[str, Any]:
        """What is known of it beside its pages."""
        tags = [self.tags_of(page).to_json() for page in self.kept]
        return {"counts": [int(count) for count in self._counts], "tags": tags}

    def restore_facts(self, counts: list[int], tags: list[str]) -> None:
        """Takes what ``facts`` gave."""
        self._counts = np.array(counts, np.int64)
        for page, text in zip(self.kept, tags, strict=True):
            self.know(page, Tags.from_json(text))


def _count_of(tags: Tags, number: int) -> int:
    place = int(np.searchsorted(tags.numbers, number))
    is_there = place < len(tags.numbers) and tags.numbers[place] == number
    return int(tags.counts[place]) if is_there else 0


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

    def pages(self) -> Iterator[Page]:
        """What is kept of it."""
        return self.log.parts(self.number)

    @property
    def is_whole(self) -> bool:
        """Whether all of it is kept."""
        return self.rows == sum(map(self.rows_in, self.log.kept))

    def rows_in(self, page: Page) -> int:
        """How many rows of one of the group's pages are the query's."""
        return _count_of(self.log.tags_of(page), self.number)

    def read_by(self, log: ResultLog) -> None:
        """From now on pages are handed on as they come."""
        self.log.readers[self.number] = log

    def followed_by(self, log: ResultLog) -> None:
        """The log has results of before."""
        self.log.elders[self.number] = log

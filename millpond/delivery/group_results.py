"""What a group of queries has put out: one log, of which each query reads its slice."""

from __future__ import annotations

import base64
import math
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from millpond.delivery.latency import LatencyRecord
from millpond.delivery.results import SUM_ROWS, ResultLog
from millpond.kernels.columns import integers
from millpond.kernels.groups import Bools, Ints
from millpond.settings import Keeping
from millpond.storage.kept_pages import (
    MERGED_ROWS,
    PARTS_KEPT,
    Over,
    Repaging,
    follow,
    in_order_of_time,
    run_to_merge,
)
from millpond.storage.pages import Page
from millpond.storage.store import Store

BY_QUERY_ROWS = 100_000
"""Pages of a group with so many rows are at hand in the order of its queries."""

LEAST_SLICE_ROWS = 16
"""So many rows of a query may become one slice of a page, however few are kept."""


@dataclass(frozen=True)
class Tags:
    """Whose the rows of a page are: the numbers of queries in order, and how many rows each has."""

    numbers: Ints
    counts: Ints

    @staticmethod
    def of(page: Page) -> Tags:
        """Counts the rows of a page."""
        counts = np.zeros(0, np.int64)
        for part in page.parts():
            more = np.bincount(_tags(part), minlength=len(counts))
            more[: len(counts)] += counts
            counts = more
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
    def of(table: pa.Table) -> _ByQuery:
        tags = _tags(table)
        if np.all(tags[1:] >= tags[:-1]):  # as it is once pages were merged
            return _ByQuery(table, tags)
        order = np.argsort(tags, kind="stable")
        return _ByQuery(table.take(pa.array(order)), tags[order])

    def rows_of(self, number: int) -> pa.Table:
        low, high = np.searchsorted(self.numbers, (number, number + 1)).tolist()
        rows = self.table.slice(low, high - low)
        return rows.remove_column(rows.num_columns - 1)


class SliceOfPage(Page):
    """The rows of a page that are one query's; the page stays as long as this does."""

    def __init__(self, log: GroupLog, page: Page, number: int, rows: int) -> None:
        self.rows, self.origins = rows, page.origins
        self.bytes = page.bytes * rows // page.rows
        self.first, self.last, self.is_sorted = page.first, page.last, False
        self.made_seconds = page.made_seconds
        self.is_free = False
        self._log, self._page, self._number = log, page, number
        log.hold(page)

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self._log.rows_of(self._page, self._number)

    @property
    def is_in_parts(self) -> bool:
        """Whether the rows come in parts: a query's rows of a page are together."""
        return False

    @property
    def is_in_driver(self) -> bool:
        """Whether the rows are in the driver: they are read here."""
        return True

    @property
    def memory_bytes(self) -> int:
        """The memory of a query's rows: none but that of the page."""
        return 0

    @property
    def names(self) -> tuple[str, ...]:
        """The files of the page."""
        return self._page.names

    @property
    def sound_names(self) -> tuple[str, ...]:
        """The files of the page, found sound, for a reader."""
        return self._page.sound_names

    def pin(self) -> None:
        """Keeps the page while a reader reads the query's rows."""
        self._page.pin()

    def unpin(self) -> None:
        """Ends what ``pin`` began."""
        self._page.unpin()

    def free(self) -> None:
        """Lets go of the query's rows in the page."""
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

    living: set[int] = field(default_factory=set)
    """The numbers of the queries that belong to the group."""
    readers: dict[int, ResultLog] = field(default_factory=dict)
    """The queries of which somebody wants, or wanted, every page as it comes."""
    elders: dict[int, ResultLog] = field(default_factory=dict)
    """The queries of which results are kept from before they belonged to the group."""
    _counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """How many rows were put out for each query, by its number."""
    _gone: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """How many of them were let go, which may be in the pages still."""
    _there: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """How many of them are in the pages."""
    _holders: Counter[Page] = field(default_factory=Counter)
    """How many need each page: this log, and queries that have a slice of it."""
    _tags: WeakKeyDictionary[Page, Tags] = field(default_factory=WeakKeyDictionary)
    _by_query: OrderedDict[Page, _ByQuery] = field(default_factory=OrderedDict)
    """The pages that were read last."""

    def add(self, page: Page | None, until: int) -> None:
        """Takes what one step put out for all queries: complete up to a time."""
        if page is not None:
            self.hold(page)
            tags = self.tags_of(page)
            self._grow(int(tags.numbers.max(initial=-1)) + 1)
            self._counts[tags.numbers] += tags.counts
            if self.is_kept:
                self._there[tags.numbers] += tags.counts
        super().add(page, until)

    def _grow(self, numbers: int) -> None:
        more = numbers - len(self._counts)
        if more > 0:
            for name in ("_counts", "_gone", "_there"):
                setattr(self, name, np.append(getattr(self, name), np.zeros(more, np.int64)))

    def leave_it(self, number: int) -> None:
        """A query belongs to the group no more; what it wanted it has taken."""
        self.living.discard(number)
        self.readers.pop(number, None)
        if number < len(self._counts):
            self._gone[number] = self._counts[number]

    def tags_of(self, page: Page) -> Tags:
        """The tags of a page: whose its rows are."""
        if page not in self._tags:
            self._tags[page] = Tags.of(page)
        return self._tags[page]

    def passed_on(self, page: Page) -> Iterator[ResultLog]:
        """Hands a page on to the queries that are read as it comes; those that got something."""
        tags = self.tags_of(page)
        for number, log in self.readers.items():
            rows = _count_of(tags, number) if log.is_read else 0
            if rows:
                log.pass_on(SliceOfPage(self, page, number, rows))
                yield log

    # -- what is kept ----------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look after: of each query it is known what it had."""
        return False

    def over(self, keeping: Keeping) -> Over | None:
        """What is more than is to be kept of each query."""
        return super().over(keeping) if keeping.rows is None else Over(rows=keeping.rows)

    def pass_over(self, over: Over) -> bool:
        """Lets go what is more than is to be kept; whether anything was."""
        return super().pass_over(over) if over.rows is None else self._pass_rows(over.rows)

    def pass_pages(self, pages: int) -> None:
        """Lets the first pages go, whosever their rows are."""
        for page in self.kept[:pages]:
            self._count_there(page, -1)
        self._gone = np.maximum(self._gone, self._counts - self._there)
        super().pass_pages(pages)

    def _count_there(self, page: Page, sign: int) -> None:
        tags = self.tags_of(page)
        self._there[tags.numbers] += sign * tags.counts

    def _pass_rows(self, most: int) -> bool:
        """Keeps no more of each query than so many rows, page by page; whether any go."""
        left = self._counts - self._gone
        if not np.any(left > most):
            return False
        may, has_passed = left > most, False
        for page, gone in zip(self.kept, self._gone_in_pages(), strict=True):
            tags = self.tags_of(page)
            some = may[tags.numbers] & ~gone
            go = some & (left[tags.numbers] - tags.counts >= most)
            left[tags.numbers[go]] -= tags.counts[go]
            self._gone[tags.numbers[go]] += tags.counts[go]
            may[tags.numbers[some & ~go]] = False
            has_passed = has_passed or bool(go.any())
        over = next((i for i, gone in enumerate(self._gone_in_pages()) if not gone.all()), None)
        self.pass_pages(len(self.kept) if over is None else over)
        return has_passed

    def _gone_in_pages(self) -> list[Bools]:
        """For each page whether the rows of each query that has some are let go."""
        passed, found = self._gone - (self._counts - self._there), []
        for page in self.kept:
            tags = self.tags_of(page)
            found.append(passed[tags.numbers] >= tags.counts)
            passed[tags.numbers] -= tags.counts
        return found

    def repaging(self, keeping: Keeping, store: Store) -> Repaging | None:
        """What could be summed up, has too many rows that are let go, or is too many pages."""
        return (
            self._summed_content(store) or self._without_gone(store) or self._merged(keeping, store)
        )

    def _without_gone(self, store: Store) -> Repaging | None:
        """The page with the most rows that are let go without them, if there are many such rows."""
        there = int(self._there.sum())
        if there <= SUM_ROWS or there - int((self._counts - self._gone).sum()) <= there // 3:
            return None
        gone = [
            int(self.tags_of(page).counts[is_gone].sum()) / page.rows
            for page, is_gone in zip(self.kept, self._gone_in_pages(), strict=True)
        ]
        return self._repaged(store, int(np.argmax(gone)), 1)

    def _merged(self, keeping: Keeping, store: Store) -> Repaging | None:
        run = self.run_to_merge(keeping)
        return None if run is None else self._repaged(store, *run)

    def run_to_merge(self, keeping: Keeping) -> tuple[int, int] | None:
        """Where pages follow each other that could be one: no query has too many rows in it."""
        most = math.inf if keeping.rows is None else keeping.rows // PARTS_KEPT
        gone = dict(zip(self.kept, self._gone_in_pages(), strict=True))

        def is_one(run: Sequence[Page]) -> bool:
            parts = np.zeros(len(self._counts), np.int64)
            for page in run:
                tags = self.tags_of(page)
                parts[tags.numbers] += np.where(gone[page], 0, tags.counts)
            return follow(run, keeping) and int(parts.max()) <= max(most, LEAST_SLICE_ROWS)

        return run_to_merge(self.kept, MERGED_ROWS, is_one)

    def forget(self) -> None:
        """Drops the pages everybody has seen, but those that are kept."""
        super().forget()
        if not self.kept:
            self._there[:] = 0

    def _repaged(self, store: Store, place: int, count: int) -> Repaging:
        """Some pages as one, in order of queries and time; what is let go of them is apart."""
        stays, goes = [], []
        for page, gone in list(zip(self.kept, self._gone_in_pages(), strict=True))[place:][:count]:
            table = in_order_of_time([page])
            is_gone = np.isin(_tags(table), self.tags_of(page).numbers[gone])
            stays.append(table.filter(pa.array(~is_gone)))
            goes.append(self._of_living(table.filter(pa.array(is_gone))))
        kept, passed = pa.concat_tables(stays).combine_chunks(), pa.concat_tables(goes)
        kept = kept.take(pa.array(np.argsort(_tags(kept), kind="stable")))
        merged = Page.of(store, kept) if kept.num_rows else None
        if merged is not None:
            merged.made_seconds = self.kept[place + count - 1].made_seconds
        has_passed = self.has_content and passed.num_rows > 0
        return Repaging(place, count, merged, passed=Page.of(store, passed) if has_passed else None)

    def _of_living(self, table: pa.Table) -> pa.Table:
        living = np.fromiter(self.living, np.int64, len(self.living))
        return table.filter(pa.array(np.isin(_tags(table), living)))

    def netted(self, table: pa.Table, keeps_zeros: bool = False) -> pa.Table:
        """What some rows come to for the queries that belong to the group."""
        return super().netted(self._of_living(table), keeps_zeros)

    def repage(self, change: Repaging) -> None:
        """Puts the new page in the place of those it replaces."""
        for page in (change.page, change.passed):
            if page is not None:
                self.hold(page)
        if not change.is_content:
            for page in self.kept[change.place : change.place + change.count]:
                self._count_there(page, -1)
            if change.page is not None:
                self._count_there(change.page, 1)
            self.content += self._entered(change.passed)
        super().repage(change)

    def tags_in(self, page: Page | None) -> str | None:
        """Whose the rows of a page are."""
        return None if page is None else self.tags_of(page).to_json()

    def know_tags(self, page: Page | None, tags: str | None) -> None:
        """Is told it of a page of an earlier run."""
        if page is not None and tags is not None:
            self._tags[page] = Tags.from_json(tags)

    def slices(self, number: int) -> list[SliceOfPage]:
        """A query's slices of the pages that are kept."""
        return [SliceOfPage(self, *each) for each, is_gone in self.placed(number) if not is_gone]

    def passed_slices(self, number: int) -> list[SliceOfPage]:
        """A query's slices of what is let go, as far as its content is known."""
        gone = [each for each, is_gone in self.placed(number) if is_gone and self.has_content]
        passed = [(page, number, _count_of(self.tags_of(page), number)) for page in self.content]
        return [SliceOfPage(self, *each) for each in [*passed, *gone] if each[2]]

    def placed(self, number: int) -> Iterator[tuple[tuple[Page, int, int], bool]]:
        """A query's rows in each page, and whether they are let go."""
        if number >= len(self._counts):
            return
        passed = int(self._gone[number] - (self._counts[number] - self._there[number]))
        for page in self.kept:
            rows = _count_of(self.tags_of(page), number)
            if rows:
                yield (page, number, rows), passed >= rows
                passed -= rows

    def rows_of(self, page: Page, number: int) -> pa.Table:
        """A query's slice of a page."""
        if page.is_in_parts:
            parts = [_ByQuery.of(part).rows_of(number) for part in page.parts()]
            return pa.concat_tables(parts)
        if page not in self._by_query:
            rows = sum(each.rows for each in self._by_query) + page.rows
            while self._by_query and rows > BY_QUERY_ROWS:
                rows -= self._by_query.popitem(last=False)[0].rows
            self._by_query[page] = _ByQuery.of(page.table)
        self._by_query.move_to_end(page)
        return self._by_query[page].rows_of(number)

    def count_of(self, number: int) -> int:
        """How many elements were put out for a query."""
        return int(self._counts[number]) if number < len(self._counts) else 0

    # -- pages that several need -----------------------------------------------------------

    def hold(self, page: Page) -> None:
        """Counts one more reader that needs a page."""
        self._holders[page] += 1

    def let_go(self, page: Page) -> None:
        """Counts one reader less that needs a page."""
        self._holders[page] -= 1
        if self._holders[page] == 0:
            del self._holders[page]
            self._by_query.pop(page, None)
            super().let_go(page)

    def page_in(self, names: tuple[str, ...]) -> Page | None:
        """The page that lies in some files, if somebody needs it."""
        return next((page for page in self._holders if page.names == names), None)

    # -- after a restart -------------------------------------------------------------------

    def restore(self, *args: Any, **facts: Any) -> None:
        """Takes what an earlier run has put out."""
        super().restore(*args, **facts)
        for page in self.pages:
            self.hold(page)

    def facts(self) -> dict[str, Any]:
        """What is known of it beside its pages."""
        return {
            "counts": self._counts.tolist(),
            "gone": self._gone.tolist(),
            "tags": [self.tags_of(page).to_json() for page in [*self.kept, *self.content]],
        }

    def restore_facts(
        self, counts: Sequence[int], gone: Sequence[int], tags: Sequence[str]
    ) -> None:
        """Takes what ``facts`` gave."""
        self._counts, self._gone = np.array(counts, np.int64), np.array(gone, np.int64)
        self._there = np.zeros(len(counts), np.int64)
        for page, text in zip([*self.kept, *self.content], tags, strict=True):
            self.know_tags(page, text)
        for page in self.kept:
            self._count_there(page, 1)


def _count_of(tags: Tags, number: int) -> int:
    place = int(np.searchsorted(tags.numbers, number))
    is_there = place < len(tags.numbers) and tags.numbers[place] == number
    return int(tags.counts[place]) if is_there else 0


@dataclass(frozen=True)
class GroupSlice:
    """The slice that a query has of the results of its group."""

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

    @property
    def kept_rows(self) -> int:
        """How many of them are kept."""
        return sum(rows for (_, _, rows), gone in self.log.placed(self.number) if not gone)

    def pages(self) -> list[SliceOfPage]:
        """What is kept of it."""
        return self.log.slices(self.number)

    def passed_pages(self) -> list[SliceOfPage]:
        """What was let go of it, as far as its content is known."""
        return self.log.passed_slices(self.number)

    @property
    def is_whole(self) -> bool:
        """Whether all of it is kept, or what it comes to is."""
        return self.log.is_complete

    def read_by(self, log: ResultLog) -> None:
        """Has the group hand pages on to the query's log as they come."""
        self.log.readers[self.number] = log

    def followed_by(self, log: ResultLog) -> None:
        """Tells the group that the query's log has results of before."""
        self.log.elders[self.number] = log

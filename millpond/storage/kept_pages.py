"""Pages that are kept to be read again: results, what was left out, tuples that came too late.

A ``PageLog`` has them in the order in which they came. The oldest are let go as others come; small
ones are merged, so that there are few files and few objects however many steps have made them. All
of them are in one account, ``KeptPages``, by which the budget has them leave memory.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from millpond.errors import DamageError, StoreError
from millpond.kernels.columns import integers
from millpond.settings import Keeping
from millpond.storage.journal import Journal
from millpond.storage.pages import Page
from millpond.storage.store import Store
from millpond.storage.transitions import Transition

FEW_PAGES = 16
"""So many pages of a log may be small."""

MERGED_AT_ONCE = 8
"""So many small pages become one."""

MERGED_ROWS = 100_000
"""No page is merged to one of more rows."""

PARTS_KEPT = 8
"""Nor to more than this part of what is kept: it is let go page by page."""


class KeptPages:
    """The account of all kept pages, and of the memory they take."""

    def __init__(self) -> None:
        self.memory_bytes = 0
        self._in_memory: dict[Page, int] = {}
        """How much was counted for each page that is in memory, oldest first."""

    def add(self, page: Page) -> None:
        """A page is kept from now on."""
        if page not in self._in_memory and page.memory_bytes:
            self._in_memory[page] = page.memory_bytes
            self.memory_bytes += page.memory_bytes

    def remove(self, page: Page) -> None:
        """A page is kept no more, or has left memory."""
        self.memory_bytes -= self._in_memory.pop(page, 0)

    def to_spill(self, wanted: int) -> list[Page]:
        """Pages of at least so many bytes that could leave memory, the oldest first."""
        found: list[Page] = []
        for page, bytes_ in self._in_memory.items():
            if wanted <= 0:
                break
            if page.can_spill:
                found.append(page)
                wanted -= bytes_
        return found

    def count_spilled(self, pages: Iterable[Page]) -> None:
        """Some pages were to leave memory."""
        for page in pages:
            if not page.memory_bytes:
                self.remove(page)


class Over(NamedTuple):
    """What is more than is to be kept: the first pages, or all but so many rows of each query."""

    pages: int = 0
    rows: int | None = None


@dataclass(frozen=True)
class Repaging:
    """Pages of a log, so many from a place on, in whose stead there is one."""

    place: int
    count: int
    page: Page | None
    is_content: bool = False
    """Whether they are those of which only the content is known."""
    passed: Page | None = None
    """The rows of them that are let go, of which the content stays."""


@dataclass
class PageLog:
    """Pages in the order in which they came, of which the last are kept."""

    kept: list[Page] = field(default_factory=list, kw_only=True)
    """What came, as far as it is kept."""
    books: KeptPages = field(default_factory=KeptPages, kw_only=True)

    @property
    def later_rows(self) -> int:
        """How many rows have come elsewhere since."""
        return 0

    @property
    def unseen(self) -> Sequence[Page]:
        """The pages that somebody has yet to see: they are not merged."""
        return ()

    @property
    def held(self) -> Sequence[Page]:
        """The pages that somebody needs as they are, also when they are no longer kept."""
        return ()

    def tags_in(self, page: Page | None) -> str | None:
        """Whose the rows of a page are, where several have rows there."""
        return None

    def know_tags(self, page: Page | None, tags: str | None) -> None:
        """Is told it of a page of an earlier run."""

    def append(self, page: Page) -> None:
        """One page more."""
        self.kept.append(page)
        self.books.add(page)

    def let_go(self, page: Page) -> None:
        """A page is not needed here any more."""
        self.books.remove(page)
        page.free()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept, so that nothing is to be looked after."""
        return not self.kept

    def over(self, keeping: Keeping) -> Over | None:
        """How many of the oldest pages are more than are to be kept, if any are."""
        pages = pages_over(self.kept, keeping, self.later_rows)
        return Over(pages=pages) if pages else None

    def pass_over(self, over: Over) -> bool:
        """Lets go what is more than is to be kept; whether anything was."""
        self.pass_pages(over.pages)
        return True

    def pass_pages(self, pages: int) -> None:
        """Lets the first pages go."""
        gone, self.kept[:pages] = self.kept[:pages], []
        self._replaced(gone)

    def repaging(self, keeping: Keeping, store: Store) -> Repaging | None:
        """What small pages could be one, if there are too many."""
        found = self.run_to_merge(keeping)
        if found is None:
            return None
        place, count = found
        table = in_order_of_time(self.kept[place : place + count])
        return Repaging(place, count, _merged(store, table, self.kept[place : place + count]))

    def run_to_merge(self, keeping: Keeping) -> tuple[int, int] | None:
        """Where small pages follow each other that could be one, and how many they are."""
        unseen = set(self.unseen)
        free = next((i for i, page in enumerate(self.kept) if page in unseen), len(self.kept))
        most = MERGED_ROWS if keeping.rows is None else min(MERGED_ROWS, keeping.rows // PARTS_KEPT)
        return run_to_merge(self.kept[:free], most, lambda run: follow(run, keeping))

    def repage(self, change: Repaging) -> None:
        """Puts the new page in the place of those it replaces."""
        gone = self.kept[change.place : change.place + change.count]
        self.kept[change.place : change.place + change.count] = self._entered(change.page)
        self._replaced(gone)

    def _entered(self, page: Page | None) -> list[Page]:
        if page is None:
            return []
        self.books.add(page)
        return [page]

    def _replaced(self, gone: list[Page]) -> None:
        held = set(self.held)
        for page in gone:
            if page not in held:
                self.let_go(page)


def pages_over(pages: Sequence[Page], keeping: Keeping, later_rows: int = 0) -> int:
    """How many of the first pages are more than is to be kept."""
    over = 0
    if keeping.rows is not None:
        rows = sum(page.rows for page in pages) + later_rows
        while over < len(pages) and rows - pages[over].rows >= keeping.rows:
            rows, over = rows - pages[over].rows, over + 1
    elif keeping.seconds is not None:
        since = time.monotonic() - keeping.seconds
        while over < len(pages) and pages[over].made_seconds < since:
            over += 1
    return over


def run_to_merge(
    pages: Sequence[Page], most_rows: float, is_one: Callable[[Sequence[Page]], bool]
) -> tuple[int, int] | None:
    """The smallest pages that follow each other, of too many: their place and number."""
    sizes = [page.rows for page in pages]
    if most_rows < 2 or len(sizes) <= FEW_PAGES + 2 * sum(sizes) // most_rows:
        return None
    for count in (MERGED_AT_ONCE, 2):
        found = [
            (rows, place)
            for place in range(len(sizes) - count + 1)
            if (rows := sum(sizes[place : place + count])) <= most_rows
            and is_one(pages[place : place + count])
        ]
        if found:
            return min(found)[1], count
    return None


def follow(run: Sequence[Page], keeping: Keeping) -> bool:
    """Whether pages could be one: each is of a later time than the one before, and they were made
    soon after each other where they are kept for some time."""
    are_in_order = all(run[i].last < run[i + 1].first for i in range(len(run) - 1))
    seconds = run[-1].made_seconds - run[0].made_seconds
    return are_in_order and (keeping.seconds is None or seconds <= keeping.seconds / PARTS_KEPT)


def in_order_of_time(pages: Iterable[Page]) -> pa.Table:
    """The rows of pages, each in order of time."""
    return pa.concat_tables([_in_order(page) for page in pages]).combine_chunks()


def _in_order(page: Page) -> pa.Table:
    table = page.table
    if page.is_sorted or "_ts" not in table.column_names:
        return table
    return table.take(pa.array(np.argsort(integers(table["_ts"]), kind="stable")))


def _merged(store: Store, table: pa.Table, pages: Sequence[Page]) -> Page:
    """A page of rows of some others."""
    page = Page(
        store,
        rows=table.num_rows,
        bytes_=table.nbytes,
        first=pages[0].first,
        last=pages[-1].last,
        last_end=None,
        table=table,
        is_sorted=True,
    )
    page.made_seconds = pages[-1].made_seconds
    return page


def runs_of_time(pages: Sequence[Page]) -> Iterator[Sequence[Page]]:
    """Pages in runs: what is in a run is of a later time than all before it."""
    first, last = 0, -math.inf
    for place, page in enumerate(pages):
        if place > first and page.first > last:
            yield pages[first:place]
            first = place
        last = max(last, page.last)
    if pages:
        yield pages[first:]


class Keeper:
    """Lets go what is more than is to be kept, and merges small pages; both are noted."""

    def __init__(self) -> None:
        self.keeping = Keeping()
        """How much of each log is kept."""
        self.books = KeptPages()
        self._store: Store
        self._journal: Journal

    def use(self, store: Store, journal: Journal) -> None:
        """Where pages lie and what happened is noted."""
        self._store, self._journal, self.books = store, journal, KeptPages()

    def tidy(self, log: PageLog, query: str | None = None, late: str | None = None) -> None:
        """Looks after the log of what a query puts out, or of a stream's late tuples."""
        if log.is_empty:
            return
        over = log.over(self.keeping)
        if over is not None and log.pass_over(over):
            self._journal.note(LetGo(over.pages, over.rows, query, late))
        with suppress(StoreError, DamageError):  # where they can't be read or written small ones do
            while (change := log.repaging(self.keeping, self._store)) is not None:
                self._note(change, log, query, late)
                log.repage(change)

    def _note(self, change: Repaging, log: PageLog, query: str | None, late: str | None) -> None:
        if not self._journal.is_durable:
            return
        facts = change.place, change.count, change.page, change.is_content, change.passed
        tags, passed_tags = log.tags_in(change.page), log.tags_in(change.passed)
        try:
            self._journal.note(Repaged(*facts, tags, passed_tags, query, late))
        except StoreError:
            for page in (change.page, change.passed):
                if page is not None:
                    page.free()
            raise


class PageLogs(Protocol):
    """Knows all logs of pages."""

    def page_log(self, query: str | None, late: str | None) -> PageLog:
        """The log of what a query puts out, or of a stream's late tuples."""


@dataclass(frozen=True)
class LetGo(Transition, kind="let_go", to="logs"):
    """Pages of a log are kept no more."""

    over_pages: int
    over_rows: int | None
    query: str | None = None
    late: str | None = None

    def apply(self, part: PageLogs) -> None:
        """Lets them go."""
        part.page_log(self.query, self.late).pass_over(Over(self.over_pages, self.over_rows))


@dataclass(frozen=True)
class Repaged(Transition, kind="repaged", to="logs"):
    """In a log one page stands for some that it had."""

    place: int
    count: int
    page: Page | None
    is_content: bool
    passed: Page | None
    tags: str | None = None
    passed_tags: str | None = None
    query: str | None = None
    late: str | None = None

    def apply(self, part: PageLogs) -> None:
        """Puts it in their place."""
        log = part.page_log(self.query, self.late)
        log.know_tags(self.page, self.tags)
        log.know_tags(self.passed, self.passed_tags)
        log.repage(Repaging(self.place, self.count, self.page, self.is_content, self.passed))

"""Queues: pages of one stream or relation, with one time cursor for each reader.

A page is freed when every reader has passed the time until which it needs the page. All readers of
a stream share its pages, whatever their windows: that is synopsis sharing.
"""

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice

import numpy as np
import pyarrow as pa

from millpond.identities import QueueId
from millpond.kernels.columns import integers
from millpond.kernels.levels import parts_to_merge
from millpond.kernels.snapshots import still_open
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.bounds import Age, Bounds, Closings
from millpond.storage.kept_pages import FEW_PAGES, MERGED_AT_ONCE, PARTS_KEPT, run_to_merge
from millpond.storage.latest_rows import LatestRows
from millpond.storage.origins import mixed
from millpond.storage.pages import Page, Span, concatenated
from millpond.storage.promises import Promises
from millpond.storage.punctuations import Patterns, Punctuations, TimeColumn
from millpond.storage.rates import Course, Rate
from millpond.storage.readers import Reader, ReaderKind, Remains, Retention
from millpond.storage.store import Store

COMPACT_ROWS = 10_000
"""Content is not compacted before this many rows have changed."""

GROWING_ROWS = 10_000
"""A page of at most so many rows takes up what comes after it, as long as it is unread."""

MERGE_PAGES, MERGE_ROWS = 16, 100_000
"""So many pages below so many rows are merged into one where readers scan them all."""

MOST_KNOWN = 64
"""Between so many pairs of times it is remembered how much lies there."""

MERGED_BYTES = 16 * 2**20
"""No page is merged to a larger one: while it is made, its rows are in memory twice."""


@dataclass(frozen=True)
class Compaction:
    """Pages of a queue that one new page replaces: content summed up to a time, or pages merged."""

    page: Page | None
    replaced: tuple[Page, ...]
    content_until: int | None = None


@dataclass
class Queue:
    """An append-only list of pages and the promise (heartbeat) that nothing earlier will follow."""

    name: QueueId
    schema: pa.Schema
    store: Store
    is_stream: bool
    heartbeat: int = BEGINNING - 1
    base: Page | None = None
    """The net content at ``base_time``, for readers that need the whole relation."""
    base_time: int = BEGINNING - 1
    rows: int = 0
    bytes: int = 0
    spilled_bytes: int = 0
    """How much of it is on disk only."""
    _pages: list[Page] = field(default_factory=list)
    _floors: list[int] = field(default_factory=list)
    """For each page the heartbeat when it came: all its rows are later. They never fall."""
    _lasts: list[int] = field(default_factory=list)
    """For each page the largest time up to it. These never fall either."""
    _amounts: list[tuple[int, int]] = field(default_factory=list)
    """For each page the rows and bytes up to and with it, free ones included."""
    _known: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """How much lies between two times, as far as that was asked since pages have come or gone."""
    _freed: int = 0
    freed_until: int = BEGINNING - 1
    """All that ever came after this time is still there."""
    _kinds: dict[tuple[Retention, bool, bool, bool, int], ReaderKind] = field(default_factory=dict)
    arrivals: Rate = field(default_factory=Rate)
    """Rows that come in a second."""
    course: Course = field(default_factory=Course)
    """Rows that came, over the whole run."""
    bounds: dict[int, Bounds] = field(default_factory=dict)
    """Of some columns of a stream, what tuples that are to come are not smaller than."""
    closings: dict[int, Closings] = field(default_factory=dict)
    """Of some columns of a stream, which values tuples that are to come do not have."""
    ages: dict[str, Age] = field(default_factory=dict)
    """Of some constraints of a stream, how old tuples are of which nothing is asked any more."""
    punctuations: Punctuations = field(default_factory=Punctuations)
    """Of a stream, what tuples that are to come do not match."""
    time_column: TimeColumn | None = None
    """The column that has the times of a stream, if one has."""
    latest: LatestRows = field(default_factory=LatestRows)
    """What came last, if it is of an input."""
    promises: Promises | None = None
    """When its heartbeat came to which time, where somebody outside promises that."""
    _unread: list[Page] = field(default_factory=list)
    """Pages that no reader holds, but that the heartbeat has not reached."""
    _look_at: int = FEW_PAGES
    """How many pages are to be retained before small ones among them are looked for."""

    # -- pages -----------------------------------------------------------------------------

    @property
    def pages(self) -> list[Page]:
        """The pages there are, as they came."""
        return [page for page in self._pages if not page.is_free]

    @property
    def last_page_rows(self) -> int:
        """How many rows the last page has, with those by which it has grown."""
        return self._pages[-1].rows if self._pages else 0

    @property
    def all_pages(self) -> list[Page]:
        """The pages, and the one that holds the content summed up."""
        return [*self.pages, *([self.base] if self.base else [])]

    @property
    def placed_pages(self) -> list[tuple[Page, int]]:
        """The pages there are, each with the heartbeat when it came."""
        placed = zip(self._pages, self._floors, strict=True)
        return [(page, floor) for page, floor in placed if not page.is_free]

    def restore(
        self,
        heartbeat: int,
        freed_until: int,
        placed: list[tuple[Page, int]],
        base: Page | None,
        base_time: int,
    ) -> None:
        """Takes the content that an earlier run has left; the queue was empty."""
        for page, floor in placed:
            self._place(page, floor)
            self._offer(page)
        self.heartbeat, self.freed_until = heartbeat, freed_until
        self.compact(Compaction(base, (), base_time))

    def append(self, table: pa.Table, is_sorted: bool = False) -> Page | None:
        """Adds rows, all after the heartbeat; a short page that nobody has read yet grows."""
        if table.num_rows == 0:
            return None
        page = Page.of(self.store, table, is_sorted)
        self.add(page)
        return page

    def add(self, page: Page) -> None:
        """Adds a page; a short one before it that nobody has read yet takes it up."""
        self.passed(page.rows)
        if not self.store.is_durable and self._grows(page):
            old, floor = self._pages.pop(), self._floors.pop()
            self._lasts.pop()
            self._amounts.pop()
            self._count(old, -1)
            page = old.followed_by(page)
            self._place(page, floor)
        else:
            self._place(page, self.heartbeat)
        self._offer(page)

    def passed(self, rows: int) -> None:
        """Counts rows that come; some are read before anybody else sees them, and are no page."""
        self.arrivals.add(rows)
        self.course.add(rows)

    def _offer(self, page: Page) -> None:
        for kind in self._kinds.values():
            kind.hold(page)
        if not page.holders:
            self._unread.append(page)

    def _grows(self, page: Page) -> bool:
        last = self._pages[-1] if self._pages else None
        return (
            last is not None
            and not last.is_free
            and last.rows <= GROWING_ROWS
            and last.is_in_driver
            and page.is_in_driver
            and last.first > self.heartbeat  # so nobody has read it
        )

    def _place(self, page: Page, floor: int) -> None:
        self._pages.append(page)
        self._floors.append(floor)
        self._lasts.append(max(page.last, self._lasts[-1]) if self._lasts else page.last)
        self._amounts.append(_sum(self._amounts[-1] if self._amounts else (0, 0), page))
        self._count(page, 1)

    def _count(self, page: Page, sign: int) -> None:
        self._known.clear()
        self.rows += sign * page.rows
        self.bytes += sign * page.bytes
        self.spilled_bytes += sign * page.bytes if page.is_spilled else 0

    def advance(self, heartbeat: int) -> None:
        """Promises that nothing at or before the heartbeat will follow."""
        if heartbeat <= self.heartbeat:
            return
        if self.promises is not None:
            self.promises.note(self.heartbeat, heartbeat, time.monotonic())
        self.heartbeat = heartbeat

    def closed_after(self, time: int) -> Patterns:
        """The patterns that no element of a stream matches which begins after a time."""
        past = () if self.time_column is None else (self.time_column.past(time),)
        return (*past, *self.punctuations.at(time))

    # -- reading ---------------------------------------------------------------------------

    def _overlapping(self, after: int, until: int) -> list[Page]:
        """The pages with rows in (after, until], without a look at those before and behind."""
        low, high = bisect_right(self._lasts, after), bisect_left(self._floors, until)
        return [
            page
            for page in self._pages[low:high]
            if page.last > after and page.first <= until and not page.is_free
        ]

    def between(self, after: int, until: int) -> list[Span]:
        """The rows with times in (after, until]."""
        return [Span(page, after, until) for page in self._overlapping(after, until)]

    def first(self, after: int, until: int, rows: int) -> list[Span]:
        """The first parts of what lies in (after, until] that have more than so many rows, or all.

        Later ones are not looked at.
        """
        low, high = bisect_right(self._lasts, after), bisect_left(self._floors, until)
        found: list[Span] = []
        for page in islice(self._pages, low, high):
            if page.last > after and page.first <= until and not page.is_free:
                found.append(Span(page, after, until))
                rows -= found[-1].rows
                if rows < 0:
                    break
        return found

    def covering(self, after: int, until: int, since: int = BEGINNING - 1) -> list[Span]:
        """All rows of (after, until], and perhaps more at its old end, but none up to ``since``."""
        return [Span(page, since, until) for page in self._overlapping(after, until)]

    def content(self, at: int) -> list[Span]:
        """The relation's content at a time that all its readers have reached."""
        later = self.between(self.base_time, at)
        return ([Span(self.base, self.base.first - 1, at)] if self.base else []) + later

    def ending(self, after: int, until: int) -> list[Span]:
        """The elements from at or before ``after`` that end within (after, until]."""
        begun = self._pages[: bisect_left(self._floors, after)]
        return [
            Span(page, after, until, ends=True)
            for page in begun
            if not page.is_free
            and page.first <= after
            and page.last_end is not None
            and page.last_end > after
            and (page.first_end is None or page.first_end <= until)
        ]

    def waiting(self, after: int, until: int) -> int:
        """About how many rows lie between two times."""
        return self._amount(after, until)[0]

    def backlog(self) -> tuple[int, int]:
        """About how many rows and bytes wait for a reader that works on them."""
        passed = [kind.least_cursor for kind in self._kinds.values() if kind.works]
        return self._amount(min(passed), FOREVER) if passed else (0, 0)

    def is_caught_up(self) -> bool:
        """Whether no reader has anything to work on that the heartbeat has passed."""
        kinds = [kind for kind in self._kinds.values() if kind.works]
        return all(kind.least_cursor >= self.heartbeat for kind in kinds)

    def _amount(self, after: int, until: int) -> tuple[int, int]:
        """Rows and bytes between two times, which a turn of the loop asks again and again."""
        known = self._known.get((after, until))
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[after, until] = self._counted(after, until)
        return known

    def _counted(self, after: int, until: int) -> tuple[int, int]:
        """The same, counted: only pages that lie there in part are looked at."""
        low, high = bisect_right(self._lasts, after), bisect_left(self._floors, until)
        first = max(low, bisect_left(self._floors, after))  # from here on all is later
        last = min(high, bisect_right(self._lasts, until))  # up to here nothing is
        if first < last:
            before, all_ = self._amounts[first - 1] if first else (0, 0), self._amounts[last - 1]
            rows, bytes_ = all_[0] - before[0], all_[1] - before[1]
        else:
            first, last, rows, bytes_ = high, high, 0, 0
        for page in chain(self._pages[low:first], self._pages[last:high]):
            if not page.is_free and (count := page.count(after, until)):
                rows += count
                bytes_ += page.bytes * count // page.rows
        return rows, bytes_

    def oldest_arrival(self, cursor: int) -> float:
        """When the oldest of what is behind a cursor arrived; infinity if nothing waits."""
        for page in self._pages[bisect_right(self._lasts, cursor) :]:
            if page.last > cursor and not page.is_free:
                return page.arrived_after(cursor)
        return math.inf

    # -- memory ----------------------------------------------------------------------------

    def to_spill(self, wanted: int) -> list[Page]:
        """Pages of at least so many bytes that could leave memory, those needed last first.

        That is what all readers have passed, which is retained, the latest first: it leaves windows
        last. Then it is what came last of the backlog.
        """
        passed = min((kind.least_cursor for kind in self._kinds.values()), default=FOREVER)
        retained = [page for page in self.pages if page.last <= passed]
        waiting = [page for page in self.pages if page.last > passed]
        base = [self.base] if self.base else []
        found: list[Page] = []
        for page in chain(reversed(retained), base, reversed(waiting)):
            if wanted <= 0:
                break
            if page.can_spill:
                found.append(page)
                wanted -= page.bytes
        return found

    def count_spilled(self) -> None:
        """Pages have left memory."""
        self.spilled_bytes = sum(page.bytes for page in self.all_pages if page.is_spilled)

    # -- readers ---------------------------------------------------------------------------

    @property
    def readers(self) -> list[Reader]:
        """Everybody who reads."""
        return [reader for kind in self._kinds.values() for reader in kind.readers]

    def subscribe(self, reader: Reader) -> Reader:
        """A new reader, which holds the pages there are: what it will read, and what others hold.

        What nobody needs is not held again: it would be gone after a restart.
        """
        key = reader.kind
        kind = self._kinds.get(key)
        if kind is None:
            held = self._there_for(reader)
            kind = self._kinds[key] = ReaderKind(*key)
            for page in held:
                kind.hold(page)
            if reader.needs_content:
                kind.summed(self.base_time)
        elif reader.cursor < kind.least_cursor:
            kind.hold_again(self._there_for(reader), reader.cursor)
        self._unread = [page for page in self._unread if not page.holders]
        kind.add(reader)
        return reader

    def _there_for(self, reader: Reader) -> list[Page]:
        if not self.is_stream:
            return self.pages
        self._unread += self._let_go()
        begins = max(reader.cursor, reader.since)
        return [page for page in self.pages if page.holders or page.last > begins]

    def remains(self, known: set[Reader]) -> Remains:
        """What is needed of a new page once these readers have passed it; others may need all."""
        kinds = [kind for kind in self._kinds.values() if kind.through == FOREVER]
        if any(k.needs_content or k.scans or not k.readers <= known for k in kinds):
            return Remains.ALL
        return max((k.retention.remains for k in kinds), default=Remains.ALL, key=lambda r: r.value)

    def unsubscribe(self, reader: Reader) -> None:
        """A reader leaves."""
        kind = self._kinds[reader.kind]
        kind.readers.discard(reader)
        if not kind.readers:
            del self._kinds[reader.kind]
            self._unread += kind.let_go_all()

    def serves(self, reader: Reader, at: int, there: Iterable[Reader]) -> bool:
        """Whether a reader of a queue with the same content could go on here at a time: what it
        will read again is there, as one of those who are there reads it again too, is not further,
        and has read here since before. Of a stream that may be one with a longer window."""
        over = reader.retention.over(at) if self.is_stream else BEGINNING - 1
        for each in there:
            is_alike = each.kind == reader.kind or (self.is_stream and each.holds_after(over))
            if is_alike and each.cursor <= at and each.since <= over:
                return True
        is_over = reader.retention.remains is Remains.NOTHING
        return is_over and not reader.needs_content and not reader.scans

    def whole_after(self) -> int:
        """All that ever came after this time is there, and operators keep it there by themselves:
        who only looks on may leave at any time."""
        kinds = [k for k in self._kinds.values() if k.works or k.through < FOREVER]
        needed = {id(page) for kind in kinds for page in kind.needed}
        loose = (
            page.last
            for page in self.pages
            if page.last <= self.heartbeat and id(page) not in needed
        )
        return max(self.freed_until, max(loose, default=self.freed_until))

    def bound(self, reader: Reader, through: int) -> Reader:
        """From now on a reader needs only what is not later than a time it has reached."""
        bounded = self.subscribe(replace(reader, works=False, through=through))
        self.unsubscribe(reader)
        return bounded

    def is_held_by(self, reader: Reader) -> bool:
        """Whether any page is still needed by a reader, or by one like it."""
        return self._kinds[reader.kind].is_holding

    def is_cut_by(self, time: int) -> bool:
        """Whether a page has rows both up to a time and after it."""
        return any(page.first <= time < page.last for page in self.pages)

    # -- letting pages go ------------------------------------------------------------------

    def free(self) -> None:
        """Drops the pages nobody needs."""
        loose = self._unread + self._let_go()
        self._unread = [page for page in loose if page.last > self.heartbeat]
        self._drop([page for page in loose if page.last <= self.heartbeat])

    def _let_go(self) -> list[Page]:
        """The pages that were held and that nobody needs any more."""
        return [page for kind in self._kinds.values() for page in kind.let_go()]

    def lose(self, files: Set[str]) -> None:
        """Drops the pages that lie in some files: these are damaged."""
        self._drop([page for page in self.pages if not files.isdisjoint(page.names)])
        if self.base is not None and not files.isdisjoint(self.base.names):
            self._count(self.base, -1)
            self.base.free()
            self.base = None

    def _drop(self, pages: list[Page]) -> None:
        for page in pages:
            if not page.is_free:
                page.free()
                self._count(page, -1)
                self._freed += 1
                self.freed_until = max(self.freed_until, page.last)
        if self._freed > len(self._pages) // 2:
            self._index()

    def _index(self) -> None:
        kept = [
            (page, floor)
            for page, floor in zip(self._pages, self._floors, strict=True)
            if not page.is_free
        ]
        self._pages, self._floors = [page for page, _ in kept], [floor for _, floor in kept]
        self._index_again()
        self._freed = 0

    def _index_again(self) -> None:
        self._lasts = list(accumulate((page.last for page in self._pages), max))
        self._amounts = list(accumulate(self._pages, _sum, initial=(0, 0)))[1:]

    # -- compaction ------------------------------------------------------------------------

    def compaction(self) -> Compaction | None:
        """What could be summed up or merged now, if that pays."""
        return self._summed_content() or self._merged() or self._retained()

    def compact(self, change: Compaction) -> None:
        """Puts the new page in the place of those it replaces."""
        if change.content_until is not None:
            if self.base:
                self._count(self.base, -1)
                self.base.free()
            self.base, self.base_time = change.page, change.content_until
            if self.base:
                self._count(self.base, 1)
            for kind in self._kinds.values():
                kind.summed(self.base_time)
            return
        if change.page is None:
            return
        floors = dict(zip(map(id, self._pages), self._floors, strict=True))
        floor = min(floors[id(page)] for page in change.replaced)
        gone = set(map(id, change.replaced))
        rest = [(page, floors[id(page)]) for page in self._pages if id(page) not in gone]
        place = self._place_of(change.replaced)
        floor = floor if place else min([floor, *self._floors])
        self._pages = [page for page, _ in rest]
        self._floors = [floor for _, floor in rest]
        self._pages.insert(place, change.page)
        self._floors.insert(place, floor)
        self._index_again()
        self._look_at = min(self._look_at, max(FEW_PAGES, len(self._pages)))
        self._freed = sum(page.is_free for page in self._pages)
        self._count(change.page, 1)
        for kind in self._kinds.values():
            kind.hold(change.page)
        for page in change.replaced:
            self._count(page, -1)
            page.free()

    def _place_of(self, replaced: Sequence[Page]) -> int:
        """Where pages stand that follow each other; others go to the front."""
        place = next(i for i, page in enumerate(self._pages) if page is replaced[0])
        return place if self._pages[place : place + len(replaced)] == list(replaced) else 0

    def _retained(self) -> Compaction | None:
        """Small pages of a store that lasts, which windows retain, as one: each is a file."""
        kinds = self._kinds.values()
        if not self.store.is_durable or any(
            k.scans or k.retention.ends or k.needs_content or k.through < FOREVER for k in kinds
        ):
            return None
        passed = min((kind.least_cursor for kind in kinds), default=BEGINNING - 1)
        count = bisect_right(self._floors, passed)
        if count < self._look_at:
            return None
        old = [p for p in self._pages[:count] if not p.is_free and p.last <= passed]
        most = min(MERGE_ROWS, sum(page.rows for page in old) // PARTS_KEPT)
        found = run_to_merge(old, most, lambda run: True)
        self._look_at = count + MERGED_AT_ONCE
        if found is None:
            return None
        chosen = old[found[0] : found[0] + found[1]]
        table = concatenated(chosen, self.schema)
        table = table.take(pa.array(np.argsort(integers(table["_ts"]), kind="stable")))
        merged = Page.of(self.store, table, is_sorted=True)
        merged.origins = mixed((page.origins, page.rows) for page in chosen)
        return Compaction(merged, tuple(chosen))

    def _summed_content(self) -> Compaction | None:
        kinds = [kind for kind in self._kinds.values() if kind.needs_content]
        if not kinds:
            return None
        limit = max(COMPACT_ROWS, self.base.rows if self.base else 0)
        if self.rows - (self.base.rows if self.base else 0) < limit:
            return None
        at = min(kind.least_cursor for kind in kinds)
        changed = [page for page in self._overlapping(self.base_time, at) if page.last <= at]
        if sum(page.rows for page in changed) < limit:
            return None
        columns = [name for name in self.schema.names if not name.startswith("_")]
        table = still_open(concatenated(self.content(at), self.schema), columns, at)
        page = Page.of(self.store, table) if table.num_rows else None
        return Compaction(page, (), at)

    def _merged(self) -> Compaction | None:
        """Pages that all readers have passed, as one: small ones where somebody scans them all, and
        by levels where elements are read again when they end, each wherever it lies.
        """
        kinds = self._kinds.values()
        scans, ends = (any(k.scans for k in kinds), any(k.retention.ends for k in kinds))
        if len(self._pages) < MERGE_PAGES or not (scans or ends):
            return None
        passed = min(kind.least_cursor for kind in kinds)
        bound = max((kind.through for kind in kinds if kind.through < FOREVER), default=None)
        old = [
            p
            for p in self._pages[: bisect_right(self._floors, passed)]
            if p.last <= passed and not p.is_free and p.is_in_driver
            if bound is None or p.first > bound
        ]
        old = _first([p for p in old if p.rows < MERGE_ROWS]) if scans else self._levelled(old)
        if len(old) < (MERGE_PAGES if scans else 2):
            return None
        table = concatenated(old, self.schema)
        if not scans:  # what has ended all have read
            table = table.filter(pa.array(integers(table["_te"]) > passed))
        if table.num_rows == 0:
            return None
        merged = Page.of(self.store, table)
        merged.origins = mixed((page.origins, page.rows) for page in old)
        return Compaction(merged, tuple(old))

    def _levelled(self, pages: list[Page]) -> list[Page]:
        """The smallest of many pages, as many as make a level full."""
        if any(kind.needs_content for kind in self._kinds.values()):
            return []
        ending = (page for page in pages if page.last_end is not None)
        by_size = sorted(ending, key=lambda page: -page.rows)
        if len(by_size) < MERGE_PAGES:
            return []
        count = parts_to_merge([page.rows for page in by_size[:-1]], by_size[-1].rows)
        smallest = by_size[len(by_size) - 1 - count :]
        return _first(smallest[::-1])

    def close(self) -> None:
        """Frees all pages."""
        for page in self.all_pages:
            page.free()
        self._pages, self._floors, self._lasts, self._amounts = [], [], [], []
        self.base = None
        self.rows = self.bytes = self.spilled_bytes = self._freed = 0


def _first(pages: list[Page]) -> list[Page]:
    """As many of the first pages as one page may have been merged from."""
    sizes = list(accumulate(page.bytes for page in pages))
    return pages[: bisect_right(sizes, MERGED_BYTES)]


def _sum(before: tuple[int, int], page: Page) -> tuple[int, int]:
    return before[0] + page.rows, before[1] + page.bytes

"""Queues: pages of one stream or relation, with one time cursor for each reader.

A page is freed when every reader has passed the time until which it needs the page. All readers of
a stream share its pages, whatever their windows: that is synopsis sharing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from millpond.kernels.snapshots import still_open
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.pages import Page, PageStore, concatenated, total_rows

COMPACT_ROWS = 10_000
"""Content is not compacted before this many rows have changed."""

GROWING_ROWS = 10_000
"""A page of at most so many rows takes up what comes after it, as long as it is unread."""

MERGE_PAGES, MERGE_ROWS = 16, 100_000
"""So many pages below so many rows are merged into one where readers scan them all."""


@dataclass
class Reader:
    """One reader's place: it has read everything up to ``cursor``.

    ``needs_until`` tells, for a page, the time the cursor must reach before the page may go.
    """

    cursor: int
    needs_until: Callable[[Page], int]
    needs_content: bool = False
    scans: bool = False
    """Whether every step reads all retained pages, so that few large ones are better."""


@dataclass
class Queue:
    """An append-only list of pages and the promise (heartbeat) that nothing earlier will follow."""

    name: str
    schema: pa.Schema
    store: PageStore
    is_stream: bool
    heartbeat: int = BEGINNING - 1
    pages: list[Page] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    base: Page | None = None
    """The net content at ``base_time``, for readers that need the whole relation."""
    base_time: int = BEGINNING - 1

    def append(self, table: pa.Table, is_sorted: bool = False) -> None:
        """Adds rows, all after the heartbeat; a short page that nobody has read yet grows."""
        if table.num_rows == 0:
            return
        page = self.store.page(table, is_sorted)
        if self.pages and self._grows(self.pages[-1]):
            page = self.pages.pop().followed_by(page)
        self.pages.append(page)

    def _grows(self, page: Page) -> bool:
        unread = all(reader.cursor < page.first for reader in self.readers)
        return unread and page.rows <= GROWING_ROWS and page.first > self.heartbeat

    def advance(self, heartbeat: int) -> None:
        """Promises that nothing at or before the heartbeat will follow."""
        self.heartbeat = max(self.heartbeat, heartbeat)

    def between(self, after: int, until: int) -> list[Page]:
        """Pages that hold exactly the rows with times in (after, until]."""
        self.cut_at(after)
        self.cut_at(until)
        return [page for page in self.pages if after < page.first and page.last <= until]

    def cut_at(self, time: int) -> None:
        """Sees to it that no page has rows on both sides of a time."""
        if any(page.first <= time < page.last for page in self.pages):
            cut: list[Page] = []
            for page in self.pages:
                cut += page.cut(time) if page.first <= time < page.last else (page,)
            self.pages = cut

    def waiting(self, cursor: int, until: int) -> int:
        """About how many rows lie between a cursor and a time, without cutting pages."""
        return total_rows(p for p in self.pages if p.last > cursor and p.first <= until)

    def oldest_arrival(self, cursor: int) -> float:
        """When the oldest page behind a cursor arrived; infinity if none waits."""
        return min((p.arrived_seconds for p in self.pages if p.last > cursor), default=math.inf)

    def content(self, at: int) -> list[Page]:
        """Pages that hold the relation's content at a time that all its readers have reached."""
        later = self.between(self.base_time, at)
        return ([self.base] if self.base else []) + later

    def ending(self, after: int, until: int) -> pa.Table:
        """The elements from at or before ``after`` that end within (after, until]."""
        self.cut_at(after)
        parts = [page.ending(after, until) for page in self.pages if page.last <= after]
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def count_ending(self, after: int, until: int) -> int:
        """How many elements ``ending`` would answer."""
        self.cut_at(after)
        return sum(page.count_ending(after, until) for page in self.pages if page.last <= after)

    def free(self) -> None:
        """Compacts the content if that pays, and drops the pages nobody needs."""
        self._compact()
        self._merge()
        kept = []
        for page in self.pages:
            unread = page.last > self.heartbeat
            if not unread and all(r.cursor >= self._until(r, page) for r in self.readers):
                page.free()
            else:
                kept.append(page)
        self.pages = kept

    def _until(self, reader: Reader, page: Page) -> int:
        if reader.needs_content and page.last > self.base_time:
            return FOREVER
        return reader.needs_until(page)

    def _compact(self) -> None:
        content_readers = [reader for reader in self.readers if reader.needs_content]
        if not content_readers:
            return
        at = min(reader.cursor for reader in content_readers)
        changed = [p for p in self.pages if p.first > self.base_time and p.last <= at]
        limit = max(COMPACT_ROWS, self.base.rows if self.base else 0)
        if total_rows(changed) < limit:
            return
        pages = self.content(at)
        columns = [name for name in self.schema.names if not name.startswith("_")]
        table = still_open(concatenated(pages, self.schema), columns, at)
        if self.base:
            self.base.free()
        self.base = self.store.page(table) if table.num_rows else None
        self.base_time = at

    def _merge(self) -> None:
        """Merges small pages that all readers have passed, oldest first."""
        if not any(reader.scans for reader in self.readers):
            return
        passed = min(reader.cursor for reader in self.readers)
        small = [p for p in self.pages if p.last <= passed and p.rows < MERGE_ROWS]
        if len(small) < MERGE_PAGES:
            return
        merged = self.store.page(concatenated(small, self.schema))
        self.pages = [merged, *(p for p in self.pages if p not in small)]
        for page in small:
            page.free()

    @property
    def rows(self) -> int:
        """The rows held."""
        return total_rows(self.pages) + (self.base.rows if self.base else 0)

    @property
    def bytes(self) -> int:
        """The bytes held."""
        return sum(p.bytes for p in self.pages) + (self.base.bytes if self.base else 0)

    def close(self) -> None:
        """Frees all pages."""
        for page in [*self.pages, *([self.base] if self.base else [])]:
            page.free()
        self.pages, self.base = [], None

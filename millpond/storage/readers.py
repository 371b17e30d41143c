"""Who reads a queue, how far each has come, and which pages that still holds.

Readers that need a page until the same time are one kind, so a page costs as much bookkeeping as
there are kinds (lengths of windows, say), however many readers there are.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from millpond.kernels.columns import integers
from millpond.planning.window_times import WindowTimes
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.pages import Page


class Remains(Enum):
    """What of a page is still needed once all its readers have passed its rows."""

    NOTHING = 0
    ENDS = 1
    """The elements that are read again at their end."""
    ALL = 2

    def of(self, table: pa.Table, until: int) -> pa.Table:
        """The rows that are needed when everybody is at ``until``."""
        if self is Remains.ALL:
            return table
        if self is Remains.NOTHING:
            return table.slice(0, 0)
        ends = integers(table["_te"])
        return table.filter(pa.array((ends > until) & (ends < FOREVER)))


@dataclass(frozen=True)
class Retention:
    """Until when a reader needs a page: it may go when the reader's cursor has reached ``until``.

    ``window`` is that of the reader, over a stream. ``comes_back``: it reads a tuple again while
    the tuple is in the window, or when it leaves. ``ends``: it reads an element again at its end.
    """

    window: WindowTimes | None = None
    comes_back: bool = False
    ends: bool = False

    def until(self, page: Page) -> int:
        """The time the reader's cursor must reach before the page may go."""
        if self.window is not None:
            return self.window.leave(page.last) if self.comes_back else self.window.enter(page.last)
        if self.ends and page.last_end is not None:
            return max(page.last, page.last_end)
        return page.last

    def over(self, cursor: int) -> int:
        """Of a stream, up to when a reader at this time will read nothing again."""
        if self.window is None:
            return cursor
        window = self.window
        return window.latest_left(cursor) if self.comes_back else window.latest_entered(cursor)

    @property
    def remains(self) -> Remains:
        """What the reader needs of a page after it has passed the page's rows."""
        if self.window is not None:
            is_over = not (self.comes_back or self.window.enters_later)
            return Remains.NOTHING if is_over else Remains.ALL
        return Remains.ENDS if self.ends else Remains.NOTHING


@dataclass(eq=False)
class Reader:
    """One reader's place: it has read everything up to ``cursor``.

    ``needs_content``: it reads the whole relation as it is. ``scans``: every step of it reads all
    pages there are, so few large ones are better. ``works``: what it has not read is backlog.
    ``through``: it reads nothing that is later. ``since``: what came up to there and is read again
    it reads elsewhere or not at all, so that it holds nothing of it here.
    """

    cursor: int
    retention: Retention = Retention()
    needs_content: bool = False
    scans: bool = False
    works: bool = True
    through: int = FOREVER
    since: int = BEGINNING - 1

    @property
    def kind(self) -> tuple[Retention, bool, bool, bool, int]:
        """What it has in common with others that need pages equally long."""
        return self.retention, self.needs_content, self.scans, self.works, self.through

    def holds_after(self, time: int) -> bool:
        """Whether it needs all that came to a stream after a time."""
        is_lasting = self.through == FOREVER and self.retention.remains is Remains.ALL
        return is_lasting and self.retention.over(self.cursor) <= time

    @property
    def comes_back(self) -> bool:
        """Whether it reads again what it has passed."""
        return self.needs_content or self.retention.comes_back or self.retention.ends


@dataclass
class ReaderKind:
    """All readers of a queue that need pages equally long, and the pages they need."""

    retention: Retention
    needs_content: bool
    scans: bool = False
    works: bool = True
    through: int = FOREVER
    readers: set[Reader] = field(default_factory=set)
    unsummed: list[Page] = field(default_factory=list)
    """Pages whose changes are not yet summed up, where readers need the content."""
    _held: list[tuple[int, int, Page]] = field(default_factory=list)
    _cursors: list[tuple[int, int, Reader]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def add(self, reader: Reader) -> None:
        """One reader more."""
        self.readers.add(reader)
        heapq.heappush(self._cursors, (reader.cursor, next(self._numbers), reader))

    @property
    def least_cursor(self) -> int:
        """How far the slowest reader is."""
        while True:
            cursor, number, reader = self._cursors[0]
            if reader not in self.readers:
                heapq.heappop(self._cursors)
            elif reader.cursor != cursor:
                heapq.heapreplace(self._cursors, (reader.cursor, number, reader))
            else:
                return cursor

    def hold(self, page: Page) -> None:
        """Keeps a page until the slowest reader has passed it."""
        if page.first > self.through:
            return
        page.holders += 1
        if self.needs_content:
            self.unsummed.append(page)
        else:
            self._push(page)

    def hold_again(self, pages: Iterable[Page], cursor: int) -> None:
        """Keeps what a reader needs that comes later and is less far than all others."""
        held = {id(page) for page in self.unsummed} | {id(page) for _, _, page in self._held}
        for page in pages:
            if id(page) not in held and self.retention.until(page) > cursor:
                self.hold(page)

    @property
    def needed(self) -> list[Page]:
        """The pages of a stream that its slowest reader is not yet done with."""
        cursor = self.least_cursor
        return [page for until, _, page in self._held if until > cursor]

    def summed(self, until: int) -> None:
        """The changes up to a time are summed up: their pages are needed like others' now."""
        done = [page for page in self.unsummed if page.last <= until]
        self.unsummed = [page for page in self.unsummed if page.last > until]
        for page in done:
            self._push(page)

    def _push(self, page: Page) -> None:
        heapq.heappush(self._held, (self.retention.until(page), next(self._numbers), page))

    @property
    def is_holding(self) -> bool:
        """Whether it needs any page."""
        return bool(self._held or self.unsummed)

    def let_go(self) -> list[Page]:
        """The pages that this kind was the last to hold and needs no more."""
        cursor, gone = self.least_cursor, []
        while self._held and self._held[0][0] <= cursor:
            page = heapq.heappop(self._held)[2]
            page.holders -= 1
            gone += [page] if page.holders == 0 else []
        return gone

    def let_go_all(self) -> list[Page]:
        """The pages nobody holds once this kind is gone."""
        held = self.unsummed + [page for _, _, page in self._held]
        for page in held:
            page.holders -= 1
        return [page for page in held if page.holders == 0]

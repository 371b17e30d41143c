"""What queries have put out: a log of pages, read by sinks and subscribers at their own pace.

A page enters the log when its step is committed. Whoever reads the log has a cursor of its own, so
one that raises or is slow takes nothing from the others.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from millpond.catalog import QueryEntry
from millpond.connectors import arrow_schema
from millpond.connectors.nested import outside_table
from millpond.connectors.python_values import moment
from millpond.connectors.sinks import NamedSink, unique_names
from millpond.delivery.latency import LatencyRecord
from millpond.interruption import uninterrupted
from millpond.kernels.columns import integers
from millpond.kernels.results import named, netted
from millpond.schema import BEGINNING, Schema
from millpond.settings import Keeping
from millpond.storage.kept_pages import PageLog, Repaging, run_to_merge, runs_of_time
from millpond.storage.pages import Page, concatenated
from millpond.storage.partitions import partitioned, pieces_of
from millpond.storage.store import Store

SUM_ROWS = 10_000
"""Content is not summed up before this many rows have changed."""

Callback = Callable[[pa.Table], None]

MOST_FAILURES = 3
"""A subscriber that raises so often is not called again."""

SinkTold = Callable[["ResultLog", Exception | None], None]
"""Told after each write to a sink, with the lock held: whose it is, and what went wrong."""

logger = logging.getLogger("millpond")


class Slice(Protocol):
    """The slice that a query has of the results of its group."""

    @property
    def until(self) -> int:
        """Up to when everything was put out."""

    @property
    def rows(self) -> int:
        """How many elements were put out, kept or not."""

    @property
    def kept_rows(self) -> int:
        """How many of them are kept."""

    @property
    def is_whole(self) -> bool:
        """Whether all of them are kept, or what they come to is."""

    @property
    def latency(self) -> LatencyRecord:
        """How long the results of the group took."""

    def pages(self) -> Iterable[Page]:
        """What is kept of it; each is to be given up again."""

    def passed_pages(self) -> Iterable[Page]:
        """What was let go of it, as far as its content is known; to be given up again too."""

    def read_by(self, log: ResultLog) -> None:
        """From now on pages are handed on as they come."""

    def followed_by(self, log: ResultLog) -> None:
        """What the query had put out before goes as the group puts more out for it."""


class PagesRead(NamedTuple):
    """Pages of a log that are being read, and how many rows were put out by then."""

    pages: list[Page]
    rows: int


@dataclass(eq=False)
class Subscriber:
    """A callback that gets every table of new results."""

    callback: Callback
    position: int
    failures: int = 0


@dataclass
class ResultLog(PageLog):
    """The output of one query: ts (in ticks, NULL at the beginning), weight, then its columns.

    What is let go of a relation is summed up in ``content``: that is never let go.
    """

    entry: QueryEntry
    tick_microseconds: int
    in_timestamps: bool
    sink: NamedSink | None = None
    is_kept: bool = True
    own_until: int = BEGINNING - 1
    own_rows: int = 0
    came: int = 0
    """How many of them came, rather than went; counted where nobody else reads them."""
    subscribers: list[Subscriber] = field(default_factory=list)
    position: int = 0
    """How many pages were put out so far."""
    sink_position: int = 0
    """How many of them the sink has taken."""
    sink_mark: Any = None
    """What the sink said that it contains, in an earlier run."""
    sink_failed: bool = False
    fed_by: int | None = None
    """The thread that is writing a page to the sink; it will look for the next one itself."""
    is_resting: bool = False
    """Whether no further page is to be written to the sink for now."""
    is_put_off: bool = False
    """Whether a page could not be written to the sink, which is tried again later."""
    is_closed: bool = False
    """Whether the query was dropped: nobody is told of it any more."""
    counts_coming: bool = False
    write_elsewhere: Callable[[ResultLog, Page], bool] = lambda log, page: False
    """Writes a page to the sink where the page lies, if that can be done."""
    settle: Callable[[], None] = lambda: None
    """Has the log of the store say all that was put out; the lock is held."""
    own_latency: LatencyRecord = field(default_factory=lambda: LatencyRecord(time.monotonic()))
    content: list[Page] = field(default_factory=list)
    """What was let go of a relation: the first page is the sum of all, the others follow it."""
    is_complete: bool = True
    """Whether nothing was put out that was not kept, at least in its content."""
    waiting: list[Page] = field(default_factory=list)
    """The last pages put out: those that the sink or a subscriber has not seen."""
    lent: list[Page] = field(default_factory=list)
    """Pages whose files readers on Spark may read, and that stay as long as the query."""
    slice: Slice | None = None
    """What a group puts out for it, while it belongs to one; that is neither kept nor waiting."""

    @property
    def schema(self) -> Schema:
        """The query's own columns."""
        schema: Schema = self.entry.plan.schema
        return schema

    @property
    def complete_until(self) -> int:
        """Up to when everything was put out."""
        return self.own_until if self.slice is None else self.slice.until

    @property
    def rows(self) -> int:
        """How many elements were put out so far, kept or not."""
        return self.own_rows + (0 if self.slice is None else self.slice.rows)

    @property
    def latency(self) -> LatencyRecord:
        """How long results took; those of a group are measured together."""
        return self.own_latency if self.slice is None else self.slice.latency

    @property
    def is_whole(self) -> bool:
        """Whether all that was put out is kept, or what it comes to is."""
        return self.is_complete and (self.slice is None or self.slice.is_whole)

    @property
    def kept_rows(self) -> int:
        """How many of the elements put out are kept."""
        shared = 0 if self.slice is None else self.slice.kept_rows
        return sum(page.rows for page in self.kept) + shared

    @property
    def has_content(self) -> bool:
        """Whether it is a relation: what is let go is summed up."""
        return not (self.entry.plan.is_stream or self.counts_coming)

    @property
    def later_rows(self) -> int:
        """How many rows a group has put out for it since."""
        return 0 if self.slice is None else self.slice.rows

    @property
    def unseen(self) -> list[Page]:
        """The pages that a sink or a subscriber has yet to see."""
        return self.waiting

    @property
    def held(self) -> list[Page]:
        """The pages that a sink or a subscriber has yet to see, and those that were lent."""
        return [*self.waiting, *self.lent]

    def add(self, page: Page | None, until: int) -> None:
        """Takes what one step put out: complete up to a time."""
        self.own_until = max(self.own_until, until)  # who begins anew has yet to come so far
        if page is None:
            return
        self.own_rows += page.rows
        self.books.add(page)
        if self.is_kept:
            self.kept.append(page)
        else:
            self.is_complete = False
        self.pass_on(page)

    def pass_on(self, page: Page) -> None:
        """Hands a page to the sink and the subscribers."""
        self.position += 1
        self.waiting.append(page)
        self.forget()

    def join(self, own: Slice) -> None:
        """From now on a group puts its results out, with those of others."""
        self.slice = own
        if self.kept:
            own.followed_by(self)
        if self.is_read:
            own.read_by(self)

    def leave(self) -> None:
        """What the group has put out for it so far is its own from now on."""
        own, self.slice = self.slice, None
        if own is None:
            return
        self.own_until = max(self.own_until, own.until)
        self.own_rows += own.rows
        self.is_complete = self.is_complete and own.is_whole
        if self.is_kept:
            self.content += own.passed_pages() if self.has_content else ()
            self.kept += own.pages()

    def restore(
        self,
        pages: list[Page],
        waiting: list[Page],
        content: list[Page],
        until: int,
        rows: int,
        came: int,
        position: int,
        complete: bool,
    ) -> None:
        """Takes what an earlier run has put out."""
        self.own_until, self.own_rows, self.came, self.position = until, rows, came, position
        self.kept, self.waiting, self.content, self.is_complete = pages, waiting, content, complete
        for page in self.pages:
            self.books.add(page)
        if pages and self.slice is not None:
            self.slice.followed_by(self)

    @property
    def pages(self) -> list[Page]:
        """All pages that are remembered."""
        return list(dict.fromkeys([*self.content, *self.kept, *self.waiting, *self.lent]))

    @property
    def is_read(self) -> bool:
        """Whether somebody wants every page as it comes."""
        has_sink = self.entry.sink is not None and not self.sink_failed
        return has_sink or bool(self.subscribers)

    # -- delivery --------------------------------------------------------------------------

    def subscribe(self, callback: Callback) -> None:
        """From now on, calls back with every table of new results."""
        self.subscribers.append(Subscriber(callback, self.position))
        if self.slice is not None:
            self.slice.read_by(self)

    def unsubscribe(self, callback: Callback) -> None:
        """Calls a subscriber no more."""
        self.subscribers = [each for each in self.subscribers if each.callback != callback]
        self.forget()

    def for_sink(self) -> Page | None:
        """The next page for the sink."""
        if self.sink is None or self.sink_failed or self.is_resting or self.is_closed:
            return None
        if self.is_put_off or self.sink_position == self.position:
            return None
        return self._at(self.sink_position)

    def for_subscribers(self) -> tuple[Subscriber, Page] | None:
        """The next page for somebody who has not seen it."""
        for subscriber in () if self.is_closed else self.subscribers:
            if subscriber.position < self.position:
                return subscriber, self._at(subscriber.position)
        return None

    def _at(self, position: int) -> Page:
        return self.waiting[position - self.position + len(self.waiting)]

    def called(self, subscriber: Subscriber, error: Exception | None) -> None:
        """Notes how a call went; the page counts as seen from now on."""
        subscriber.position += 1
        if error is None:
            return
        subscriber.failures += 1
        left = MOST_FAILURES - subscriber.failures
        logger.error(
            "query %s: a subscriber raised %s: %s%s",
            self.entry.name,
            type(error).__name__,
            error,
            "" if left > 0 else "; it is not called again",
            exc_info=error,
        )
        if left <= 0 and subscriber in self.subscribers:
            self.subscribers.remove(subscriber)

    def forget(self) -> None:
        """Drops the pages everybody has seen, but those that are kept."""
        seen = [subscriber.position for subscriber in self.subscribers]
        if self.entry.sink is not None and not self.sink_failed:
            seen.append(self.sink_position)
        over = len(self.waiting) - (self.position - min(seen, default=self.position))
        drops = not self.is_kept and bool(self.kept or self.content)
        if over == 0 and not drops:
            return
        passed, self.waiting = self.waiting[:over], self.waiting[over:]
        if drops:
            passed = list(dict.fromkeys([*self.content, *self.kept, *passed]))
            self.kept, self.content, self.is_complete = [], [], False
        needed = {*self.kept[-len(passed) - len(self.waiting) :], *self.content, *self.held}
        for page in passed:
            if page not in needed:
                self.let_go(page)

    # -- what is kept ----------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept, nor the content of what was let go."""
        return not self.kept and not self.content

    def pass_pages(self, pages: int) -> None:
        """Lets the first pages go; of a relation the content stays."""
        if self.has_content:
            self.content += self.kept[:pages]
            del self.kept[:pages]
        else:
            super().pass_pages(pages)

    def repaging(self, keeping: Keeping, store: Store) -> Repaging | None:
        """What could be summed up, or is too many small pages, if that pays."""
        return self._summed_content(store) or super().repaging(keeping, store)

    def lose(self, files: Set[str]) -> list[Page]:
        """Lets go of the pages that lie in some files, which are damaged, and of those before: what
        is kept is kept without a gap."""

        def is_lost(page: Page) -> bool:
            return not files.isdisjoint(page.names)

        first = 1 + max((at for at, page in enumerate(self.kept) if is_lost(page)), default=-1)
        over = 1 + max((at for at, page in enumerate(self.waiting) if is_lost(page)), default=-1)
        gone = [*self.kept[:first], *self.waiting[:over]]
        if first or any(map(is_lost, self.content)):
            gone += self.content
            self.content, self.is_complete = [], False
        del self.kept[:first]
        del self.waiting[:over]
        self.sink_position = max(self.sink_position, self.position - len(self.waiting))
        gone = [page for page in dict.fromkeys(gone) if page not in {*self.waiting, *self.kept}]
        for page in gone:
            self.let_go(page)
        return gone

    def _summed_content(self, store: Store) -> Repaging | None:
        """The content summed up when as much has followed as it is; else small ones of what has."""
        pages = self.content
        if len(pages) < 2:
            return None
        count, place = len(pages), 0
        if sum(page.rows for page in pages[1:]) < max(SUM_ROWS, pages[0].rows):
            found = run_to_merge(pages[1:], math.inf, lambda run: True)
            if found is None:
                return None
            place, count = found[0] + 1, found[1]
        page = self._summed_page(store, pages[place : place + count], keeps_zeros=place > 0)
        return Repaging(place, count, page, is_content=True)

    def _summed_page(self, store: Store, pages: Sequence[Page], keeps_zeros: bool) -> Page | None:
        """What pages come to, as a page; of many rows a piece is in memory at a time."""
        count = pieces_of(sum(page.bytes for page in pages))
        if count == 1:
            table = self.net(pages, keeps_zeros)
            return Page.of(store, table) if table.num_rows else None
        schema = self.page_schema
        with store.scratch() as folder:
            parts = (part for page in pages for part in page.parts())
            pieces = partitioned(parts, schema, schema.names[2:], folder, count)
            return Page.written(store, (self.netted(piece, keeps_zeros) for piece in pieces))

    def net(self, pages: Sequence[Page], keeps_zeros: bool = False) -> pa.Table:
        """What pages come to; not all of their rows are in memory at once."""
        table, tables, rows = self.page_schema.empty_table(), list[pa.Table](), 0
        for part in (part for page in pages for part in page.parts()):
            tables.append(part)
            rows += part.num_rows
            if rows >= max(SUM_ROWS, table.num_rows):
                table = self.netted(pa.concat_tables([table, *tables]), keeps_zeros)
                tables, rows = [], 0
        return self.netted(pa.concat_tables([table, *tables]), keeps_zeros)

    def netted(self, table: pa.Table, keeps_zeros: bool = False) -> pa.Table:
        """What some rows come to."""
        return netted(table, keeps_zeros)

    def repage(self, change: Repaging) -> None:
        """Puts the new page in the place of those it replaces."""
        if not change.is_content:
            super().repage(change)
            return
        gone = self.content[change.place : change.place + change.count]
        self.content[change.place : change.place + change.count] = self._entered(change.page)
        self._replaced(gone)

    @contextmanager
    def reading(
        self, lock: AbstractContextManager[object], of_content: bool = False
    ) -> Iterator[PagesRead]:
        """What is kept, or all that the content follows from; it stays meanwhile."""
        with lock:
            slices: list[Page] = []
            if self.slice is not None:
                slices += self.slice.passed_pages() if of_content else ()
                slices += self.slice.pages()
            passed = self.content if of_content else ()
            found = PagesRead([*passed, *self.kept, *slices], self.rows)
            for page in found.pages:
                page.pin()
        try:
            yield found
        finally:
            with lock:
                for page in found.pages:
                    page.unpin()
                for page in slices:
                    page.free()

    # -- tables ----------------------------------------------------------------------------

    def table(self, pages: list[Page] | None = None) -> pa.Table:
        """Everything kept so far, in order of time; names that repeat get a number."""
        runs = list(runs_of_time(self.kept if pages is None else pages)) or [[]]
        whole = pa.concat_tables([self.named(concatenated(run, self.page_schema)) for run in runs])
        return whole.rename_columns(unique_names(whole.column_names))

    @property
    def page_schema(self) -> pa.Schema:
        """The columns of the pages: time, weight, then the query's as c0…"""
        columns = [pa.field("_ts", pa.int64()), pa.field("_w", pa.int64())]
        types = [f.type for f in arrow_schema(self.schema)]
        return pa.schema(columns + [pa.field(f"c{i}", t) for i, t in enumerate(types)])

    def named(self, page: pa.Table) -> pa.Table:
        """Rows summed up and in order of time, with the names of the query's columns."""
        return self.shown(self.named_within(page))

    def named_within(self, page: pa.Table) -> pa.Table:
        """The same with values as they are within the engine, which are in an order."""
        return named(page, ["ts", "weight", *self.schema.names])

    def shown(self, table: pa.Table) -> pa.Table:
        """Rows with values as they are outside of the engine."""
        return outside_table(table, self.schema.types, first=2)

    def format_time(self, ts: int | None) -> int | str | None:
        """A time as people read it: the number of ticks, or a timestamp where inputs have those."""
        if ts is None or not self.in_timestamps:
            return ts
        return moment(ts, self.tick_microseconds)

    def close(self) -> None:
        """Closes the sink and lets the pages go."""
        self.is_closed = True
        for page in self.pages:
            self.let_go(page)
        self.kept, self.content, self.waiting, self.lent = [], [], [], []
        self.close_sink()

    def give_up_sink(self) -> None:
        """Ends the wait for the reader of a sink: the engine is closed."""
        if self.sink is not None:
            self.sink.give_up()

    def close_sink(self) -> None:
        """Finishes what the sink has written."""
        if self.sink is not None:
            self.sink.close()


class BadRowLog(ResultLog):
    """What the source of a stream could not read, in the order in which it came."""

    def named(self, page: pa.Table) -> pa.Table:
        """The rows with the names of their columns."""
        return page.rename_columns(["ts", "weight", *self.schema.names])


def feed_sink(log: ResultLog, lock: AbstractContextManager[object], told: SinkTold) -> None:
    """Hands the pages of a log on to its sink, without the lock; one thread at a time does."""
    while _feed_page(log, lock, told):
        pass


def call_subscribers(log: ResultLog, lock: AbstractContextManager[object]) -> None:
    """Hands the pages of a log on to its subscribers, without the lock."""
    while _call_subscriber(log, lock):
        pass


def _feed_page(log: ResultLog, lock: AbstractContextManager[object], told: SinkTold) -> bool:
    with uninterrupted:  # a page is in the sink if and only if the sink's position says so
        with lock:
            page, sink = log.for_sink(), log.sink
            if page is None or sink is None or log.fed_by is not None:
                return False
            log.settle()  # else a step that comes again after a death may put out another page
            log.fed_by = threading.get_ident()
            page.pin()
        error: Exception | None = None
        try:
            if not log.write_elsewhere(log, page):
                sink.write(log.named(page.table), log.sink_position)
        except Exception as raised:  # noqa: BLE001 (whatever a sink raises fails its query only)
            error = raised
        with lock:
            log.fed_by = None
            page.unpin()
            if error is None:
                log.sink_position += 1
                log.forget()
            else:
                log.sink_failed = True
            told(log, error)
    return True


def _call_subscriber(log: ResultLog, lock: AbstractContextManager[object]) -> bool:
    with uninterrupted:
        with lock:
            found = log.for_subscribers()
            if found is None:
                return False
            subscriber, page = found
            page.pin()
        error: Exception | None = None
        try:
            uninterrupted.call(subscriber.callback, log.named(page.table))
        except Exception as raised:  # noqa: BLE001 (whatever a callback raises is its own affair)
            error = raised
        finally:
            with lock:
                page.unpin()
        with lock:  # one that was interrupted gets the page again
            log.called(subscriber, error)
            log.forget()
    return True


def coming_in(page: Page) -> int:
    """How many elements of a page come, rather than go."""
    weights = integers(page.table["_w"])
    return int(weights[weights > 0].sum())

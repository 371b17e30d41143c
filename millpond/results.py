"""What queries have put out: a log of pages, read by sinks and subscribers at their own pace.

A page enters the log when its step is committed. Whoever reads the log has a cursor of its own, so
one that raises or is slow takes nothing from the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from millpond.catalog import QueryEntry
from millpond.connectors import arrow_schema
from millpond.connectors.python_values import moment
from millpond.connectors.sinks import NamedSink, unique_names
from millpond.interruption import uninterrupted
from millpond.kernels.columns import integers
from millpond.kernels.results import named
from millpond.latency import LatencyRecord
from millpond.schema import BEGINNING, Schema
from millpond.settings import Keeping
from millpond.storage.pages import Page, concatenated

Callback = Callable[[pa.Table], None]

MOST_FAILURES = 3
"""A subscriber that raises so often is not called again."""

SinkTold = Callable[["ResultLog", Exception | None], None]
"""Told after each write to a sink, with the lock held: whose it is, and what went wrong."""

logger = logging.getLogger("millpond")


class Share(Protocol):
    """What a query has of the results of the group it belongs to."""

    @property
    def until(self) -> int:
        """Up to when everything was put out."""
        ...

    @property
    def rows(self) -> int:
        """How many elements were put out, kept or not."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether all of them are kept."""
        ...

    @property
    def latency(self) -> LatencyRecord:
        """How long the results of the group took."""
        ...

    def pages(self) -> Iterable[Page]:
        """What is kept of it; each is to be given up again."""
        ...

    def read_by(self, log: ResultLog) -> None:
        """From now on pages are handed on as they come."""
        ...

    def followed_by(self, log: ResultLog) -> None:
        """What the query had put out before goes as the group puts more out for it."""
        ...


@dataclass(eq=False)
class Subscriber:
    """Somebody who is called with every table of new results."""

    callback: Callback
    position: int
    failures: int = 0


@dataclass
class ResultLog:
    """The output of one query: ts (in ticks, NULL at the beginning), weight, then its columns."""

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
    sink_failed: bool = False
    fed_by: int | None = None
    """The thread that is writing a page to the sink; it will look for the next one itself."""
    is_resting: bool = False
    """Whether no further page is to be written to the sink for now."""
    is_closed: bool = False
    """Whether the query was dropped: nobody is told of it any more."""
    counts_coming: bool = False
    write_elsewhere: Callable[[ResultLog, Page], bool] = lambda log, page: False
    """Writes a page to the sink where the page lies, if that can be done."""
    own_latency: LatencyRecord = field(default_factory=lambda: LatencyRecord(time.monotonic()))
    kept: list[Page] = field(default_factory=list)
    """What was put out, as far as it is kept."""
    _kept_rows: int = 0
    waiting: list[Page] = field(default_factory=list)
    """The last pages put out: those that the sink or a subscriber has not seen."""
    lent: list[Page] = field(default_factory=list)
    """Copies that were made for readers on Spark, and stay as long as the query."""
    share: Share | None = None
    """What a group puts out for it, while it belongs to one; that is neither kept nor waiting."""

    @property
    def schema(self) -> Schema:
        """The query's own columns."""
        schema: Schema = self.entry.plan.schema
        return schema

    @property
    def complete_until(self) -> int:
        """Up to when everything was put out."""
        return self.own_until if self.share is None else self.share.until

    @property
    def rows(self) -> int:
        """How many elements were put out so far, kept or not."""
        return self.own_rows + (0 if self.share is None else self.share.rows)

    @property
    def latency(self) -> LatencyRecord:
        """How long results took; those of a group are measured together."""
        return self.own_latency if self.share is None else self.share.latency

    @property
    def is_whole(self) -> bool:
        """Whether all that was put out is kept."""
        is_all = self.own_rows == self._kept_rows
        return is_all and (self.share is None or self.share.is_whole)

    def add(self, page: Page | None, until: int) -> None:
        """Takes what one step put out: complete up to a time."""
        self.own_until = max(self.own_until, until)  # who begins anew has yet to come so far
        if page is None:
            return
        self.own_rows += page.rows
        if self.is_kept:
            self.kept.append(page)
            self._kept_rows += page.rows
        self.pass_on(page)

    def pass_on(self, page: Page) -> None:
        """A page is there for the sink and the subscribers."""
        self.position += 1
        self.waiting.append(page)
        self.forget()

    def join(self, share: Share) -> None:
        """From now on a group puts its results out, with those of others."""
        self.share = share
        self._keep(self.kept)
        if self.is_read:
            share.read_by(self)

    def leave(self) -> None:
        """What the group has put out for it so far is its own from now on."""
        share, self.share = self.share, None
        if share is not None:
            self.own_until = max(self.own_until, share.until)
            self.own_rows += share.rows
            self._keep([*self.kept, *(share.pages() if self.is_kept else ())])

    def count_coming(self, page: Page) -> None:
        """Counts the elements of a page that come, rather than go."""
        weights = integers(page.table["_w"])
        self.came += int(weights[weights > 0].sum())

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
        self.own_until, self.own_rows, self.came, self.position = until, rows, came, position
        self.waiting = waiting
        self._keep(pages)

    def _keep(self, pages: list[Page]) -> None:
        self.kept, self._kept_rows = pages, sum(page.rows for page in pages)
        if pages and self.share is not None:
            self.share.followed_by(self)

    @property
    def pages(self) -> list[Page]:
        """All pages that are remembered."""
        return list(dict.fromkeys([*self.kept, *self.waiting, *self.lent]))

    @property
    def is_read(self) -> bool:
        """Whether somebody wants every page as it comes."""
        has_sink = self.entry.sink is not None and not self.sink_failed
        return has_sink or bool(self.subscribers)

    # -- delivery --------------------------------------------------------------------------

    def subscribe(self, callback: Callback) -> None:
        """From now on, calls back with every table of new results."""
        self.subscribers.append(Subscriber(callback, self.position))
        if self.share is not None:
            self.share.read_by(self)

    def sink_note(self) -> dict[str, Any]:
        """How much of the results the sink has, as the log of a store says it."""
        mark = None if self.sink is None else self.sink.mark()
        key = self.entry.name.lower()
        return {"kind": "sink", "query": key, "position": self.sink_position, "mark": mark}

    def for_sink(self) -> Page | None:
        """The next page for the sink."""
        if self.sink is None or self.sink_failed or self.is_resting or self.is_closed:
            return None
        if self.sink_position == self.position:
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
        if over == 0 and (self.is_kept or not self.kept):
            return
        kept = set(self.kept[-len(self.waiting) :] if self.is_kept else ())
        passed, self.waiting = self.waiting[:over], self.waiting[over:]
        if not self.is_kept:
            passed = list(dict.fromkeys([*self.kept, *passed]))
            self._keep([])
        kept.update(self.waiting)
        for page in passed:
            if page not in kept:
                self.let_go(page)

    def let_go(self, page: Page) -> None:
        """A page is not needed here any more."""
        page.free()

    def trim(self, most_rows: int) -> list[Page]:
        """Keeps no more than so many rows, but the last page; what goes is to be let go of."""
        rows, keeps = 0, 0
        for page in reversed(self.kept):
            if keeps and rows + page.rows > most_rows:
                break
            rows, keeps = rows + page.rows, keeps + 1
        gone = self.kept[: len(self.kept) - keeps]
        self._keep(self.kept[len(gone) :])
        return gone

    def keep_to(self, keeping: Keeping) -> None:
        """Lets the oldest results go that are more than are to be kept, page by page."""
        over = 0
        if keeping.rows is not None:
            later = 0 if self.share is None else self.share.rows
            rows, most = self._kept_rows + later, keeping.rows * self.queries
            while over < len(self.kept) and rows - self.kept[over].rows >= most:
                rows, over = rows - self.kept[over].rows, over + 1
        elif keeping.seconds is not None:
            since = time.monotonic() - keeping.seconds
            while over < len(self.kept) and self.kept[over].made_seconds < since:
                over += 1
        if over:
            gone, waiting = self.kept[:over], set(self.waiting)
            self._keep(self.kept[over:])
            for page in gone:
                if page not in waiting:
                    self.let_go(page)

    def lose(self, files: Set[str]) -> list[Page]:
        """Lets go of the pages that lie in some files, which are damaged, and of those before: what
        is kept is kept without a gap."""
        is_lost = [not files.isdisjoint(page.names) for page in self.kept]
        first = len(is_lost) - is_lost[::-1].index(True) if any(is_lost) else 0
        waiting = [page for page in self.waiting if not files.isdisjoint(page.names)]
        gone = list(dict.fromkeys([*self.kept[:first], *waiting]))
        self._keep(self.kept[first:])
        self.waiting = [page for page in self.waiting if page not in waiting]
        for page in gone:
            if page not in self.waiting:
                self.let_go(page)
        return gone

    def keep_what_is_there(self) -> None:
        """Forgets results that an earlier run has let go."""
        self._keep([page for page in self.kept if page.is_there])

    @property
    def queries(self) -> int:
        """How many queries put it out."""
        return 1

    # -- tables ----------------------------------------------------------------------------

    def table(self, pages: list[Page] | None = None) -> pa.Table:
        """Everything kept so far, in order of time; names that repeat get a number."""
        whole = concatenated(self.kept if pages is None else pages, self.page_schema)
        named = self.named(whole)
        return named.rename_columns(unique_names(named.column_names))

    @property
    def page_schema(self) -> pa.Schema:
        """The columns of the pages: time, weight, then the query's as c0…"""
        columns = [pa.field("_ts", pa.int64()), pa.field("_w", pa.int64())]
        types = [f.type for f in arrow_schema(self.schema)]
        return pa.schema(columns + [pa.field(f"c{i}", t) for i, t in enumerate(types)])

    def named(self, page: pa.Table) -> pa.Table:
        """Rows summed up and in order of time, with the names of the query's columns."""
        return named(page, ["ts", "weight", *self.schema.names])

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
        self._keep([])
        self.waiting, self.lent = [], []
        self.close_sink()

    def give_up_sink(self) -> None:
        """Whoever waits for the reader of a sink waits no more: the engine is closed."""
        if self.sink is not None:
            self.sink.give_up()

    def close_sink(self) -> None:
        """Finishes what the sink has written."""
        if self.sink is not None:
            self.sink.close()


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
            log.fed_by = threading.get_ident()
            page.pin()
        error: Exception | None = None
        try:
            if not log.write_elsewhere(log, page):
                sink.write(log.named(page.table))
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

"""What queries put out, for any number of readers who come, go and fall behind.

A reader is an offset in the result log and nothing else: who is slow reads pages of the log that
others have long seen, and who is slower than what is kept is told how much was let go. So nobody
waits for anybody, unless a reader asks that the engine holds back for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.sinks import unique_names
from millpond.connectors.times import as_ticks
from millpond.delivery.results import ResultLog
from millpond.errors import MillpondError
from millpond.facade.engine import Engine
from millpond.identities import QueryId
from millpond.kernels.columns import integers
from millpond.server.faults import RequestError
from millpond.server.limits import Limits
from millpond.server.logs import tell
from millpond.storage.kept_pages import in_order_of_time
from millpond.storage.pages import Page

RECENT, RECENT_ROWS = 64, 50_000
"""So many of the last pages, and rows, are at hand for readers that keep up."""

CATCH_UP_ROWS = 5_000
"""A reader that is behind gets about so many results at once."""

CONTENTS = 4
"""The contents of so many relations are at hand for whoever asks again."""

HOLD_PAGES, HOLD_SECONDS = 16, 30.0
"""How far a reader that has the engine hold back may be behind, and for how long."""


@dataclass(frozen=True)
class Offset:
    """How much of a query's output somebody has seen, in rows of its pages."""

    rows: int

    def __str__(self) -> str:
        return str(self.rows)

    @staticmethod
    def read(text: str) -> Offset:
        """The offset that an event id names."""
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise RequestError(400, f"{text[:40]!r} is no id of an event")
        return Offset(int(text))


@dataclass(eq=False)
class Event:
    """A page of results as readers see it; ``offset``: behind it."""

    offset: Offset
    table: pa.Table
    before: int = 0
    """Where it begins."""
    encoded: dict[str, bytes] = field(default_factory=dict)
    """What it is in the formats that somebody has asked for."""
    writing: dict[str, asyncio.Future[bytes]] = field(default_factory=dict)
    """The formats in which it is being written."""


@dataclass(frozen=True)
class _Content:
    """The content of a relation as it was at an offset."""

    log: ResultLog
    offset: Offset
    table: pa.Table


@dataclass(eq=False)
class Reader:
    """Somebody who reads an endless response."""

    offset: Offset
    holds: bool = False
    is_gone: bool = False
    seen: int = 0
    """How many of the feed's pages it has seen, as far as it keeps up."""


class Feed:
    """The readers of one query, and the pages that came since the first of them came."""

    def __init__(self, engine: Engine, log: ResultLog, loop: asyncio.AbstractEventLoop) -> None:
        self.readers: set[Reader] = set()
        self.query = log.entry.name
        self.is_over = False
        self._engine, self._log, self._loop = engine, log, loop
        self._recent: deque[Event] = deque()
        self._recent_rows = 0
        self._news = asyncio.Event()
        self._count = 0
        """How many pages came so far."""
        with engine.held():
            self._offset = Offset(log.rows)
            engine.subscribe(log.entry.name, self._put_out)

    # -- in the loop of the engine ---------------------------------------------------------

    def _put_out(self, table: pa.Table) -> None:
        with self._engine.held():
            before = self._offset.rows
            self._offset = Offset(before + self._rows_now(table))
        named = table.rename_columns(unique_names(table.column_names))
        event = Event(self._offset, named, before)
        self._loop.call_soon_threadsafe(self._publish, event)
        self._count += 1
        self._hold_back()

    def _rows_now(self, table: pa.Table) -> int:
        """How many rows the page has that is being handed on; equal ones are summed up in it."""
        log = self._log
        mine = next((s for s in log.subscribers if s.callback == self._put_out), None)
        at = -1 if mine is None else mine.position - 1 - log.position + len(log.waiting)
        return log.waiting[at].rows if 0 <= at < len(log.waiting) else table.num_rows

    def _hold_back(self) -> None:
        began = time.monotonic()
        while time.monotonic() - began < HOLD_SECONDS:
            slow = [r for r in self.readers.copy() if r.holds and not r.is_gone]
            if self.is_over or all(self._count - r.seen <= HOLD_PAGES for r in slow):
                return
            time.sleep(0.01)

    # -- in the loop of the server ---------------------------------------------------------

    def _publish(self, event: Event) -> None:
        self._recent.append(event)
        self._recent_rows += event.table.num_rows
        while len(self._recent) > 1 and (
            len(self._recent) > RECENT or self._recent_rows > RECENT_ROWS
        ):
            self._recent_rows -= self._recent.popleft().table.num_rows
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def close(self) -> None:
        """The query is no more."""
        self.is_over = True
        self._tell()

    def stop(self) -> None:
        """Nobody reads any more: the engine need not call."""
        self.is_over = True
        with self._engine.held():
            self._log.subscribers = [
                each for each in self._log.subscribers if each.callback != self._put_out
            ]

    def recent_after(self, reader: Reader) -> list[Event] | None:
        """The events that a reader has not seen, if they are at hand."""
        offset = reader.offset.rows
        if offset >= self._offset.rows:
            reader.seen = self._count
            return []
        known = [event for event in self._recent if event.offset.rows > offset]
        if known and known[0].before <= offset:
            return known
        return None

    async def wait(self, seconds: float) -> bool:
        """Waits until something is new; whether it is."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        return True


class Feeds:
    """The results of all queries of an engine."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self._engine, self._limits = engine, limits
        self._feeds: dict[str, Feed] = {}
        self._contents: OrderedDict[str, _Content] = OrderedDict()
        self._lock = threading.Lock()
        self._readers = 0

    @property
    def readers(self) -> int:
        """How many read."""
        return self._readers

    # -- who reads -------------------------------------------------------------------------

    def refuse_too_many(self) -> None:
        """Refuses one reader more than there can be."""
        if self._readers >= self._limits.readers:
            raise RequestError(429, f"{self._limits.readers} readers are the most there can be")

    def enter(self, log: ResultLog, reader: Reader) -> Feed:
        """Somebody begins to read; called in the loop of the server."""
        name = log.entry.name
        tell(logging.INFO, "reader_came", f"a reader of query {name} came", query=name)
        with self._lock:
            self._readers += 1
        key = log.entry.identity
        feed = self._feeds.get(key)
        if feed is None or feed.is_over or feed._log is not log:
            feed = self._feeds[key] = Feed(self._engine, log, asyncio.get_running_loop())
        feed.readers.add(reader)
        return feed

    def leave(self, feed: Feed, reader: Reader) -> None:
        """Somebody reads no more."""
        reader.is_gone = True
        name = feed.query
        tell(logging.INFO, "reader_went", f"a reader of query {name} went", query=name)
        feed.readers.discard(reader)
        with self._lock:
            self._readers -= 1
        if not feed.readers:
            feed.stop()
            for key in [key for key, each in self._feeds.items() if each is feed]:
                del self._feeds[key]

    def dropped(self, query: str) -> None:
        """A query is no more; its readers are told."""
        self._contents.pop(QueryId(query), None)
        feed = self._feeds.pop(query.lower(), None)
        if feed is not None:
            feed._loop.call_soon_threadsafe(feed.close)

    def end_soon(self) -> None:
        """The same from any thread, or from the handler of a signal."""
        for feed in list(self._feeds.values()):
            feed._loop.call_soon_threadsafe(feed.close)

    def close(self) -> None:
        """Readers are told that this is the end; called in the loop of the server."""
        for feed in list(self._feeds.values()):
            feed.close()

    # -- what is kept ----------------------------------------------------------------------

    def tidy(self) -> None:
        """Lets old results go where no store keeps them."""
        if not self._engine.store.is_durable:
            with self._engine.held():
                self._engine.deliveries.keep_at_most(self._limits.kept_rows)

    def present(self, query: str) -> tuple[pa.Table, Offset]:
        """The content of a relation now, each row once with its number, and up to where that is."""
        content, offset = self._present(query)
        return self._engine.deliveries.of(query).shown(content), offset

    def _present(self, query: str) -> tuple[pa.Table, Offset]:
        log = self._engine.deliveries.of(query)
        if log.entry.plan.is_stream:
            raise RequestError(400, f'query "{log.entry.name}" is a stream: it has no content')
        with log.reading(self._engine.held(), of_content=True) as found:
            if not log.is_whole:
                raise RequestError(
                    409,
                    "an earlier run has kept no results, so the content is not known; follow the "
                    "changes, or ask once",
                )
            content = log.named_within(log.net(found.pages))
        named = content.rename_columns(unique_names(content.column_names))
        return net_content(named), Offset(found.rows)

    def content(self, query: str) -> tuple[pa.Table, Offset]:
        """The same in order of its columns; who asks again before it changes gets it at once."""
        log = self._engine.deliveries.of(query)
        key = log.entry.identity
        with self._engine.held():
            offset = Offset(log.rows)
        known = self._contents.get(key)
        if known is None or known.log is not log or known.offset != offset:
            table, offset = self._present(query)
            known = _Content(log, offset, log.shown(_in_order_of_columns(table)))
            self._remember(key, known)
        return known.table, known.offset

    def _remember(self, key: str, content: _Content) -> None:
        with self._lock:
            self._contents.pop(key, None)
            self._contents[key] = content
            while len(self._contents) > CONTENTS:
                self._contents.popitem(last=False)

    def latest(self, log: ResultLog, most: int, after: int) -> tuple[pa.Table, Offset]:
        """The last results, at most so many and all behind an offset; and where they end."""
        with log.reading(self._engine.held()) as found:
            behind = after if after <= found.rows else 0  # an id of an earlier life
            begin = max(behind, found.rows - most)
            at = found.rows - sum(page.rows for page in found.pages)
            tables = [log.table([])]
            for page in found.pages:
                at += page.rows
                if at > begin:
                    tables += [event.table for event in _events(log, page, at, begin)]
        return pa.concat_tables(tables), Offset(found.rows)

    def after(self, log: ResultLog, offset: Offset, since: int | None) -> tuple[int, list[Event]]:
        """What was put out behind an offset, as much as is sent at once, and what was let go of it.

        ``since``: only what is of this time or later.
        """
        with log.reading(self._engine.held()) as found:
            at = oldest = found.rows - sum(page.rows for page in found.pages)
            events: list[Event] = []
            for page in found.pages:
                at += page.rows
                if at > offset.rows and not _is_enough(events):
                    events += _events(log, page, at, offset.rows)
        if since is not None:
            events = [Event(e.offset, _since(e.table, since), e.before) for e in events]
        return max(0, oldest - offset.rows), events

    def offset_of(self, log: ResultLog, start: str) -> tuple[Offset, int | None]:
        """Where ``from=`` begins: now, oldest, behind an id, or at a time."""
        with self._engine.held():
            now, oldest = Offset(log.rows), Offset(log.rows - log.kept_rows)
        if start == "now":
            return now, None
        if start == "oldest":
            return oldest, None
        if start.startswith("id:"):
            offset = Offset.read(start.removeprefix("id:"))
            # An id of an earlier life without a store: all there is came after it.
            return (offset if offset.rows <= now.rows else oldest), None
        try:
            time_ = int(start) if start.lstrip("-").isdigit() else start
            return oldest, as_ticks(time_, log.tick_microseconds, "from")
        except (MillpondError, ValueError, OverflowError):
            raise RequestError(
                400, f"from={start[:40]}: write now, oldest, present, a time, or ticks"
            ) from None


def _is_enough(events: list[Event]) -> bool:
    return bool(events) and events[-1].offset.rows - events[0].before >= CATCH_UP_ROWS


def _events(log: ResultLog, page: Page, at: int, offset: int) -> list[Event]:
    """What a page, which ends at an offset, has behind another, in pieces of whole instants."""
    rows = in_order_of_time([page])
    first = max(0, offset - (at - page.rows))
    times, events = integers(rows["_ts"]), list[Event]()
    while first < page.rows and not _is_enough(events):
        last = int(
            np.searchsorted(times, times[min(first + CATCH_UP_ROWS, page.rows) - 1], "right")
        )
        table = log.named(rows.slice(first, last - first))
        table = table.rename_columns(unique_names(table.column_names))
        before = at - page.rows
        events.append(Event(Offset(before + last), table, before + first))
        first = last
    return events


def _in_order_of_columns(content: pa.Table) -> pa.Table:
    """The rows of a content by its first column, then by the second, and so on."""
    keys = [(name, "ascending") for name in content.column_names[2:]]
    return content.sort_by(keys) if keys else content


def _since(table: pa.Table, ticks: int) -> pa.Table:
    return table.filter(pc.greater_equal(table.column(0), ticks))


def net_content(changes: pa.Table) -> pa.Table:
    """The rows that are there after changes, each once: ts of its last change, weight, row.

    >>> table = pa.table({"ts": [1, 2, 3], "weight": [1, 1, -1], "a": [7, 8, 7]})
    >>> net_content(table).to_pylist()
    [{'ts': 2, 'weight': 1, 'a': 8}]
    """
    names = changes.column_names
    if len(names) == 2:
        total = pc.sum(changes.column(1)).as_py() or 0
        return changes.slice(0, 0) if total <= 0 else _single(changes, total)
    plain = changes.rename_columns([str(position) for position in range(len(names))])
    keys = [str(position) for position in range(2, len(names))]
    summed = plain.group_by(keys, use_threads=False).aggregate([("0", "max"), ("1", "sum")])
    alive = summed.filter(pc.greater(summed["1_sum"], 0)).select(["0_max", "1_sum", *keys])
    return alive.rename_columns(names).cast(changes.schema)


def _single(changes: pa.Table, total: int) -> pa.Table:
    times = [pc.max(changes.column(0)).as_py()]
    return pa.Table.from_arrays(
        [pa.array(times, pa.int64()), pa.array([total], pa.int64())], schema=changes.schema
    )

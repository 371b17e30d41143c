"""What queries put out, for any number of readers who come, go and fall behind.

A reader is a place in the result log and nothing else: who is slow reads pages of the log that
others have long seen, and who is slower than what is kept is told how much was let go. So nobody
waits for anybody, unless a reader asks that the engine holds back for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.sinks import unique_names
from millpond.connectors.times import as_ticks
from millpond.engine import Engine
from millpond.errors import MillpondError
from millpond.results import ResultLog
from millpond.server.faults import RequestError
from millpond.server.limits import Limits

RECENT = 64
"""So many of the last pages are at hand for readers that keep up."""

CATCH_UP_ROWS = 5_000
"""A reader that is behind gets about so many results at once."""

HOLD_PAGES, HOLD_SECONDS = 16, 30.0
"""How far a reader that has the engine hold back may be behind, and for how long."""


@dataclass(frozen=True)
class Place:
    """How much of a query's output somebody has seen: pages and rows."""

    page: int
    rows: int

    def __str__(self) -> str:
        return f"{self.page}-{self.rows}"

    @staticmethod
    def read(text: str) -> Place:
        """The place that an event id names."""
        page, dash, rows = text.partition("-")
        if not dash or not (page + rows).isascii() or not (page + rows).isdigit():
            raise RequestError(400, f"{text[:40]!r} is no id of an event")
        if len(text) > 40:
            raise RequestError(400, "this is no id of an event: it is too long")
        return Place(int(page), int(rows))


@dataclass(eq=False)
class Event:
    """A page of results as readers see it; ``place``: behind it."""

    place: Place
    table: pa.Table
    encoded: dict[str, bytes] = field(default_factory=dict)
    """What it is in the formats that somebody has asked for."""


@dataclass(eq=False)
class Reader:
    """Somebody who reads an endless response."""

    place: Place
    holds: bool = False
    is_gone: bool = False


def place_now(log: ResultLog) -> Place:
    """Behind all that was put out."""
    return Place(log.position, log.rows)


def oldest_place(log: ResultLog) -> Place:
    """Before the first page that is kept."""
    return Place(log.position - len(log.kept), log.rows - sum(page.rows for page in log.kept))


class Feed:
    """The readers of one query, and the pages that came since the first of them came."""

    def __init__(self, engine: Engine, log: ResultLog, loop: asyncio.AbstractEventLoop) -> None:
        self.readers: set[Reader] = set()
        self.is_over = False
        self._engine, self._log, self._loop = engine, log, loop
        self._recent: deque[Event] = deque(maxlen=RECENT)
        self._news = asyncio.Event()
        with engine.held():
            self._place = place_now(log)
            engine.subscribe(log.entry.name, self._put_out)

    # -- in the loop of the engine ---------------------------------------------------------

    def _put_out(self, table: pa.Table) -> None:
        with self._engine.held():
            page = self._place.page
            rows = self._rows_of(page)
        self._place = Place(page + 1, self._place.rows + rows)
        event = Event(self._place, table.rename_columns(unique_names(table.column_names)))
        self._loop.call_soon_threadsafe(self._publish, event)
        self._hold_back(self._place.page)

    def _rows_of(self, page: int) -> int:
        pages, first = self._log.kept, self._log.position - len(self._log.kept)
        return pages[page - first].rows if first <= page < self._log.position else 0

    def _hold_back(self, page: int) -> None:
        began = time.monotonic()
        while time.monotonic() - began < HOLD_SECONDS:
            slow = [r for r in self.readers.copy() if r.holds and not r.is_gone]
            if self.is_over or all(page - r.place.page <= HOLD_PAGES for r in slow):
                return
            time.sleep(0.01)

    # -- in the loop of the server ---------------------------------------------------------

    def _publish(self, event: Event) -> None:
        self._recent.append(event)
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

    def recent_after(self, place: Place) -> list[Event] | None:
        """The events behind a place, if they are at hand."""
        if self._recent and self._recent[0].place.page <= place.page + 1:
            return [event for event in self._recent if event.place.page > place.page]
        return [] if place.page >= self._place.page else None

    async def wait(self, seconds: float) -> bool:
        """Waits until something is new; whether it is."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        return True


@dataclass
class Kept:
    """What is known of results that were let go: of a relation its content."""

    content: pa.Table | None = None
    position: int = 0


class Feeds:
    """The results of all queries of an engine."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self._engine, self._limits = engine, limits
        self._feeds: dict[str, Feed] = {}
        self._kept: dict[str, Kept] = {}
        self._lock = threading.Lock()
        self._readers = 0
        with engine.held():
            engine.deliveries.own_pages()

    @property
    def readers(self) -> int:
        """How many read."""
        return self._readers

    # -- who reads -------------------------------------------------------------------------

    def enter(self, log: ResultLog, reader: Reader) -> Feed:
        """Somebody begins to read; called in the loop of the server."""
        with self._lock:
            if self._readers >= self._limits.readers:
                raise RequestError(429, f"{self._limits.readers} readers are the most there can be")
            self._readers += 1
        key = log.entry.name.lower()
        feed = self._feeds.get(key)
        if feed is None or feed.is_over or feed._log is not log:
            feed = self._feeds[key] = Feed(self._engine, log, asyncio.get_running_loop())
        feed.readers.add(reader)
        return feed

    def leave(self, feed: Feed, reader: Reader) -> None:
        """Somebody reads no more."""
        reader.is_gone = True
        feed.readers.discard(reader)
        with self._lock:
            self._readers -= 1
        if not feed.readers:
            feed.stop()
            for key in [key for key, each in self._feeds.items() if each is feed]:
                del self._feeds[key]

    def dropped(self, query: str) -> None:
        """A query is no more; its readers are told."""
        self._kept.pop(query.lower(), None)
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
        """Lets old results go where no store keeps them; relations' content is summed up."""
        if self._engine.store.is_durable:
            return
        most = self._limits.kept_rows
        with self._engine.held():
            full = [log for log in self._engine.deliveries if _rows_kept(log) > most + most // 2]
            for log in full:
                said = log.trim(most)
                if said is not None and not log.entry.plan.is_stream:
                    kept = self._kept.setdefault(log.entry.name.lower(), Kept())
                    kept.content = net_content(_together(kept.content, said))

    def present(self, query: str) -> tuple[pa.Table, Place]:
        """The content of a relation now, each row once with its number, and up to where that is."""
        with self._engine.held():
            log = self._engine.deliveries.of(query)
            if log.entry.plan.is_stream:
                raise RequestError(400, f'query "{log.entry.name}" is a stream: it has no content')
            kept, place = self._kept.get(log.entry.name.lower(), Kept()), place_now(log)
            said = log.table(list(log.kept))
        return net_content(_together(kept.content, said)), place

    def after(self, log: ResultLog, place: Place, since: int | None) -> tuple[int, list[Event]]:
        """What was put out behind a place, as much as is sent at once, and what was let go of it.

        ``since``: only what is of this time or later.
        """
        with self._engine.held():
            oldest = oldest_place(log)
            missed = max(0, oldest.rows - place.rows) if oldest.page > place.page else 0
            start = oldest if oldest.page > place.page else place
            pages, rows, at = log.kept[start.page - oldest.page :], 0, start
            taken = []
            for page in pages:
                if rows and rows + page.rows > CATCH_UP_ROWS:
                    break
                rows += page.rows
                at = Place(at.page + 1, at.rows + page.rows)
                taken.append((page, at))
                page.pin()
        try:
            events = [Event(at, log.table([page])) for page, at in taken]
        finally:
            with self._engine.held():
                for page, _ in taken:
                    page.unpin()
        if since is not None:
            events = [Event(e.place, _since(e.table, since)) for e in events]
        return missed, events

    def place_of(self, log: ResultLog, start: str) -> tuple[Place, int | None]:
        """Where ``from=`` begins: now, oldest, or a time."""
        with self._engine.held():
            if start == "now":
                return place_now(log), None
            if start == "oldest":
                return oldest_place(log), None
            if start.startswith("id:"):
                place = Place.read(start.removeprefix("id:"))
                # An id of an earlier life without a store: all there is came after it.
                return (place if place.page <= log.position else oldest_place(log)), None
            try:
                time_ = int(start) if start.lstrip("-").isdigit() else start
                ticks = as_ticks(time_, log.tick_microseconds, "from")
            except (MillpondError, ValueError, OverflowError):
                raise RequestError(
                    400, f"from={start[:40]}: write now, oldest, present, a time, or ticks"
                ) from None
            place = oldest_place(log)
            for page in log.kept:
                if page.last >= ticks:
                    break
                place = Place(place.page + 1, place.rows + page.rows)
            return place, ticks


def _rows_kept(log: ResultLog) -> int:
    return sum(page.rows for page in log.kept)


def _since(table: pa.Table, ticks: int) -> pa.Table:
    return table.filter(pc.greater_equal(table.column(0), ticks))


def _together(content: pa.Table | None, said: pa.Table) -> pa.Table:
    return said if content is None else pa.concat_tables([content, said.cast(content.schema)])


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
    plain = changes.rename_columns([str(place) for place in range(len(names))])
    keys = [str(place) for place in range(2, len(names))]
    summed = plain.group_by(keys, use_threads=False).aggregate([("0", "max"), ("1", "sum")])
    alive = summed.filter(pc.greater(summed["1_sum"], 0)).select(["0_max", "1_sum", *keys])
    return alive.rename_columns(names).cast(changes.schema)


def _single(changes: pa.Table, total: int) -> pa.Table:
    times = [pc.max(changes.column(0)).as_py()]
    return pa.Table.from_arrays(
        [pa.array(times, pa.int64()), pa.array([total], pa.int64())], schema=changes.schema
    )

"""Endless responses: the results of a query as they come, to one reader."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from millpond.delivery.results import ResultLog
from millpond.server.feeds import Event, Feed, Feeds, Offset, Reader
from millpond.server.formats import FORMATS, SHARED, Heading, ResultFormat

ALIVE_SECONDS = 10.0
"""A reader hears so often from a query that puts nothing out."""

INLINE_ROWS = 200
"""Larger pages are written by a thread, so that other readers need not wait for it."""


@dataclass(frozen=True)
class Wish:
    """What a reader has asked for."""

    format: str
    start: str = "now"
    """``now``, ``oldest``, ``present``, ``id:…`` or a time."""
    follow: bool = True
    hold: bool = False


class ResultStream:
    """One endless response."""

    def __init__(self, feeds: Feeds, log: ResultLog, wish: Wish) -> None:
        self._feeds, self._log, self._wish = feeds, log, wish
        self._form: ResultFormat = FORMATS[wish.format]()
        self._heading = Heading(log.entry.name, log.table([]).schema, log.format_time)
        self._snapshot: Event | None = None
        self._since: int | None = None
        self.media_type = self._form.media_type
        self._offset = self._begin()

    def _begin(self) -> Offset:
        if self._wish.start == "present":
            content, offset = self._feeds.present(self._log.entry.name)
            self._snapshot = Event(offset, content)
            return offset
        offset, self._since = self._feeds.offset_of(self._log, self._wish.start)
        return offset

    async def body(self) -> AsyncIterator[bytes]:
        """The response, piece by piece."""
        reader = Reader(self._offset, self._wish.hold)
        feed = self._feeds.enter(self._log, reader)
        try:
            yield self._form.begin(self._heading)
            if self._snapshot is not None and self._snapshot.table.num_rows:
                yield await self._written(self._snapshot)
            async for piece in self._pieces(feed, reader):
                yield piece
            yield self._form.end()
        finally:
            self._feeds.leave(feed, reader)

    async def _pieces(self, feed: Feed, reader: Reader) -> AsyncIterator[bytes]:
        while True:
            found = feed.recent_after(reader)
            events = found or []
            if found is None or self._since is not None:
                offset, since = reader.offset, self._since
                missed, events = await asyncio.to_thread(
                    self._feeds.after, self._log, offset, since
                )
                self._since = self._since if events else None
                if missed:
                    mark = str(reader.offset.rows + missed)
                    yield self._form.gap(self._heading, missed, mark)
            for event in events:
                if event.table.num_rows:
                    yield await self._written(event)
                reader.offset = event.offset
                reader.seen += 1
            if events:
                continue
            if feed.is_over or not self._wish.follow:
                return
            if not await feed.wait(ALIVE_SECONDS):
                until = self._log.format_time(self._log.complete_until)
                yield self._form.alive(until)

    async def _written(self, event: Event) -> bytes:
        """The bytes of an event; readers of one format share them, and the work."""
        form, mark = self._wish.format, str(event.offset)
        if form not in SHARED:
            return self._form.results(self._heading, event.table, mark)
        if form in event.encoded:
            return event.encoded[form]
        if event.table.num_rows <= INLINE_ROWS:
            event.encoded[form] = self._form.results(self._heading, event.table, mark)
            return event.encoded[form]
        if form not in event.writing:
            written = asyncio.to_thread(self._form.results, self._heading, event.table, mark)
            event.writing[form] = asyncio.ensure_future(written)
        event.encoded[form] = await asyncio.shield(event.writing[form])  # whoever goes meanwhile
        return event.encoded[form]

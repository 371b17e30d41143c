"""Results for programs with an event loop: tables of a query as an asynchronous iterator.

The engine calls back in its own thread; a bounded queue is between it and whoever iterates.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Protocol, Self

import pyarrow as pa

from millpond.delivery.results import Callback
from millpond.errors import StateError

WAIT_SECONDS = 0.1
"""So often whoever waits for room looks whether there is an end."""


class Subscribed(Protocol):
    """An engine, as far as results are read from it."""

    def subscribe(self, query: str, callback: Callback) -> None:
        """Calls back with every table of new results."""

    def unsubscribe(self, query: str, callback: Callback) -> None:
        """Calls back no more."""

    @property
    def is_closed(self) -> bool:
        """Whether the engine is closed."""


class ResultStream:
    """The tables that a query puts out from now on, each once, in order."""

    def __init__(self, engine: Subscribed, query: str, most_tables: int) -> None:
        if most_tables < 1:
            raise StateError(
                f"a stream of results has room for at least 1 table, not {most_tables}"
            )
        self._engine, self._query, self._most = engine, query, most_tables
        self._tables: deque[pa.Table] = deque()
        self._has_room = threading.Condition()
        self._is_over = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_more = asyncio.Event()
        engine.subscribe(query, self._take)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.Table:
        self._loop = asyncio.get_running_loop()
        while True:
            with self._has_room:
                if self._tables:
                    table = self._tables.popleft()
                    self._has_room.notify_all()
                    return table
                if self._is_over or self._engine.is_closed:
                    raise StopAsyncIteration
                self._has_more.clear()
            await self._wait()

    async def _wait(self) -> None:
        """Waits for a table; an engine that is closed tells nobody."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._has_more.wait()
        except TimeoutError:
            return

    def _take(self, table: pa.Table) -> None:
        """Called by the engine; waits for room."""
        with self._has_room:
            while len(self._tables) >= self._most and not self._is_over:
                if self._engine.is_closed:
                    return
                self._has_room.wait(WAIT_SECONDS)
            self._tables.append(table)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._has_more.set)

    def close(self) -> None:
        """Ends it: nothing is taken any more."""
        with self._has_room:
            self._is_over = True
            self._has_room.notify_all()
        if not self._engine.is_closed:
            self._engine.unsubscribe(self._query, self._take)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

"""What comes one by one to an event loop, taken as many at a time as have come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _End:
    """Nothing follows; what went wrong, if anything did."""

    error: BaseException | None = None


class Batching:
    """Items of an asynchronous iterable, or of a queue that ends with None."""

    def __init__(self, items: AsyncIterable[Any] | asyncio.Queue[Any], most: int) -> None:
        self._most = most
        self._end: _End | None = None
        self._is_closed = False
        self._task: asyncio.Task[None] | None = None
        if isinstance(items, asyncio.Queue):
            self._queue: asyncio.Queue[Any] = items
        else:
            self._queue = asyncio.Queue(most)
            self._task = asyncio.ensure_future(self._fill(items))

    async def _fill(self, items: AsyncIterable[Any]) -> None:
        try:
            async for each in items:
                await self._queue.put(each)
        except asyncio.CancelledError:
            if self._is_closed:
                raise
            await self._queue.put(_End(RuntimeError("what it waited for was cancelled")))
        except Exception as error:  # noqa: BLE001 (raised where items are taken)
            await self._queue.put(_End(error))
        else:
            await self._queue.put(_End())

    async def next(self) -> list[Any]:
        """What has come, after a wait for the first; nothing at the end."""
        found: list[Any] = []
        if self._end is None:
            first = await self._queue.get()
            found = [first] if first is None else [first, *self._there()]
        if found and self._task is None and found[-1] is None:
            found[-1] = _End()
        if found and isinstance(found[-1], _End):
            self._end = found.pop()
        if not found and self._end is not None and self._end.error is not None:
            raise self._end.error
        return found

    def _there(self) -> Iterator[Any]:
        """What need not be waited for, up to the end."""
        for _ in range(min(self._queue.qsize(), self._most - 1)):
            found = self._queue.get_nowait()
            yield found
            if found is None or isinstance(found, _End):
                return

    async def close(self) -> None:
        """Takes nothing more of an iterable."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

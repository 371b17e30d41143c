"""Rows of programs with an event loop are pushed: what an asynchronous iterable or a queue has."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine
from typing import Any, Protocol

import pyarrow as pa

from millpond.connectors.batching import Batching
from millpond.connectors.pandas_there import is_frame
from millpond.errors import InputError

MOST_ROWS = 10_000
"""As many rows are pushed at once, of those that have come."""


class Pushed(Protocol):
    """An engine, as far as rows are pushed to it."""

    def push(self, name: str, rows: Any, key: str | None = None) -> int:
        """Adds rows; says how many came too late."""


async def feed(engine: Pushed, name: str, rows: AsyncIterable[Any] | asyncio.Queue[Any]) -> int:
    """Pushes rows, lists of rows and frames as they come; says how many came too late.

    The event loop goes on while there is no room for more; what comes waits meanwhile.
    """
    if not isinstance(rows, AsyncIterable | asyncio.Queue):
        raise InputError(
            f"{name}: feed takes an asynchronous iterable or a queue of asyncio, not "
            f"{type(rows).__name__}; push takes rows"
        )
    late, batching = 0, Batching(rows, MOST_ROWS)
    try:
        while batch := await batching.next():
            late += await _whole(asyncio.to_thread(_pushed, engine, name, batch))
    finally:
        await batching.close()
        if isinstance(rows, AsyncGenerator):
            await rows.aclose()
    return late


async def _whole(pushing: Coroutine[Any, Any, int]) -> int:
    """Waits for what was taken to be pushed, also where this is cancelled: whoever feeds next comes
    behind it."""
    task = asyncio.ensure_future(pushing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _pushed(engine: Pushed, name: str, batch: list[Any]) -> int:
    """Pushes all that was taken; says how many came too late."""
    return sum(engine.push(name, each) for each in _joined(batch))


def _joined(batch: list[Any]) -> list[Any]:
    """Rows that follow each other as one list; frames and Arrow data by themselves."""
    joined: list[Any] = []
    for each in batch:
        is_arrow = isinstance(each, pa.RecordBatch | pa.Table)
        if is_arrow or is_frame(each) or hasattr(each, "__arrow_c_stream__"):
            joined.append(each)
            continue
        if not joined or not isinstance(joined[-1], list):
            joined.append([])
        joined[-1].extend(each if isinstance(each, list) else [each])
    return joined

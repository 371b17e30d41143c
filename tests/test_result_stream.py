"""Results as an asynchronous iterator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from millpond import Engine
from millpond.errors import StateError
from tests.patience import PATIENCE_SECONDS, wait_until


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine() as made:
        made.execute("CREATE STREAM S (n INT, ts BIGINT) TIMESTAMP BY ts")
        made.execute("CREATE QUERY q AS SELECT n FROM S")
        yield made


def within_patience(coroutine):
    async def bounded():
        return await asyncio.wait_for(coroutine, PATIENCE_SECONDS)

    return asyncio.run(bounded())


def push(engine: Engine, *numbers: int) -> None:
    for number in numbers:
        engine.push("S", [(number, number)])
        engine.advance("S", number)


async def numbers_of(tables, count: int) -> list[int]:
    found: list[int] = []
    async for table in tables:
        found += table["n"].to_pylist()
        if len(found) >= count:
            break
    return found


def test_each_result_comes_once_in_order(engine: Engine) -> None:
    async def read() -> list[int]:
        async with engine.stream("q") as tables:
            engine.start()
            reading = asyncio.create_task(numbers_of(tables, 50))
            await asyncio.to_thread(push, engine, *range(50))
            return await reading

    assert within_patience(read()) == list(range(50))
    engine.stop()
    assert not engine.deliveries.of("q").subscribers


def test_a_slow_reader_holds_the_engine_back_and_loses_nothing(engine: Engine) -> None:
    async def read() -> list[int]:
        async with engine.stream("q", most_tables=1) as tables:
            engine.start()
            for number in range(10):  # each in a step of its own, if nobody is held back
                await asyncio.to_thread(push, engine, number)
            await asyncio.to_thread(wait_until, lambda: len(tables._tables) == 1)
            return await numbers_of(tables, 10)

    assert within_patience(read()) == list(range(10))
    engine.stop()


def test_the_end_of_the_engine_is_the_end(engine: Engine) -> None:
    async def read() -> list:
        tables = engine.stream("q")
        engine.start()
        reading = asyncio.create_task(numbers_of(tables, 1))
        await asyncio.sleep(0)
        await asyncio.to_thread(engine.close)
        return await reading

    assert within_patience(read()) == []


def test_an_engine_is_closed_though_nobody_reads(engine: Engine) -> None:
    engine.stream("q", most_tables=1)
    engine.start()
    push(engine, *range(5))
    engine.close()
    assert engine.is_closed


def test_there_is_room_for_a_table(engine: Engine) -> None:
    with pytest.raises(StateError, match="at least 1 table, not 0"):
        engine.stream("q", most_tables=0)
    with pytest.raises(StateError, match='no query "none"'):
        engine.stream("none")

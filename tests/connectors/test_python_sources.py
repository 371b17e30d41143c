"""Functions of Python as sources, and rows of event loops that are fed."""

from __future__ import annotations

import asyncio
import random
import threading

import pandas as pd
import pyarrow as pa
import pytest

import millpond
from millpond import Engine
from millpond.catalog import Connector, StreamEntry
from millpond.connectors import open_source
from millpond.connectors.declared_functions import DECLARED
from millpond.connectors.sources import Declaration
from millpond.errors import MillpondError
from millpond.facade.feeding import feed
from millpond.settings import Settings
from millpond.testing import check_source
from tests.connectors.declarations import schema
from tests.connectors.reading import Reading
from tests.crashing import die
from tests.patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def undeclared():
    """What a test declares is gone behind it."""
    before = dict(DECLARED)
    yield
    DECLARED.clear()
    DECLARED.update(before)


def opened(name: str, *arguments, columns="id BIGINT", skips=False, page_rows=7, **options):
    call = Connector(name, arguments, tuple(options.items()))
    entry = StreamEntry("S", schema(columns), None, 0, call, skips_bad_rows=skips)
    return open_source(entry, Settings(page_rows=page_rows))


def checked(name: str, rows: int, *arguments, skips=False) -> list:
    declared = Declaration("S", schema("id BIGINT"), settings=Settings(page_rows=7))
    return check_source(lambda _: opened(name, *arguments, skips=skips), declared, rows)


def chunks(rows: int):
    """Rows in all forms, in pieces of all lengths."""
    rng, n = random.Random(3), 0
    while n < rows:
        size = min(rng.randrange(1, 12), rows - n)
        ids = list(range(n, n + size))
        forms = [[(i,) for i in ids], [{"id": i} for i in ids], pd.DataFrame({"id": ids})]
        forms += [pa.table({"ID": ids}), pa.record_batch({"id": ids})]
        yield rng.choice(forms) if size > 1 else (n,), n + size
        n += size


def test_a_function_is_read_again_from_its_beginning() -> None:
    @millpond.source
    def numbers(count, *, least=0):
        for rows, _ in chunks(count):
            yield rows

    assert checked("numbers", 100, 100) == [(n,) for n in range(100)]
    with pytest.raises(MillpondError, match="numbers: no option most"):
        opened("numbers", 1, most=3)
    with pytest.raises(MillpondError, match=r"use: numbers\(count, least = 0\)"):
        opened("numbers")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("skips", [False, True])
def test_a_function_that_knows_its_place_goes_on_there(is_async, skips) -> None:
    def numbers(after):
        wanted = not after
        for rows, place in chunks(60):
            if wanted:
                yield rows, place
            wanted = wanted or place == after

    async def waiting(after):
        for pair in numbers(after):
            await asyncio.sleep(0)
            yield pair

    millpond.source(name="numbers")(waiting if is_async else numbers)
    assert checked("numbers", 60, skips=skips) == [(n,) for n in range(60)]


def test_bad_rows_are_put_aside_and_their_place_is_known() -> None:
    @millpond.source
    def mixed(after):
        for n in range(after or 0, 40):
            row = {"id": "x"} if n % 5 == 3 else {"id": n, "more": 1} if n % 5 == 1 else {"id": n}
            yield [row, (f"{n}",), (n,)], n + 1

    rows = checked("mixed", 120, skips=True)
    assert len(rows) == 64
    reading = Reading(opened("mixed", skips=True)).until_there(64, 56)
    assert reading.bad[0].reason == "S, row 2 behind None, column id: '0' is not a BIGINT"
    assert reading.bad[0].raw == b"('0',)"
    with pytest.raises(MillpondError, match=r"S, row \d behind \w+"):
        list(opened("mixed").pages())


def test_a_kill_loses_no_row_and_doubles_none(tmp_path) -> None:
    @millpond.source
    async def numbers(after):
        for n in range(after or 0, 60):
            yield {"id": n}, n + 1

    script = (
        "CREATE STREAM S (id BIGINT) FROM numbers(); "
        f"CREATE QUERY q AS SELECT id FROM S INTO csv('{tmp_path / 'out.csv'}')"
    )
    for life in range(4):
        engine = Engine(Settings(page_rows=7), store=tmp_path / "store")
        engine.execute(script)
        engine.run_sources(rows=11 * (life + 1))
        die(engine)
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(script)
        engine.finish()
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert [int(line.rpartition(",")[2]) for line in lines] == list(range(60))


def test_what_cannot_come_again_is_refused_or_a_gap() -> None:
    async def numbers():
        for n in range(3):
            yield (n,)

    millpond.source(numbers)
    taken = Reading(opened("numbers")).until_there(3).end()
    said = Reading(opened("numbers"), taken).until_error()
    assert "rows may be lost; give the function a parameter after, or say source(gaps" in said
    millpond.source(gaps=True)(numbers)
    Reading(opened("numbers"), taken).until_there(3).end()


def declared_waiting() -> threading.Event:
    """Declares a source `waiting` of one row that waits then; what is set when it has ended."""
    has_ended = threading.Event()

    @millpond.source(endless=True)
    async def waiting():
        try:
            yield (1,)
            await asyncio.Event().wait()
        finally:
            has_ended.set()

    return has_ended


def test_pages_may_be_collected_inside_of_an_event_loop() -> None:
    has_ended = declared_waiting()
    pages = opened("waiting").pages()
    assert any(page.rows.num_rows for page in pages)

    async def collect() -> None:
        pages.close()

    asyncio.run(collect())
    assert has_ended.is_set()


def test_who_waits_is_ended_and_tidies_up() -> None:
    has_ended = declared_waiting()
    source = opened("waiting")
    assert (source.ends, source.is_live) == (False, True)
    Reading(source).until_there(1).end()
    assert has_ended.is_set()


def test_what_a_function_does_wrong_is_said() -> None:
    @millpond.source
    def fails():
        yield (1,)
        raise KeyError("what")

    @millpond.source
    async def fails_later():
        yield (1,)
        raise OSError("gone")

    @millpond.source
    def wrong():
        return 5

    @millpond.source
    def placeless(after):
        yield {"id": 1}

    @millpond.source
    def nowhere(after):
        yield (1,), {1}

    for name, said in (
        ("fails", r"S FROM fails\(\): KeyError: 'what'"),
        ("fails_later", r"S FROM fails_later\(\): OSError: gone"),
        ("wrong", r"S FROM wrong\(\): it yields rows, and gave 5"),
        ("placeless", r"with a parameter after it yields pairs \(rows, where to go on\), not \{"),
        ("nowhere", r"where to go on is any value of JSON, not \{1\}"),
    ):
        with pytest.raises(MillpondError, match=said):
            list(opened(name).pages())
    with pytest.raises(MillpondError, match="there is a connector csv; give the source another"):
        millpond.source(name="csv")(fails)
    with pytest.raises(MillpondError, match="a source is a function with a name, not"):
        millpond.source(name="a b")(fails)


def test_frames_of_polars_are_rows() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame({"id": [1, 2], "s": ["é", None]}).with_columns(
        c=polars.col("s").cast(polars.Categorical), at=polars.datetime(2026, 1, 1)
    )

    @millpond.source
    def frames():
        yield frame

    columns = "id INT, s STRING, c STRING, at TIMESTAMP"
    reading = Reading(opened("frames", columns=columns)).until_there(2)
    with Engine() as engine:
        engine.execute(f"CREATE STREAM S ({columns}); CREATE QUERY q AS SELECT id, c FROM S")
        engine.push("S", frame)
        engine.finish()
        assert engine.results("q")["c"].to_pylist() == ["é", None]
    assert [row[:3] for row in reading.rows] == [(1, "é", "é"), (2, None, None)]


# -- feeding -------------------------------------------------------------------------------


def test_queues_and_generators_are_fed_as_they_come() -> None:
    async def numbers(least):
        yield {"id": least}
        await asyncio.sleep(0)
        for form in ([(least + 1,), (least + 2,)], pa.table({"id": [least + 3]}), (least + 4,)):
            yield form

    async def all_of_it(engine) -> list[int]:
        queue = asyncio.Queue()
        async with engine.stream("q") as tables:
            feeding = asyncio.gather(engine.feed("S", numbers(0)), engine.feed("S", queue))
            for n in (5, 6):
                await queue.put((n,))
            await queue.put(None)
            assert await feeding == [0, 0]
            engine.start()
            found = []
            async for table in tables:
                found += table["id"].to_pylist()
                if len(found) == 7:
                    break
        return found

    with Engine() as engine:
        engine.execute("CREATE STREAM S (id BIGINT); CREATE QUERY q AS SELECT id FROM S")
        assert sorted(asyncio.run(all_of_it(engine))) == list(range(7))
        engine.stop()


def test_two_who_feed_of_one_queue_end_with_an_end_each() -> None:
    async def both(engine) -> list[int]:
        queue = asyncio.Queue()
        for each in ((1,), None, (2,), None):
            queue.put_nowait(each)
        return await asyncio.gather(engine.feed("S", queue), engine.feed("S", queue))

    with Engine() as engine:
        engine.execute("CREATE STREAM S (id BIGINT); CREATE QUERY q AS SELECT id FROM S")
        assert asyncio.run(asyncio.wait_for(both(engine), 60)) == [0, 0]


def test_what_was_taken_of_a_queue_is_pushed_also_if_feeding_is_cancelled() -> None:
    pushed, is_pushed, is_cancelled = [], threading.Event(), threading.Event()

    class Slow:
        def push(self, name, rows, key=None) -> int:
            pushed.append(rows)
            is_pushed.set()
            assert is_cancelled.wait(PATIENCE_SECONDS)
            return 0

    async def cancelled() -> None:
        queue = asyncio.Queue()
        frame = pa.table({"id": [2]})
        for each in ((1,), frame, (3,), None):
            queue.put_nowait(each)
        feeding = asyncio.ensure_future(feed(Slow(), "S", queue))
        await asyncio.to_thread(is_pushed.wait, PATIENCE_SECONDS)
        feeding.cancel()
        is_cancelled.set()
        await asyncio.wait({feeding})
        assert feeding.cancelled()
        assert [len(rows) for rows in pushed] == [1, 1, 1]

    asyncio.run(cancelled())


def test_what_cannot_be_fed_is_refused() -> None:
    async def fails():
        yield (1,)
        raise OSError("gone")

    with Engine() as engine:
        engine.execute("CREATE STREAM S (id BIGINT)")
        with pytest.raises(MillpondError, match="S: feed takes an asynchronous iterable"):
            asyncio.run(engine.feed("S", [(1,)]))
        with pytest.raises(OSError, match="gone"):
            asyncio.run(engine.feed("S", fails()))


def test_who_waits_for_what_is_cancelled_ends_with_an_error() -> None:
    @millpond.source
    async def waits_for_nobody():
        yield (1,)
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        await gone

    async def fed(engine) -> None:
        await asyncio.wait_for(engine.feed("S", waits_for_nobody()), 60)

    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (id BIGINT); CREATE STREAM T (id BIGINT) FROM waits_for_nobody()"
        )
        engine.execute("CREATE QUERY q AS SELECT id FROM T")
        with pytest.raises(RuntimeError, match="what it waited for was cancelled"):
            asyncio.run(fed(engine))
        with pytest.raises(
            MillpondError, match=r"waits_for_nobody.*: what it waited for was cancelled"
        ):
            engine.run_sources(seconds=60)

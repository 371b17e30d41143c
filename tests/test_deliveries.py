"""Sinks and subscribers of a query that is dropped while they are served."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from millpond import Engine
from millpond.connectors.parquet_files import ParquetSink
from millpond.delivery.deliveries import Deliveries
from millpond.delivery.results import ResultLog
from tests.patience import PATIENCE_SECONDS, wait_until

STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
INTO = "CREATE QUERY q AS SELECT a FROM S INTO parquet('out');"
OTHER = "CREATE QUERY other AS SELECT a + 1 AS b FROM S;"


class Gate:
    """Writes to a sink wait here, each until it is let through."""

    def __init__(self) -> None:
        self._lets = threading.Semaphore(0)
        self.came = 0
        self.threads: set[str] = set()

    def __call__(self) -> None:
        self.came += 1
        self.threads.add(threading.current_thread().name)
        assert self._lets.acquire(timeout=PATIENCE_SECONDS)

    def let(self, writes: int = 1) -> None:
        self._lets.release(writes)


@pytest.fixture(params=["by the loop", "beside the loop"])
def gate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Has all sinks wait, fed by the loop's thread or by the one that executors' pages need."""
    gate = Gate()
    write = ParquetSink.write

    def waiting(sink: ParquetSink, table: Any) -> None:
        gate()
        write(sink, table)

    monkeypatch.setattr(ParquetSink, "write", waiting)
    if request.param == "beside the loop":
        next_part = staticmethod(lambda log, page: None if log.sink is None else Path())
        monkeypatch.setattr(Deliveries, "_next_part", next_part)
        monkeypatch.setattr(Deliveries, "_write_elsewhere", lambda *_: False)
    yield gate
    gate.let(1000)


def in_thread(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def log_of(engine: Engine, query: str) -> ResultLog:
    return engine.deliveries.of(query)


@pytest.mark.parametrize("store", [None, "store"])
@pytest.mark.parametrize("how", ["drop", "statement"])
def test_a_query_is_dropped_once_its_sink_has_the_page_that_is_written(
    gate: Gate, tmp_path: Path, store: str | None, how: str
) -> None:
    place = None if store is None else tmp_path / store
    with Engine(directory=tmp_path, store=place) as engine:
        engine.execute(STREAM + INTO + OTHER)
        engine.start()
        engine.push("S", [(1, 1)])
        engine.advance("S", 1)
        wait_until(lambda: gate.came == 1)
        log = log_of(engine, "q")
        dropping = in_thread(
            lambda: engine.drop("q") if how == "drop" else engine.execute("DROP QUERY q;")
        )
        wait_until(lambda: log.is_resting)
        engine.push("S", [(2, 2)])  # nobody else waits for the sink
        engine.advance("S", 2)
        assert dropping.is_alive()
        gate.let()
        dropping.join(PATIENCE_SECONDS)
        assert not dropping.is_alive()
        assert [file.name for file in (tmp_path / "out").iterdir()] == ["part-000000.parquet"]
        engine.execute(INTO)  # the files are free again, and this is another query
        gate.let(1000)
        engine.push("S", [(3, 3)])
        engine.advance("S", 3)
        engine.stop(drain=True)
        assert engine.failures() == []
        assert engine.results("other")["b"].to_pylist() == [2, 3, 4]
        assert engine.results("q")["a"].to_pylist() == [3]
    if store is not None:
        with Engine(directory=tmp_path, store=place) as engine:
            assert engine.failures() == []
            assert engine.results("q")["a"].to_pylist() == [3]


@pytest.mark.parametrize("gate", ["beside the loop"], indirect=True)
def test_a_callback_drops_its_query_while_the_sink_is_fed(gate: Gate, tmp_path: Path) -> None:
    with Engine(directory=tmp_path) as engine:
        engine.execute(STREAM + INTO + OTHER)
        log = log_of(engine, "q")

        def resume() -> None:
            wait_until(lambda: log.is_resting)
            gate.let(1000)

        def callback(_: Any) -> None:
            wait_until(lambda: gate.came == 1)
            resuming = in_thread(resume)
            engine.drop("q")
            resuming.join()

        engine.subscribe("q", callback)
        engine.push("S", [(1, 1)])
        engine.finish()
        assert engine.failures() == []
        assert engine.results("other")["b"].to_pylist() == [2]
        assert [file.name for file in (tmp_path / "out").iterdir()] == ["part-000000.parquet"]


def test_a_subscriber_that_drops_its_query_is_not_called_again(tmp_path: Path) -> None:
    seen = []
    with Engine() as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT a FROM S;")

        def callback(table: Any) -> None:
            seen.extend(table["a"].to_pylist())
            engine.drop("q")

        log = log_of(engine, "q")
        engine.subscribe("q", callback)
        hand_on, put_out = engine.deliveries.hand_on, []
        engine.deliveries.hand_on = lambda fail: None  # type: ignore[method-assign]
        for each in (1, 2):
            engine.push("S", [(each, each)])
            engine.advance("S", each)
            engine.run_until_idle()
            put_out.append(log.position)
        assert put_out == [1, 2]
        hand_on(engine.queries.fail)
        assert seen == [1]


def test_a_sink_may_drop_its_own_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine(directory=tmp_path) as engine:
        engine.execute(STREAM + INTO + OTHER)
        monkeypatch.setattr(ParquetSink, "write", lambda *_: engine.drop("q"))
        engine.push("S", [(1, 1), (2, 2)])
        engine.finish()
        assert engine.failures() == []
        assert engine.results("other")["b"].to_pylist() == [2, 3]


def test_what_a_sink_raises_after_its_query_is_gone_fails_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(directory=tmp_path) as engine:
        engine.execute(STREAM + INTO)

        def write(*_: Any) -> None:
            engine.drop("q")
            engine.execute("CREATE QUERY q AS SELECT a FROM S;")
            raise OSError("the disk is full")

        monkeypatch.setattr(ParquetSink, "write", write)
        engine.push("S", [(1, 1)])
        engine.run_until_idle()
        engine.push("S", [(2, 2)])
        engine.finish()
        assert engine.failures() == []
        assert engine.results("q")["a"].to_pylist() == [2]

"""Sinks that are written beside the loop, and a store that refuses to be written meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from millpond import Engine
from millpond.connectors.parquet_files import ParquetSink
from millpond.delivery import results
from millpond.errors import StoreError
from tests.patience import PATIENCE_SECONDS, wait_until

STATEMENTS = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE QUERY q AS SELECT a FROM S INTO parquet('out')
"""


@pytest.fixture(autouse=True)
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has sinks of files be written as those are that a server takes."""
    monkeypatch.setattr(ParquetSink, "is_remote", True, raising=False)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(directory=tmp_path, store=tmp_path / "store") as engine:
        engine.execute(STATEMENTS)
        yield engine


class Held:
    """Has whoever calls a function wait behind it, until it is let go on."""

    def __init__(self, call: Any) -> None:
        self._call, self._goes_on = call, threading.Event()
        self.waits = 0

    def __call__(self, *given: Any) -> Any:
        answer = self._call(*given)
        self.waits += 1
        assert self._goes_on.wait(PATIENCE_SECONDS)
        return answer

    def let_go(self) -> None:
        self._goes_on.set()


@contextmanager
def refusing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The store cannot be written meanwhile, but with what this thread brings."""
    here, log = threading.current_thread(), engine.journal._log
    assert log is not None
    append_there = log.append

    def append(records: Any) -> None:
        if threading.current_thread() is not here:
            raise StoreError("the store is full")
        append_there(records)

    with monkeypatch.context() as patched:
        patched.setattr(log, "append", append)
        yield


def push(engine: Engine, t: int) -> None:
    engine.push("S", [(t, t)])
    engine.advance("S", t)


def written(folder: Path) -> list[int]:
    parts = sorted((folder / "out").glob("*.parquet"))
    return [a for part in parts for a in pq.read_table(part)["a"].to_pylist()]


def all_written(engine: Engine) -> bool:
    """Works on; what was refused is said once more at most."""
    try:
        engine.run_until_idle()
    except StoreError:
        return False
    return True


def rest(engine: Engine) -> None:
    """Waits for whoever writes beside the loop."""
    wait_until(lambda: all(each.done() for each in engine.deliveries._writing))


def test_nothing_is_written_that_the_log_does_not_say(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that was put out, and whose step is not in the log, may be another one when the step
    is done again after a death; and its number would be taken."""
    held = Held(results._feed_page)
    monkeypatch.setattr(results, "_feed_page", held)
    push(engine, 1)
    turning = threading.Thread(target=all_written, args=(engine,))
    turning.start()
    wait_until(lambda: held.waits == 1)  # behind the first page
    with refusing(engine, monkeypatch):
        push(engine, 2)
        turning.join(PATIENCE_SECONDS)
        assert engine.deliveries.of("q").position == 2
        held.let_go()
        rest(engine)
        assert written(tmp_path) == [1]
    assert all_written(engine) or all_written(engine)
    assert written(tmp_path) == [1, 2]


def test_what_waited_when_the_store_refused_is_written(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(ParquetSink.write)

    def write(*given: Any) -> None:
        held(*given)

    monkeypatch.setattr(ParquetSink, "write", write)
    engine.start()
    push(engine, 1)
    wait_until(lambda: held.waits == 1)
    push(engine, 2)
    log = engine.deliveries.of("q")
    wait_until(lambda: log.position == 2 and not engine.deliveries.has_more)
    engine.stop(drain=False)
    with refusing(engine, monkeypatch):
        held.let_go()
        rest(engine)
        assert written(tmp_path) == [1]
    assert all_written(engine) or all_written(engine)
    assert written(tmp_path) == [1, 2]

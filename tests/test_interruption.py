"""Ctrl-C at any moment: what is under the lock is done whole, and nothing is lost or done twice."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond import Engine
from millpond.interruption import WholeLock, uninterrupted
from tests.patience import PATIENCE_SECONDS

SCRIPT = """
CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t;
CREATE QUERY counts AS SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE 20] GROUP BY k
  INTO csv('{}');
CREATE QUERY pairs AS ISTREAM(
  SELECT a.v, b.v AS w FROM S [RANGE 5] a JOIN S [ROWS 3] b ON a.k = b.k);
"""


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0)  # the handler runs between two instructions


def test_what_is_inside_is_done_whole() -> None:
    done = []

    def work() -> None:
        with uninterrupted:
            with uninterrupted:
                interrupt()
                done.append(1)
            done.append(2)
        done.append(3)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1, 2]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_lock_is_free_after_an_interruption_and_a_wait_ends_with_one() -> None:
    lock = WholeLock()
    with pytest.raises(KeyboardInterrupt), lock:
        interrupt()
    condition = lock.condition()
    killer = threading.Timer(0.1, interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt), condition:
        condition.wait()

    def wait() -> None:
        with condition:
            interrupt()
            condition.wait()  # one has come before

    with pytest.raises(KeyboardInterrupt):
        wait()
    killer.join()
    taken = []
    other = threading.Thread(target=lambda: taken.append(lock.acquire(timeout=PATIENCE_SECONDS)))
    other.start()
    other.join()
    assert taken == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_other_handlers_are_left_alone() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with uninterrupted:
            interrupt()
            assert heard == []
        assert heard == [signal.SIGINT]
        thread = threading.Thread(target=uninterrupted.__enter__)
        thread.start()
        thread.join()
        interrupt()
        assert heard == [signal.SIGINT] * 2
    finally:
        signal.signal(signal.SIGINT, before)


def _pages() -> list[list[tuple[int, int, int]]]:
    chance = random.Random(7)
    rows = [(t, chance.randrange(4), chance.randrange(100)) for t in range(1, 400)]
    return [rows[at : at + 7] for at in range(0, len(rows), 7)]


def _run(
    directory: Path, storm: random.Random | None
) -> tuple[list[object], list[object], str, int]:
    interruptions, sink, seen = 0, directory / "counts.csv", []
    with Engine() as engine:
        engine.execute(SCRIPT.format(sink))
        engine.subscribe("pairs", lambda table: seen.extend(table.to_pylist()))
        for page in _pages():
            engine.push("S", page)
            while True:
                timer = None
                try:
                    if storm is not None and storm.random() < 0.8:
                        timer = threading.Timer(storm.random() * 0.01, interrupt)
                        timer.start()
                    engine.run_until_idle()
                    break
                except KeyboardInterrupt:
                    interruptions += 1
                finally:
                    if timer is not None:
                        timer.cancel()
                        timer.join()
        engine.finish()
        return engine.results("counts", "rows"), seen, sink.read_text(), interruptions


@pytest.fixture
def no_search_for_garbage() -> Iterator[None]:
    """Hypothesis is called back about each, and Python loses an interruption that comes there."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.usefixtures("no_search_for_garbage")
def test_interruptions_at_any_moment_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    for name in ("calm", "storm"):
        (tmp_path / name).mkdir()
    calm = _run(tmp_path / "calm", None)
    storm = _run(tmp_path / "storm", random.Random(11))
    assert storm[3] > 5
    assert storm[0] == calm[0]
    assert storm[2] == calm[2]
    assert [row for i, row in enumerate(storm[1]) if row not in storm[1][:i]] == [
        row for i, row in enumerate(calm[1]) if row not in calm[1][:i]
    ]

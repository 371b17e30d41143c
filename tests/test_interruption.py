"""Ctrl-C at any moment: what is under the lock is done whole, and nothing is lost or done twice."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import NamedTuple

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.catalog import QueryEntry
from millpond.connectors.sinks import NamedSink
from millpond.delivery.results import ResultLog, call_subscribers, feed_sink
from millpond.interruption import WholeLock, uninterrupted
from millpond.storage.pages import Page
from millpond.storage.store import Store
from tests.patience import PATIENCE_SECONDS

PAGES = 60
"""So many moments of the work on a page are interrupted, from the first to the last."""

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


class Interruptions:
    """Interrupts the main thread at some of its moments, counted from the first to the last.

    Python looks for signals when a function begins and when one written in C has returned: there
    this is told, so each moment can be had again, however fast or busy a machine is. Those of other
    libraries are left out: whoever called them is interrupted there.
    """

    def __init__(self, *moments: int) -> None:
        self.moments, self.passed, self.raised = moments, 0, 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        where = frame.f_globals.get("__name__", "")
        if event in ("call", "c_return") and where.startswith(("millpond", "threading")):
            self.passed += 1
            if self.passed in self.moments:
                handler = signal.getsignal(signal.SIGINT)
                assert callable(handler)
                handler(signal.SIGINT, frame)

    @property
    def are_over(self) -> bool:
        return self.passed < max(self.moments)

    def during(self, work: Callable[[], object]) -> None:
        """Does something again until it was not interrupted."""
        while True:
            sys.setprofile(self)
            try:
                work()
            except KeyboardInterrupt:
                self.raised += 1
            else:
                return
            finally:
                sys.setprofile(None)


@pytest.fixture
def no_search_for_garbage() -> Iterator[None]:
    """Hypothesis is called back about each, and Python loses an interruption that comes there."""
    gc.disable()
    yield
    gc.enable()


def test_the_loop_is_given_back_whenever_it_is_interrupted() -> None:
    with Engine() as engine:
        engine.run_until_idle()
        for moment in range(1, 10_000):
            interruptions = Interruptions(moment, moment + 7)
            interruptions.during(engine.run_until_idle)
            if interruptions.are_over:
                break
        assert moment > 50


@pytest.mark.slow
def test_a_page_is_handed_to_each_reader_once_whenever_it_is_interrupted() -> None:
    lock, moment, is_over = WholeLock(), 0, False
    while not is_over:
        written: list[pa.Table] = []
        seen: list[pa.Table] = []
        others: list[pa.Table] = []
        log = _log(written)
        log.subscribe(seen.append)
        log.subscribe(lambda table, others=others: others.append(table))  # type: ignore[misc]
        for at in (1, 2):
            log.add(_page(at), at)
        moment += 1
        interruptions = Interruptions(moment, moment + 7)
        interruptions.during(lambda log=log: _hand_on(log, lock))  # type: ignore[misc]
        is_over = interruptions.are_over
        for tables in (written, seen):
            assert [table["ts"].to_pylist() for table in tables] == [[1], [2]], moment
        # In a function of the user it may come when that has done its work: it is called again.
        times = [table["ts"].to_pylist() for table in others]
        assert sorted(times) == times, moment
        assert {1, 2} == {at for each in times for at in each}, moment
        assert len(times) <= 2 + interruptions.raised
        assert log.waiting == []
    assert moment > 100


def test_a_callback_that_is_interrupted_while_others_read_on_gets_its_page_again() -> None:
    lock = WholeLock()
    written: list[pa.Table] = []
    seen: list[pa.Table] = []
    log = _log(written)

    def callback(table: pa.Table) -> None:
        seen.append(table)
        if len(seen) == 1:
            feed_sink(log, lock, lambda log, error: None)  # as the thread does that writes sinks
            raise KeyboardInterrupt

    log.subscribe(callback)
    log.add(_page(1), 1)
    with pytest.raises(KeyboardInterrupt):
        call_subscribers(log, lock)
    log.add(_page(2), 2)
    _hand_on(log, lock)
    assert [table["ts"].to_pylist() for table in seen] == [[1], [1], [2]]
    assert [table["ts"].to_pylist() for table in written] == [[1], [2]]


@lru_cache
def _entry() -> QueryEntry:
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;")
        engine.execute("CREATE QUERY q AS SELECT a FROM S INTO csv('/dev/null')")
        return engine.query_entry("q")


@lru_cache
def _store() -> Store:
    return Store("memory")


def _log(written: list[pa.Table]) -> ResultLog:
    sink = NamedSink(SimpleNamespace(write=written.append), "q", "a list")  # type: ignore[arg-type]
    return ResultLog(_entry(), 1, in_timestamps=False, sink=sink, is_kept=False)


def _page(at: int) -> Page:
    rows = {"_ts": [at], "_w": [1], "c0": pa.array([at], pa.int32())}
    return Page.of(_store(), pa.table(rows))


def _hand_on(log: ResultLog, lock: WholeLock) -> None:
    feed_sink(log, lock, lambda log, error: None)
    call_subscribers(log, lock)


class Life(NamedTuple):
    """What comes of the pages of one engine: after each, what it has put out."""

    counts: list[list[object]]
    pairs: list[list[object]]
    files: list[str]
    interruptions: int
    moments: int
    """How many the last page had."""


def _live(sink: Path, moments: Callable[[int], tuple[int, int]]) -> Life:
    chance, life = random.Random(7), Life([], [], [], 0, 0)
    counts: list[object] = []
    pairs: list[object] = []
    with Engine() as engine:
        engine.execute(SCRIPT.format(sink))
        engine.subscribe("counts", lambda table: counts.extend(table.to_pylist()))
        engine.subscribe("pairs", lambda table: pairs.extend(table.to_pylist()))
        for at in range(PAGES):
            rows = [(at * 5 + t, chance.randrange(4), chance.randrange(100)) for t in range(1, 6)]
            engine.push("S", rows)
            interruptions = Interruptions(*moments(at))
            interruptions.during(engine.run_until_idle)
            life.counts.append(_each_once(counts))
            life.pairs.append(sorted(_each_once(pairs), key=str))
            life.files.append(sink.read_text())
            counts.clear()
            pairs.clear()
            life = life._replace(
                interruptions=life.interruptions + interruptions.raised,
                moments=interruptions.passed,
            )
        return life


def _each_once(rows: list[object]) -> list[object]:
    """A callback that was interrupted gets its page again."""
    return [row for at, row in enumerate(rows) if row not in rows[:at]]


@pytest.mark.slow
@pytest.mark.usefixtures("no_search_for_garbage")
def test_interruptions_at_any_moment_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    never = (10**9, 10**9)
    calm = _live(tmp_path / "calm.csv", lambda at: never)
    stride = calm.moments // PAGES + 1
    storm = _live(
        tmp_path / "storm.csv", lambda at: (1 + at * stride, 1 + at * stride + at**2 % 997)
    )
    assert storm.interruptions > PAGES / 2
    assert storm[:3] == calm[:3]

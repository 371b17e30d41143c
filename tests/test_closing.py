"""An engine ends in bounded time, whoever is at work, and says who was."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millpond import Engine
from millpond.background import BackgroundThreads
from millpond.errors import MillpondError, StateError
from millpond.server.serve import ServeOptions, make_server, make_service
from millpond.settings import Settings
from tests.patience import PATIENCE_SECONDS
from tests.server.serving import free_port

SCRIPT = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"


def started(engine: Engine) -> None:
    engine.start()
    engine.push("S", [(1, 1), (2, 2)])
    engine.advance("S", 5)


def within(seconds, work):
    """Does something that must be over by then; a limit for a machine that does nothing else."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it hangs"


def test_a_writer_beside_the_loop_is_joined_without_the_lock(monkeypatch):
    """When it has written it wants the lock: whoever closes must not hold it meanwhile."""
    engine = Engine()
    engine.execute(SCRIPT)
    writers, is_joined, got = engine.deliveries._writers, threading.Event(), []
    join = writers.close

    def close(until: float) -> bool:
        is_joined.set()
        return join(until)

    def written(_: object) -> None:
        assert is_joined.wait(PATIENCE_SECONDS)
        with engine.lock:
            got.append("the lock")

    monkeypatch.setattr(writers, "close", close)
    is_watched = threading.Event()
    writing = writers.submit(lambda: is_watched.wait(PATIENCE_SECONDS) and None)
    writing.add_done_callback(written)
    is_watched.set()
    within(PATIENCE_SECONDS, engine.close)
    assert got == ["the lock"]


def test_who_works_while_another_thread_closes_just_ends(monkeypatch):
    engine = Engine()
    engine.execute(SCRIPT + "CREATE QUERY q AS SELECT a, count(*) AS n FROM S [RANGE 5] GROUP BY a")
    plan = engine.runtime.plan

    def closed_before() -> object:
        closing = threading.Thread(target=engine.close)
        closing.start()
        closing.join()
        return plan()

    monkeypatch.setattr(engine.runtime, "plan", closed_before)
    engine.push("S", [(1, 1)])
    engine.run_until_idle()
    with pytest.raises(StateError, match="the engine is closed"):
        engine.run_until_idle()


def test_start_in_a_callback_is_refused():
    with Engine() as engine:
        engine.execute(SCRIPT + "CREATE QUERY q AS SELECT a FROM S;")
        said = []

        def callback(table: pa.Table) -> None:
            with pytest.raises(StateError, match="waits for this callback") as raised:
                engine.start()
            said.append(str(raised.value))

        engine.subscribe("q", callback)
        engine.push("S", [(1, 1)])
        within(PATIENCE_SECONDS, engine.finish)
        assert len(said) == 1
        engine.start()
        engine.stop()


def test_close_beside_a_callback_that_waits_says_so(caplog):
    engine = Engine()
    engine.execute(SCRIPT + "CREATE QUERY q AS SELECT a FROM S;")
    began, release = threading.Event(), threading.Event()

    def callback(table: pa.Table) -> None:
        began.set()
        release.wait(PATIENCE_SECONDS)

    engine.subscribe("q", callback)
    started(engine)
    assert began.wait(PATIENCE_SECONDS)
    with caplog.at_level(logging.WARNING, "millpond"):
        within(PATIENCE_SECONDS, lambda: engine.close(seconds=0.1))
    release.set()
    assert "closed after 0.1 seconds while still at work: the loop" in caplog.text


def beside(engine: Engine, callback) -> threading.Thread:
    """Runs an engine in another thread, whose results are handed to a callback."""
    engine.execute(SCRIPT + "CREATE QUERY q AS SELECT a FROM S;")
    engine.subscribe("q", callback)
    engine.push("S", [(1, 1), (2, 2)])
    engine.advance("S", 5)
    thread = threading.Thread(target=engine.run_until_idle, daemon=True)
    thread.start()
    return thread


def test_close_waits_for_a_callback_of_another_thread():
    engine = Engine()
    began, is_waited_for, over = threading.Event(), threading.Event(), []

    def callback(table: pa.Table) -> None:
        began.set()
        assert is_waited_for.wait(PATIENCE_SECONDS)
        over.append(table.num_rows)

    running = beside(engine, callback)
    assert began.wait(PATIENCE_SECONDS)
    rested = engine.deliveries._has_rested
    wait_for = rested.wait_for

    def waiting(is_so, seconds):
        is_waited_for.set()
        return wait_for(is_so, seconds)

    rested.wait_for = waiting
    engine.close(seconds=PATIENCE_SECONDS)
    assert over == [2]
    running.join(PATIENCE_SECONDS)


def test_close_says_whose_callback_of_another_thread_is_not_over(caplog):
    engine = Engine()
    began, release = threading.Event(), threading.Event()

    def callback(table: pa.Table) -> None:
        began.set()
        release.wait(PATIENCE_SECONDS)

    running = beside(engine, callback)
    assert began.wait(PATIENCE_SECONDS)
    with caplog.at_level(logging.WARNING, "millpond"):
        within(PATIENCE_SECONDS, lambda: engine.close(seconds=0.1))
    release.set()
    assert "while still at work: a callback of query q" in caplog.text
    running.join(PATIENCE_SECONDS)


def test_a_callback_of_another_thread_closes_the_engine(caplog):
    engine = Engine()
    closed = []

    def callback(table: pa.Table) -> None:
        engine.close(seconds=PATIENCE_SECONDS)
        closed.append(engine.is_closed)

    with caplog.at_level(logging.WARNING, "millpond"):
        within(PATIENCE_SECONDS / 2, lambda: beside(engine, callback).join(PATIENCE_SECONDS))
    assert closed == [True]
    assert "still at work" not in caplog.text


def test_close_beside_a_function_that_sleeps_says_whose(tmp_path, caplog):
    began, release = tmp_path / "began", tmp_path / "release"

    def wait_for(values):
        began.touch()
        while not release.exists():
            time.sleep(0.01)
        return values

    engine = Engine()
    engine.register_function("waiting", wait_for, ["INT"], "INT")
    engine.execute(SCRIPT + "CREATE QUERY q AS SELECT waiting(a) AS a FROM S;")
    started(engine)
    while not began.exists():
        time.sleep(0.01)
    with caplog.at_level(logging.WARNING, "millpond"):
        within(PATIENCE_SECONDS, lambda: engine.close(seconds=0.1))
    release.touch()
    assert "while still at work: " in caplog.text
    with pytest.raises(StateError, match="is closed"):
        engine.push("S", [(9, 9)])


def test_a_pipe_that_nobody_reads_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with Engine(directory=tmp_path) as engine:
        engine.execute(SCRIPT)
        with pytest.raises(MillpondError, match=r"nobody reads the pipe .*; start that first"):
            engine.execute("CREATE QUERY q AS SELECT a FROM S INTO csv('pipe')")


def test_a_pipe_whose_reader_reads_gets_everything(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)

    def reader() -> None:
        with os.fdopen(reading) as pipe:
            read.extend(pipe.readlines())

    with Engine(directory=tmp_path) as engine:
        engine.execute(SCRIPT + "CREATE QUERY q AS SELECT a FROM S INTO csv('pipe')")
        thread = threading.Thread(target=reader)
        thread.start()
        engine.push("S", [(t, t) for t in range(20_000)])  # more than a pipe holds
        engine.finish()
    thread.join()
    assert len(read) == 20_001


def test_a_pipe_whose_reader_reads_no_more_does_not_hold_close_up(tmp_path, caplog):
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        engine = Engine(directory=tmp_path)
        engine.execute(SCRIPT + "CREATE QUERY q AS SELECT a FROM S INTO csv('pipe')")
        engine.start()
        engine.push("S", [(t, t) for t in range(20_000)])
        engine.advance("S", 20_000)
        log = engine.deliveries.of("q")
        while log.fed_by is None:
            time.sleep(0.01)
        with caplog.at_level(logging.WARNING, "millpond"):
            within(PATIENCE_SECONDS, lambda: engine.close(seconds=0.1))
        assert "the sink of query q INTO csv('pipe'" in caplog.text
        while log.fed_by is not None:  # its thread ends too
            time.sleep(0.01)
    finally:
        os.close(reading)


def test_ctrl_c_ends_the_wait_for_the_reader_of_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with Engine(directory=tmp_path) as engine:
        engine.execute(SCRIPT + "CREATE QUERY q AS SELECT a FROM S INTO csv('pipe')")
        engine.push("S", [(t, t) for t in range(20_000)])
        log = engine.deliveries.of("q")

        def interrupt() -> None:
            while log.fed_by is None:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            engine.finish()
        thread.join()
        [failure] = engine.failures()
        assert "bytes of the last results were not written" in str(failure)
    os.close(reading)


def test_close_frees_the_rest_when_the_loop_has_failed(tmp_path):
    engine = Engine(store=tmp_path / "store")
    engine.execute(SCRIPT)

    def fail(*_: object) -> bool:
        raise RuntimeError("broken")

    engine.operation._turn = fail
    engine.operation.start()
    while engine.operation.is_started:
        time.sleep(0.001)
    engine.operation._background = threading.current_thread()  # as if it ended just now
    with pytest.raises(RuntimeError, match="broken"):
        engine.close()
    Engine(store=tmp_path / "store").close()  # nobody has it any more


STALLED = """
CREATE STREAM S (a BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(100000);
CREATE QUERY q AS SELECT a FROM S INTO csv('{}');
"""


def _stalled(tmp_path, *command):
    """A process that writes to a pipe whose reader has stopped."""
    pipe, script = tmp_path / "pipe", tmp_path / "s.cql"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    script.write_text(STALLED.format(pipe))
    process = subprocess.Popen(
        [sys.executable, "-m", "millpond", command[0], str(script), *command[1:]],
        stdout=subprocess.DEVNULL,
    )
    select.select([reading], (), (), PATIENCE_SECONDS)
    return process, reading


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "times", "codes"),
    [
        ("run", 1, {-signal.SIGTERM}),
        ("serve", 1, {-signal.SIGTERM, 143}),  # a busy machine may not close all in time
        ("serve", 2, {143}),
    ],
)
def test_a_process_that_is_told_to_end_does(tmp_path, command, times, codes):
    port = ("--port", str(free_port())) if command == "serve" else ()
    process, reading = _stalled(tmp_path, command, *port)
    try:
        while port and not _listens(int(port[1])):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        if times > 1:
            while _listens(int(port[1])):  # until it has heard the first
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) in codes
    finally:
        process.kill()
        os.close(reading)


@pytest.mark.parametrize("owns_process", [False, True])
def test_only_a_server_whose_process_it_is_ends_that(monkeypatch, owns_process):
    ended = []
    monkeypatch.setattr("millpond.server.serve.os._exit", ended.append)
    monkeypatch.setattr("millpond.server.serve.END_SECONDS", PATIENCE_SECONDS)
    options = ServeOptions(port=free_port())
    service = make_service(Settings(), options)
    server = make_server(service, options, owns_process)
    timers = threading.active_count()
    server.handle_exit(signal.SIGTERM, None)
    assert threading.active_count() == timers + owns_process
    server.handle_exit(signal.SIGTERM, None)
    assert ended == [128 + signal.SIGTERM] * owns_process
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
    service.engine.close()


def test_threads_run_what_is_submitted_and_end():
    threads, done = BackgroundThreads(2, "test"), []
    both = threading.Barrier(2)
    futures = [threads.submit(lambda: done.append(both.wait(PATIENCE_SECONDS))) for _ in range(2)]
    for each in futures:
        each.result(60)
    failing = threads.submit(lambda: pc.divide(1, 0))
    with pytest.raises(pa.ArrowInvalid):
        failing.result(60)
    assert len(done) == 2
    assert threads.close(time.monotonic() + PATIENCE_SECONDS)
    release = threading.Event()
    threads = BackgroundThreads(1, "test")
    waiting, never = (
        threads.submit(lambda: release.wait(PATIENCE_SECONDS) and None),
        threads.submit(release.set),
    )
    assert not threads.close(time.monotonic())
    release.set()
    waiting.result(60)
    assert never.cancelled()

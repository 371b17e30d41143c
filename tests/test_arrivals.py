"""Sources deliver when their data is there, whatever the operators are busy with."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from millpond import Engine
from millpond.errors import InputError
from millpond.spark.operators.running import RunningOperator
from tests.cluster.standalone import wait_until

STREAM = "CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('s.csv');"
QUERY = "CREATE QUERY q AS SELECT a FROM S;"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text("a,ts\n" + "".join(f"{n},{n}\n" for n in range(20)))
    return tmp_path


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No step is executed before this is set."""
    may_go, execute = threading.Event(), RunningOperator.execute

    def waits(running: RunningOperator, step: object) -> object:
        assert may_go.wait(60)
        return execute(running, step)  # type: ignore[arg-type]

    monkeypatch.setattr(RunningOperator, "execute", waits)
    yield may_go
    may_go.set()


def run(engine: Engine, how: str) -> Callable[[], None]:
    """Runs it beside this thread; what waits for the end of that."""
    if how == "start":
        engine.start()
        return lambda: (engine.stop(), engine.finish())[0]
    thread = threading.Thread(target=getattr(engine, how))
    thread.start()
    return lambda: (thread.join(), engine.finish())[0]


@pytest.mark.parametrize("how", ["run_sources", "finish", "start"])
def test_a_backlog_builds_up_while_steps_take_their_time(
    folder: Path, steps: threading.Event, how: str
) -> None:
    with Engine({"page_rows": 2}, directory=folder) as engine:
        engine.execute(STREAM + QUERY)
        ended = run(engine, how)
        wait_until(lambda: engine.inputs.streams["s"].arrived == 20, 30)
        with engine.lock:
            assert engine.runtime.backlog.rows == 20
            assert engine.results("q").num_rows == 0
        steps.set()
        ended()
        assert engine.results("q")["a"].to_pylist() == list(range(20))
        assert engine.runtime.backlog.bytes == 0


def test_what_windows_retain_is_no_backlog(folder: Path) -> None:
    with Engine(directory=folder) as engine:
        engine.execute(STREAM + "CREATE QUERY n AS SELECT count(*) AS n FROM S [RANGE 100]")
        engine.run_sources(rows=15)
        assert engine.inputs.queues["stream:s"].rows == 15
        assert engine.runtime.backlog.rows == 1  # its time may go on


def test_a_silent_pipe_holds_up_nobody_else(folder: Path) -> None:
    os.mkfifo(folder / "pipe.csv")
    with Engine(directory=folder) as engine:
        engine.execute(STREAM + QUERY)
        engine.execute(
            "CREATE STREAM P (a INT) FROM csv('pipe.csv'); CREATE QUERY piped AS SELECT a FROM P"
        )
        engine.start()
        with (folder / "pipe.csv").open("w") as pipe:
            wait_until(lambda: engine.result_count("q") == 20, 30)
            engine.run_until_idle()  # a silent source is nothing to wait for
            pipe.write("7\n8\n")
            pipe.flush()
            wait_until(lambda: engine.inputs.streams["p"].arrived == 2, 30)
        engine.stop()
        engine.finish()
        assert engine.results("piped")["a"].to_pylist() == [7, 8]


@pytest.mark.parametrize(
    ("line", "message"),
    [("x,21", r"s\.csv, line 22, column a: 'x' is not an INT"), ("7,", "column ts is NULL")],
)
def test_what_came_before_a_fault_is_worked_on_and_then_it_is_raised(
    folder: Path, line: str, message: str
) -> None:
    with (folder / "s.csv").open("a") as file:
        file.write(line + "\n")
    with Engine({"page_rows": 1}, directory=folder) as engine:
        engine.execute(STREAM + QUERY)
        with pytest.raises(InputError, match=message):
            engine.run_sources()
        found = engine.results("q")["a"].to_pylist()
        engine.finish()
        assert found == list(range(len(found)))
        assert len(found) == max(0, engine.inputs.streams["s"].arrived - 1)  # time may go on


def test_what_was_read_ahead_is_there_for_the_next_run(folder: Path) -> None:
    with Engine({"page_rows": 8}, directory=folder) as engine:
        engine.execute(STREAM + QUERY)
        for rows in (3, 4, 5):
            engine.run_sources(rows=rows)
        assert engine.inputs.streams["s"].arrived == 12
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == list(range(20))

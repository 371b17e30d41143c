"""Sources deliver when their data is there, whatever the operators are busy with."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from millpond import Engine
from millpond.errors import InputError
from millpond.execution.executor import Executors
from millpond.intake.inputs import Report
from millpond.intake.source_reading import SourceReading
from millpond.intake.taking import Taking
from tests.patience import PATIENCE_SECONDS, wait_until

STREAM = "CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('s.csv');"
QUERY = "CREATE QUERY q AS SELECT a FROM S;"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text("a,ts\n" + "".join(f"{n},{n}\n" for n in range(20)))
    return tmp_path


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No step is executed before this is set."""
    may_go, execute = threading.Event(), Executors.execute

    def waits(executors: Executors, step: object) -> object:
        assert may_go.wait(PATIENCE_SECONDS)
        return execute(executors, step)  # type: ignore[arg-type]

    monkeypatch.setattr(Executors, "execute", waits)
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
        wait_until(lambda: engine.inputs.streams["s"].arrived == 20)
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
            wait_until(lambda: engine.result_count("q") == 20)
            engine.run_until_idle()  # a silent source is nothing to wait for
            pipe.write("7\n8\n")
            pipe.flush()
            wait_until(lambda: engine.inputs.streams["p"].arrived == 2)
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
        with pytest.raises(InputError, match=message):  # it has not ended by it
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


# -- several files at once -----------------------------------------------------------------------

PAIR = "CREATE QUERY pair AS SELECT A.ts, B.ts AS other FROM A [NOW], B [NOW] WHERE A.ts = B.ts;"


def declare(engine: Engine, folder: Path, **times: Iterable[int]) -> None:
    """A stream of each name from a file with these times, and a query over all."""
    for name, listed in times.items():
        (folder / f"{name}.csv").write_text("ts\n" + "".join(f"{ts}\n" for ts in listed))
        engine.execute(
            f"CREATE STREAM {name} (ts BIGINT) TIMESTAMP BY ts DELAY 3 FROM csv('{name}.csv');"
            f"CREATE QUERY q{name} AS SELECT ts FROM {name};"
        )


class Watch:
    """Sees which pages are read, and how many at a time, and in which order they are taken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[str] = []
        self.most_at_once = 0
        self.taken: list[tuple[str, int]] = []
        self.is_slow = False
        self.fault: tuple[str, int] | None = None
        """The source of which a page cannot be read, and which page that is."""
        self._under_way = 0
        self._lock = threading.Lock()
        read, take = SourceReading.read, Taking.take

        def reads(reading: SourceReading) -> None:
            with self._lock:
                self.read.append(reading.name)
                self._under_way += 1
                self.most_at_once = max(self.most_at_once, self._under_way)
                is_torn = (reading.name, self.read.count(reading.name) - 1) == self.fault
            if self.is_slow:
                wait_until(lambda: self.most_at_once > 1)
                time.sleep(0.05)  # in which nobody else is to begin
            if is_torn:
                raise InputError(f"{reading.name} is torn")
            read(reading)
            with self._lock:
                self._under_way -= 1

        def takes(taking: Taking, reading: SourceReading, report: Report | None) -> None:
            self.taken.append((reading.name, reading.rows))
            take(taking, reading, report)

        monkeypatch.setattr(SourceReading, "read", reads)
        monkeypatch.setattr(Taking, "take", takes)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def test_two_files_that_go_together_are_read_at_once(tmp_path: Path, watch: Watch) -> None:
    watch.is_slow = True
    with Engine({"page_rows": 4}, directory=tmp_path) as engine:
        declare(engine, tmp_path, A=range(20), B=range(20), C=range(20))
        engine.execute(PAIR)
        engine.finish()
        assert engine.results("pair")["ts"].to_pylist() == list(range(20))
    assert watch.most_at_once == 2


def test_one_that_is_far_ahead_is_not_read_before_its_time(tmp_path: Path, watch: Watch) -> None:
    with Engine({"page_rows": 4}, directory=tmp_path) as engine:
        declare(engine, tmp_path, A=range(40), B=range(0, 4000, 100))
        engine.run_sources()
    assert watch.read[:2].count("b") == 1  # nothing is known of either
    assert watch.read.index("b", 2) >= len(range(40)) // 4


@pytest.mark.parametrize("seed", range(12))
def test_pages_are_taken_as_if_they_were_read_one_after_the_other(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng, orders, answers = random.Random(seed), [], []
    times = {
        name: sorted(rng.randrange(rng.choice((30, 90))) for _ in range(rng.randint(0, 40)))
        for name in "ABC"
    }
    limits = [rng.choice((None, rng.randint(0, 30))) for _ in range(2)]
    settings = {"page_rows": rng.randint(1, 9), "budget": rng.choice(("300 B", "1 GB"))}
    for most in (1, 2, 2, 3):
        monkeypatch.setattr("millpond.intake.arrivals.MOST_AT_ONCE", most)
        watch.taken = []
        with Engine(settings, directory=tmp_path) as engine:
            declare(engine, tmp_path, **times)
            engine.execute(PAIR)
            for rows in limits:
                engine.run_sources(rows=rows)
            engine.finish()
            answers.append([engine.results(q).to_pylist() for q in ("pair", "qA", "qB", "qC")])
        orders.append(watch.taken)
    assert orders[1:] == orders[:1] * 3
    assert answers[1:] == answers[:1] * 3


def test_a_fault_in_what_is_read_ahead_is_raised_in_its_turn(tmp_path: Path, watch: Watch) -> None:
    watch.fault = ("b", 1)
    with Engine({"page_rows": 4}, directory=tmp_path) as engine:
        declare(engine, tmp_path, A=range(40), B=range(10, 50))
        with pytest.raises(InputError, match="torn"):
            engine.run_sources()
        assert watch.taken == [("a", 4), ("b", 4), ("a", 4), ("a", 4), ("a", 4)]


def test_nothing_is_read_ahead_where_there_is_no_room(
    tmp_path: Path, watch: Watch, steps: threading.Event
) -> None:
    with Engine({"page_rows": 2, "budget": "20 B"}, directory=tmp_path) as engine:
        declare(engine, tmp_path, A=range(0, 40, 2), B=range(1, 41, 2))
        ended = run(engine, "start")
        wait_until(lambda: bool(engine.inputs.held))
        with engine.lock:
            waiting = len(watch.read) - len(watch.taken)
        assert waiting == 1
        steps.set()
        ended()
        assert engine.results("qA").num_rows == engine.results("qB").num_rows == 20

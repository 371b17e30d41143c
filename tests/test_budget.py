"""What waits and what windows retain keep to the budget, nothing stalls, and no answer changes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.connectors import Progress
from millpond.errors import MillpondError, StateError
from millpond.execution.executor import Executors
from millpond.scheduling.strategy_text import driving_spark
from millpond.storage.pages import Page
from millpond.storage.store import SPILLED, Store
from tests.drawn_examples import examples
from tests.patience import PATIENCE_SECONDS, wait_until, wait_until_inside

STREAM = "CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('s.csv');"
PUSHED = "CREATE STREAM S (a INT, ts BIGINT) TIMESTAMP BY ts;"
QUERY = "CREATE QUERY q AS SELECT a FROM S;"
ROW_BYTES = 28
FOUR_ROWS = f"{4 * ROW_BYTES} B"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text("a,ts\n" + "".join(f"{n},{n}\n" for n in range(40)))
    return tmp_path


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No step is executed before this is set."""
    may_go, execute = threading.Event(), Executors.execute

    def waits(executors: Executors, step: Any) -> Any:
        assert may_go.wait(PATIENCE_SECONDS)
        return execute(executors, step)

    monkeypatch.setattr(Executors, "execute", waits)
    yield may_go
    may_go.set()


def shown(engine: Engine, what: str) -> list[dict[str, Any]]:
    return engine.execute(f"SHOW {what}")[0].to_pylist()


# Sources are held back.


def test_a_source_is_held_back_at_the_budget_and_says_so(
    folder: Path, steps: threading.Event
) -> None:
    seen: list[tuple[str, Progress]] = []
    with Engine({"page_rows": 2, "budget": FOUR_ROWS}, directory=folder) as engine:
        engine.execute(STREAM + QUERY)
        run = threading.Thread(
            target=engine.finish, args=(lambda *progress: seen.append(progress),)
        )
        run.start()
        wait_until(lambda: "s" in engine.inputs.held)
        assert engine.inputs.streams["s"].arrived == 4
        (stream,) = shown(engine, "streams")
        assert stream["detail"].endswith("held back: as much waits as the budget of 112 B allows")
        assert [name for name, progress in seen if progress.is_held] == ["S"]
        steps.set()
        run.join()
        assert engine.results("q")["a"].to_pylist() == list(range(40))
        assert engine.inputs.held == set()


JOINED = (
    STREAM
    + "CREATE STREAM T (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('t.csv');"
    + "CREATE QUERY q AS SELECT S.a FROM S [RANGE 5], T [RANGE 5] WHERE S.a = T.a;"
    + QUERY.replace(" q ", " all_of_s ")
)


@pytest.mark.parametrize("processors", [1, 3])
def test_who_is_waited_for_is_never_held_back(folder: Path, processors: int) -> None:
    """T begins behind all that the budget holds of S, and has pages of its own time only."""
    (folder / "t.csv").write_text("a,ts\n" + "".join(f"{n},{n}\n" for n in range(30, 40)))
    settings = {"page_rows": 3, "budget": "1 B", "processors": processors}
    with Engine(settings, directory=folder) as engine:
        engine.execute(JOINED)
        engine.finish()
        joined = [row["a"] for row in engine.results("q", "rows") if row["weight"] > 0]
        assert joined == list(range(30, 40))
        assert engine.results("all_of_s").num_rows == 40


def test_a_source_waits_for_a_silent_pipe_and_goes_on_when_it_speaks(folder: Path) -> None:
    os.mkfifo(folder / "t.csv")
    settings = {"page_rows": 2, "budget": FOUR_ROWS, "processors": 2}
    with Engine(settings, directory=folder) as engine:
        engine.execute(JOINED)
        engine.start()
        with (folder / "t.csv").open("w") as pipe:
            wait_until(lambda: "s" in engine.inputs.held)
            engine.run_until_idle()  # held back is nothing to wait for either
            arrived = engine.inputs.streams["s"].arrived
            assert arrived < 40
            pipe.write("a,ts\n39,39\n")
        engine.stop()
        engine.finish()
        joined = [row["a"] for row in engine.results("q", "rows") if row["weight"] > 0]
        assert joined == [39]


def test_a_held_source_is_not_taken_for_a_quiet_one(folder: Path, steps: threading.Event) -> None:
    """It would be passed over, and what it has would come too late."""
    os.mkfifo(folder / "t.csv")
    settings = {"budget": "1 B", "clock": "wall", "heartbeat_timeout": "0.1"}
    with Engine(settings, directory=folder) as engine:
        engine.execute("CREATE STREAM T (a INT, ts BIGINT) TIMESTAMP BY ts FROM csv('t.csv');")
        engine.execute(PUSHED + QUERY + "CREATE QUERY piped AS SELECT a FROM T;")
        engine.start()
        with (folder / "t.csv").open("w") as pipe:
            pipe.write("a,ts\n1,1\n2,2\n")
            pipe.flush()
            wait_until(lambda: engine.has_runtime and engine.runtime.under_way.steps)
            pipe.write("3,3\n4,4\n")
            pipe.flush()
            wait_until(lambda: "t" in engine.inputs.held)
            engine.push("S", [(1, 900)])
            time.sleep(0.3)  # longer than the timeout of a quiet one
            steps.set()
        engine.stop()
        engine.finish()
        assert engine.inputs.streams["t"].late_count == 0
        assert engine.results("piped")["a"].to_pylist() == [1, 2, 3, 4]


def test_a_run_does_not_wait_for_a_stream_that_nobody_feeds(folder: Path) -> None:
    with Engine({"page_rows": 3, "budget": FOUR_ROWS}, directory=folder) as engine:
        engine.execute(JOINED.replace(" FROM csv('t.csv')", ""))
        engine.finish()
        assert engine.results("all_of_s").num_rows == 40


# Pushes wait, or raise.


def test_a_push_waits_for_room(steps: threading.Event) -> None:
    with Engine({"budget": FOUR_ROWS, "processors": 2}) as engine:
        engine.execute(PUSHED + QUERY)
        engine.start()
        engine.push("S", [(n, n) for n in range(8)])
        done = threading.Event()
        wait_until(lambda: engine.has_runtime and engine.runtime.under_way.steps)
        pusher = threading.Thread(target=lambda: (engine.push("S", [(8, 8)]), done.set()))
        pusher.start()
        wait_until_inside(pusher, "wait")
        assert not done.is_set()
        steps.set()
        assert done.wait(PATIENCE_SECONDS)
        engine.stop()
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == list(range(9))


def test_a_push_in_a_callback_that_finds_no_room_is_an_error() -> None:
    raised: list[StateError] = []
    with Engine({"budget": FOUR_ROWS, "step_rows": 1}) as engine:
        engine.execute(PUSHED + QUERY)

        def callback(_: object) -> None:
            if raised:
                return
            with pytest.raises(StateError) as caught:
                engine.push("S", [(99, 99)])
            raised.append(caught.value)

        engine.subscribe("q", callback)
        engine.push("S", [(n, n) for n in range(20)])
        engine.finish()
        assert "waits for this callback; push from another thread, or SET budget" in str(raised[0])
        assert engine.results("q").num_rows == 20


def test_a_program_of_one_thread_may_push_more_than_the_budget() -> None:
    with Engine({"budget": FOUR_ROWS}) as engine:
        engine.execute(PUSHED + QUERY)
        engine.execute("CREATE STREAM T (ts BIGINT) TIMESTAMP BY ts;")
        engine.execute("CREATE QUERY pairs AS SELECT S.a FROM S [RANGE 3], T [RANGE 3];")
        for n in range(0, 40, 8):
            engine.push("S", [(n + i, n + i) for i in range(8)])
        assert engine.result_count("q") > 0  # pushing has worked
        engine.push("T", [(20,)])
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == list(range(40))


# Pages are spilled.


def test_what_is_pushed_finds_room_while_nobody_works() -> None:
    """Windows hold most of the budget, and as much may wait: both together are more than it."""
    with Engine({"budget": "100 KB"}) as engine:
        engine.execute(PUSHED)
        engine.execute("CREATE QUERY n AS SELECT count(*) AS n FROM S [RANGE 1000000]")
        for first in range(0, 6_000, 500):
            engine.push("S", [(n, n) for n in range(first, first + 500)])
            if first < 3_000:
                engine.run_until_idle()
            pushed = 500 * 40
            assert engine.runtime.backlog.memory_bytes <= engine.ground.budget.limit_bytes + pushed
        engine.finish()
        assert engine.results("n").num_rows > 0


@pytest.mark.parametrize("driver_rows", [50_000, 0])
@pytest.mark.parametrize("durable", [False, True])
def test_windows_that_memory_has_no_room_for_are_read_from_disk(
    spark: Any, tmp_path: Path, driver_rows: int, durable: bool
) -> None:
    answers = []
    for budget in ("1 GB", "1 KB"):
        store = tmp_path / budget if durable else "memory"
        settings = {"budget": budget, "driver_rows": driver_rows, "store": str(store)}
        with Engine(settings, spark) as engine:
            engine.execute(PUSHED)
            engine.execute("CREATE QUERY n AS SELECT a, count(*) AS n FROM S [RANGE 30] GROUP BY a")
            for first in range(0, 120, 40):
                engine.push("S", [(n % 3, n) for n in range(first, first + 40)])
                engine.run_until_idle()
            spilled = sum(queue["spilled bytes"] for queue in shown(engine, "queues"))
            assert (spilled > 0) == (budget == "1 KB")
            assert engine.runtime.backlog.memory_bytes <= engine.ground.budget.limit_bytes
            engine.finish()
            answers.append(sorted(map(str, engine.results("n").to_pylist())))
    assert answers[0] == answers[1]


def test_queries_fail_aloud_whose_windows_find_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Store) -> str:
        raise OSError(28, "No space left on device")

    with Engine({"budget": "1 KB"}) as engine:
        engine.execute(PUSHED + QUERY)
        engine.execute("CREATE QUERY n AS SELECT count(*) AS n FROM S [RANGE 1000]")
        monkeypatch.setattr(Store, "new_spilled_name", full)
        message = "query n: what windows retain of stream s is more than the budget of 1 KB allows"
        engine.push("S", [(i, i) for i in range(80)])
        engine.advance("S", 80)
        with pytest.raises(MillpondError, match=message):
            engine.run_until_idle()
        assert [failure.query for failure in engine.failures()] == ["n"]
        engine.finish()
        assert engine.results("q").num_rows == 80


@pytest.mark.parametrize("driver_rows", [50_000, 0])
def test_what_is_kept_by_key_goes_to_disk_when_memory_is_short(
    spark: Any, driver_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millpond.facade.room.LOOK_SECONDS", 0.0)
    answers = []
    for budget in ("1 GB", "1 KB"):
        with Engine({"budget": budget, "driver_rows": driver_rows}, spark) as engine:
            engine.execute(PUSHED + "CREATE QUERY n AS SELECT a, count(*) AS n FROM S GROUP BY a")
            for first in range(0, 400, 100):
                engine.push("S", [(n % 150, n) for n in range(first, first + 100)])
                engine.run_until_idle()
            states = [running.state for running in engine.runtime.running.values()]
            names = {name for state in states if state is not None for name in state.names}
            assert engine.runtime.state_bytes() > 1_000
            assert any(name.startswith(SPILLED) for name in names) == (budget == "1 KB")
            engine.finish()
            answers.append(sorted(map(str, engine.results("n").to_pylist())))
    assert answers[0] == answers[1]


def test_others_may_push_while_pages_are_written_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    is_writing, may_go, spill = threading.Event(), threading.Event(), Page.spill

    def slow(self: Page) -> None:
        is_writing.set()
        assert may_go.wait(PATIENCE_SECONDS)
        spill(self)

    monkeypatch.setattr(Page, "spill", slow)
    with Engine({"budget": "1 KB"}) as engine:
        engine.execute(PUSHED + "CREATE STREAM T (a INT, ts BIGINT) TIMESTAMP BY ts;")
        engine.execute("CREATE QUERY n AS SELECT count(*) AS n FROM S [RANGE 1000]")
        engine.execute("CREATE QUERY u AS SELECT a FROM T")
        engine.start()
        engine.push("S", [(i, i) for i in range(80)])
        engine.advance("S", 80)
        assert is_writing.wait(PATIENCE_SECONDS)
        engine.push("T", [(1, 1)])  # would wait for ever if the lock were held
        engine.execute("SHOW QUEUES")
        may_go.set()
        engine.stop()
        engine.finish()
        assert (engine.results("n").num_rows > 0, engine.results("u").num_rows) == (True, 1)


# And no answer changes.

SCRIPT = """
CREATE STREAM R (n BIGINT, ts BIGINT) TIMESTAMP BY ts FROM rate(1000, rows = 40);
CREATE STREAM B (k BIGINT, ts BIGINT) TIMESTAMP BY ts
  FROM burst('poisson', rate = 1000, rows = 40, keys = 3);
CREATE QUERY few AS SELECT n FROM R WHERE n % 5 = 0;
CREATE QUERY counts AS SELECT k, count(*) AS c FROM B [RANGE 9000] GROUP BY k;
CREATE QUERY pairs AS SELECT n, k FROM R [RANGE 4000], B [RANGE 2000] WHERE n % 3 = k;
"""
_expected: list[list[str]] = []


def answers(settings: dict[str, Any]) -> list[list[str]]:
    with Engine(settings) as engine:
        engine.execute(SCRIPT)
        engine.finish()
        return [
            sorted(map(str, engine.results(query).to_pylist()))
            for query in ("few", "counts", "pairs")
        ]


@pytest.mark.slow
@examples(10)
@given(
    st.fixed_dictionaries(
        {
            "pace": st.sampled_from(["fast", "wall"]),
            "budget": st.sampled_from(["1 B", "500 B", "3 KB", "1 GB"]),
            "processors": st.integers(1, 4),
            "strategy": st.sampled_from(driving_spark()),
            "page_rows": st.sampled_from([4, 100]),
            "step_rows": st.sampled_from([3, 500_000]),
        }
    )
)
def test_answers_depend_on_neither_pace_budget_processors_nor_strategy(
    settings: dict[str, Any],
) -> None:
    if not _expected:
        _expected.extend(answers({}))
        assert all(_expected)
    assert answers(settings) == _expected

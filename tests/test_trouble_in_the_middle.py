"""A store that fails or is damaged in the midst of something: nothing is lost, doubled or left."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.delivery.deliveries import Deliveries
from millpond.errors import DamageError, MillpondError, StoreError
from millpond.execution import runtime as runtimes
from millpond.execution.executor import Executors
from millpond.execution.under_way import UnderWay
from millpond.execution.unit_steps import UnitStep
from millpond.facade.repair import repair
from millpond.storage import state_cache
from millpond.storage.log import framing_of
from millpond.storage.members import Members
from millpond.storage.pages import Page
from millpond.storage.store import Store
from tests.patience import PATIENCE_SECONDS

STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
QUERY = "CREATE QUERY q AS SELECT a FROM S;"


def full() -> StoreError:
    return StoreError("store: x: No space left on device", errno.ENOSPC)


def pushed(engine: Engine, *times: int) -> None:
    """One tuple a step."""
    for time in times:
        engine.push("S", [{"t": time, "a": time}])
        engine.advance("S", time)
        engine.run_until_idle()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files the store still fails to read."""
    left, read = [0], Store._read

    def fails(store: Store, name: str) -> pa.Table:
        if left[0]:
            left[0] -= 1
            raise StoreError("store: x: Too many open files", errno.EMFILE)
        return read(store, name)

    monkeypatch.setattr(Store, "_read", fails)
    return left


@pytest.fixture
def resting_sinks(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Sinks take nothing until that is undone."""
    with monkeypatch.context() as patch:
        patch.setattr(Deliveries, "_feed", lambda self, log, told: None)
        yield patch


def test_of_two_steps_under_way_the_second_does_not_pass_the_first_that_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtimes, "AT_ONCE_SECONDS", -1.0)
    steps: list[UnitStep] = []
    lock, is_done = threading.Lock(), threading.Event()
    execute, perform = UnitStep.execute, UnderWay._execute

    def fails_first(step: UnitStep, executors: Executors) -> None:
        with lock:
            steps.append(step)
            is_first = len(steps) == 1
        if is_first:
            assert is_done.wait(PATIENCE_SECONDS)
            step.steps[0].error = full()
            raise step.steps[0].error
        execute(step, executors)

    def notices(under_way: UnderWay, step: UnitStep, tag: str) -> None:
        perform(under_way, step, tag)
        if len(steps) > 1 and step is steps[1]:
            is_done.set()

    monkeypatch.setattr(UnitStep, "execute", fails_first)
    monkeypatch.setattr(UnderWay, "_execute", notices)
    with Engine({"processors": 2, "step_rows": 50}) as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT a FROM S WHERE a >= 0")
        for operator in list(engine.graph.operators):
            engine.execute(f"ALTER PLAN QUEUE AFTER {operator}")
        engine.push("S", [{"t": t, "a": t} for t in range(400)])
        engine.finish()
        assert engine.results("q")["a"].to_pylist() == list(range(400))


def test_results_that_cannot_be_merged_now_stay_as_they_are(
    tmp_path: Path, unread: list[int]
) -> None:
    with Engine(store=tmp_path) as engine:
        engine.execute(STREAM + QUERY)
        pushed(engine, *range(16))
    with Engine(store=tmp_path) as engine:
        unread[0] = 2
        pushed(engine, *range(16, 20))
        assert unread[0] == 0
        assert engine.results("q")["a"].to_pylist() == list(range(20))
    with Engine(store=tmp_path) as engine:
        assert engine.results("q")["a"].to_pylist() == list(range(20))


def test_late_tuples_that_cannot_be_merged_now_are_not_taken_twice(
    tmp_path: Path, unread: list[int]
) -> None:
    with Engine(store=tmp_path) as engine:
        engine.execute(STREAM + QUERY)
        pushed(engine, 100)
        for time in range(16):
            engine.push("S", [{"t": time, "a": time}])
    with Engine(store=tmp_path) as engine:
        unread[0] = 1
        for _ in range(2):
            engine.push("S", [{"t": 5, "a": 5}, {"t": 200, "a": 7}], key="k")
        engine.advance("S", 300)
        engine.run_until_idle()
        assert unread[0] == 0
        assert engine.results("q")["a"].to_pylist() == [100, 7]
        assert engine.late("S").num_rows == 17


def test_a_restart_whose_answer_cannot_be_read_has_not_happened(tmp_path: Path) -> None:
    text = "SELECT a, sum(a * 4611686018427387904) AS s FROM S GROUP BY a"
    with Engine(store=tmp_path) as engine:
        engine.execute(f"{STREAM} CREATE QUERY q AS {text}; CREATE QUERY r AS SELECT a FROM S")
        engine.push("S", [{"t": 1, "a": -1}])
        engine.advance("S", 1)
        engine.run_until_idle()
        (name,) = engine.deliveries.of("q").kept[0].names
        with pytest.raises(MillpondError, match="leaves the range"):
            pushed(engine, 5)
    flip(tmp_path / name)
    with Engine(store=tmp_path) as engine:
        with pytest.raises(DamageError, match="is damaged"):
            engine.restart("q")
        with pytest.raises(MillpondError, match="is damaged"):
            engine.execute("ALTER QUERY q ACTIVATE")
        assert [failure.query for failure in engine.failures()] == ["q"]
        pushed(engine, 6)
        engine.execute("CREATE QUERY z AS SELECT a, max(t) AS m FROM S GROUP BY a")
        pushed(engine, 7)
    with Engine(store=tmp_path) as engine:
        assert [failure.query for failure in engine.failures()] == ["q"]
        assert engine.results("z")["m"].to_pylist() == [7]


def test_a_page_that_a_sink_still_needs_stays_though_its_content_is_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resting_sinks: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millpond.delivery.results.SUM_ROWS", 5)
    settings, store = {"keep_results": "2 rows"}, tmp_path / "store"
    with Engine(settings, store=store, directory=tmp_path) as engine:
        counts = "SELECT a, count(*) AS n FROM S GROUP BY a INTO csv('out.csv')"
        engine.execute(f"{STREAM} CREATE QUERY q AS {counts}")
        pushed(engine, *range(3))
        engine.compact_log()
    with Engine(settings, store=store, directory=tmp_path) as engine:
        pushed(engine, *range(3, 12))
        resting_sinks.undo()
        engine.deliveries.has_news("q")
        pushed(engine, 20)
        assert engine.failures() == []
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert [int(line.split(",")[0]) for line in lines[1:]] == [*range(12), 20]


def test_a_sink_goes_on_behind_what_a_repair_has_lost(
    tmp_path: Path, resting_sinks: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    with Engine(store=store, directory=tmp_path) as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT a FROM S INTO csv('out.csv')")
        pushed(engine, *range(4))
        (name,) = engine.deliveries.of("q").waiting[1].names
    resting_sinks.undo()
    flip(store / name)
    assert any("results" in line for line in repair(store))
    with Engine(store=store, directory=tmp_path) as engine:
        pushed(engine, 9)
        assert engine.failures() == []
        assert engine.results("q")["a"].to_pylist() == [2, 3, 9]
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == ["2,1,2", "3,1,3", "9,1,9"]


def test_what_only_the_lost_end_of_a_log_knew_is_set_aside(tmp_path: Path) -> None:
    with Engine(store=tmp_path) as engine:
        engine.execute(STREAM + QUERY)
        pushed(engine, *range(4))
    log = tmp_path / "commits.log"
    content = bytearray(log.read_bytes())
    bounds = framing_of(bytes(content)).bounds
    content[bounds[len(bounds) // 2].start + 40] ^= 1
    log.write_bytes(content)
    before = {file.name for file in (tmp_path / "pages").iterdir()}
    repair(tmp_path)
    Engine(store=tmp_path).close()
    after = {file.name for file in (tmp_path / "pages").iterdir()}
    aside = {file.name for file in (tmp_path / "set_aside").rglob("*.parquet")}
    assert before - after == aside != set()


def test_files_that_a_frame_reads_stay_while_small_pages_are_merged() -> None:
    with Engine() as engine:
        engine.execute(STREAM + QUERY)
        pushed(engine, *range(10))
        log = engine.deliveries.of("q")
        log.lent = list(log.kept)  # as results("q", "spark") does
        paths = [path for page in log.kept for path in page.paths]
        pushed(engine, *range(10, 40))
        assert len(log.kept) < 30
        assert all(Path(path).exists() for path in paths)
        assert engine.results("q")["a"].to_pylist() == list(range(40))


def test_a_page_may_be_freed_while_it_is_spilled(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    page, new_name = Page.of(store, pa.table({"_ts": [1], "_w": [1]})), store.new_spilled_name

    def freed_meanwhile() -> str:
        page.free()
        return new_name()

    monkeypatch.setattr(store, "new_spilled_name", freed_meanwhile)
    page.spill()
    assert page.is_free
    store.close()


def test_constants_that_could_not_be_written_are_written_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, members = Store(), Members([], [])

    def fails(table: pa.Table, name: str) -> None:
        raise full()

    with monkeypatch.context() as patch:
        patch.setattr(store, "write", fails)
        with pytest.raises(StoreError):
            members.file(store)
    assert store.path(members.file(store)).exists()
    store.close()


def test_of_a_join_both_sides_are_written_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = state_cache.write_summed_parts, [0]

    def fails_now_and_then(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> object:
        calls[0] += 1
        if calls[0] % 2 == 0 and calls[0] <= 10:
            raise full()
        return write(path, schema, parts)

    monkeypatch.setattr(state_cache, "write_summed_parts", fails_now_and_then)
    with Engine(store=tmp_path) as engine:
        engine.execute(STREAM + STREAM.replace("STREAM S", "STREAM T"))
        engine.execute("CREATE QUERY j AS SELECT S.a FROM S, T WHERE S.a = T.a")
        for name in ("S", "T"):
            engine.push(name, [{"t": 1, "a": 1}])
            engine.advance(name, 1)
        for _ in range(5):
            with pytest.raises(StoreError):
                engine.run_until_idle()
        engine.run_until_idle()
        assert engine.results("j").num_rows == 1
        named = {
            n for each in engine.runtime.running.values() if each.state for n in each.state.names
        }
        assert {f"state/{file.name}" for file in (tmp_path / "state").iterdir()} == named

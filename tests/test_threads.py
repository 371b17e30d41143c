"""Many threads and callbacks, one engine: nobody waits for a step, and failures stay their own."""

from __future__ import annotations

import threading

import pytest

from millpond import Engine
from millpond.errors import MillpondError, StateError
from millpond.execution.executor import Executors
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
EVEN = "CREATE QUERY even AS SELECT a FROM S WHERE a % 2 = 0;"
COUNTS = "CREATE QUERY counts AS SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a;"


@pytest.fixture
def engine(spark):
    with Engine(spark=spark, settings={"processors": 2}) as made:
        made.execute(STREAM)
        yield made


def values(engine, query="even"):
    return [row["a"] for row in engine.results(query, "rows")]


class Held:
    """Holds the steps of some operators up until it is told to let them go."""

    def __init__(self, monkeypatch, label):
        self.began, self.release = threading.Event(), threading.Event()
        execute = Executors.execute

        def held(executors, step):
            if label in step.running.operator.label():
                self.began.set()
                assert self.release.wait(PATIENCE_SECONDS)
            return execute(executors, step)

        monkeypatch.setattr(Executors, "execute", held)


def failing(monkeypatch, label, error):
    execute = Executors.execute

    def fails(executors, step):
        if label in step.running.operator.label():
            raise error
        return execute(executors, step)

    monkeypatch.setattr(Executors, "execute", fails)


def test_pushes_from_many_threads_all_arrive(engine):
    engine.execute("CREATE STREAM T (a INT); CREATE QUERY all_of_t AS SELECT a FROM T [NOW];")
    engine.start()
    threads = [
        threading.Thread(target=lambda n=n: [engine.push("T", [(n * 100 + i,)]) for i in range(20)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.stop()
    engine.finish()
    found = [row["a"] for row in engine.results("all_of_t", "rows") if row["weight"] > 0]
    assert sorted(found) == sorted(n * 100 + i for n in range(4) for i in range(20))


def test_the_background_works_as_pushes_come(engine):
    engine.execute(EVEN)
    seen = threading.Event()
    engine.subscribe("even", lambda table: seen.set())
    engine.start()
    engine.push("S", [(1, 2), (2, 3), (5, 5)])
    assert seen.wait(PATIENCE_SECONDS)
    engine.run_until_idle()  # waits for the loop in the background
    assert values(engine) == [2]
    with pytest.raises(StateError, match="runs already"):
        engine.start()
    engine.stop()
    engine.stop()


def test_a_push_does_not_wait_for_a_step(engine, monkeypatch):
    engine.execute(EVEN)
    held = Held(monkeypatch, "Output even")
    engine.push("S", [(1, 2), (3, 4)])
    engine.start()
    assert held.began.wait(PATIENCE_SECONDS)
    engine.push("S", [(5, 6)])
    engine.advance("S", 6)
    engine.execute("CREATE QUERY more AS SELECT a FROM S")
    assert engine.results("even").num_rows == 0
    held.release.set()
    engine.stop()
    assert values(engine) == [2, 4, 6]


def test_several_steps_run_at_once(engine, monkeypatch):
    engine.execute(EVEN + COUNTS)
    together, execute = threading.Barrier(2, timeout=PATIENCE_SECONDS), Executors.execute

    def meets(executors, step):
        if step.running.operator.label().startswith(("Output even", "Aggregate")):
            together.wait()
        return execute(executors, step)

    monkeypatch.setattr(Executors, "execute", meets)
    engine.push("S", [(1, 2)])
    engine.finish()
    assert values(engine) == [2]


def test_callbacks_may_push_register_and_drop(engine):
    engine.execute(EVEN)
    seen = []

    def callback(table):
        seen.extend(table["a"].to_pylist())
        if len(seen) == 1:
            engine.push("S", [(10, 8)])
            engine.execute(COUNTS)
            engine.advance("S", 10)
        elif 8 in seen:
            engine.drop("even")

    engine.subscribe("even", callback)
    engine.push("S", [(1, 2), (2, 3)])
    engine.run_until_idle()
    assert seen == [2, 8]
    engine.push("S", [(11, 8), (20, 8)])
    engine.finish()
    assert seen == [2, 8]
    assert engine.results("counts").num_rows > 0


def test_a_callback_does_not_wait_for_the_loop_that_waits_for_it(engine):
    engine.execute(EVEN)
    errors = []

    def callback(table):
        with pytest.raises(StateError, match="waits for this callback") as caught:
            engine.run_until_idle()
        errors.append(caught.value)

    engine.subscribe("even", callback)
    engine.push("S", [(1, 2)])
    engine.finish()
    assert len(errors) == 1


def test_a_callback_may_close_the_engine(spark):
    engine = Engine(spark=spark)
    engine.execute(STREAM + EVEN + COUNTS)
    engine.subscribe("even", lambda table: engine.close())
    engine.push("S", [(n, n) for n in range(1, 9)])
    engine.finish()
    with pytest.raises(StateError, match="closed"):
        engine.push("S", [(9, 9)])


def test_another_thread_may_drop_or_close_while_steps_run(spark, monkeypatch):
    engine = Engine(spark=spark, settings={"processors": 2})
    engine.execute(STREAM + EVEN + COUNTS)
    held = Held(monkeypatch, "Aggregate")
    engine.push("S", [(n, n) for n in range(1, 9)])
    engine.start()
    assert held.began.wait(PATIENCE_SECONDS)
    engine.drop("counts")
    held.release.set()
    engine.run_until_idle()
    assert values(engine) == [2, 4, 6]
    engine.close()


def test_any_failure_of_a_step_fails_its_queries_and_nobody_else(engine, monkeypatch):
    engine.execute(EVEN + COUNTS)
    failing(monkeypatch, "Aggregate", OSError(28, "No space left on device"))
    engine.push("S", [(1, 2), (2, 3)])
    with pytest.raises(MillpondError, match=r"query counts, Aggregate .*No space left on device"):
        engine.finish()
    assert values(engine) == [2]
    (failure,) = engine.failures()
    assert (failure.query, failure.after < failure.until) == ("counts", True)
    monkeypatch.undo()


def test_a_failed_query_can_be_restarted_from_now(engine, monkeypatch):
    engine.execute(EVEN + COUNTS)
    failing(monkeypatch, "Aggregate", RuntimeError("a bug"))
    engine.push("S", [(1, 2)])
    engine.advance("S", 1)
    with pytest.raises(MillpondError, match="a bug"):
        engine.run_until_idle()
    monkeypatch.undo()
    with pytest.raises(StateError, match="has not failed"):
        engine.restart("even")
    engine.execute("ALTER QUERY counts ACTIVATE")
    assert engine.failures() == []
    engine.push("S", [(5, 7)])
    engine.finish()
    rows = [(row["ts"], row["a"], row["n"]) for row in engine.results("counts", "rows")]
    assert rows == [(5, 7, 1), (9, 7, 1)]


def test_a_failed_query_holds_no_pages(engine, monkeypatch):
    engine.execute(COUNTS)
    failing(monkeypatch, "Aggregate", RuntimeError("a bug"))
    engine.push("S", [(1, 2)])
    with pytest.raises(MillpondError, match="a bug"):
        engine.finish()
    engine.execute("CREATE QUERY other AS SELECT a FROM S")
    engine.run_until_idle()
    assert engine.store.bytes == 0


def test_an_interrupted_run_goes_on_where_it_was(engine):
    engine.execute(EVEN + COUNTS)
    interrupted = []

    def interrupts(table):
        if not interrupted:
            interrupted.append(table)
            raise KeyboardInterrupt

    engine.subscribe("even", interrupts)
    engine.push("S", [(1, 2), (2, 4), (3, 5)])
    with pytest.raises(KeyboardInterrupt):
        engine.run_until_idle()
    engine.finish()
    assert values(engine) == [2, 4]
    counts = sum(row["weight"] for row in engine.results("counts", "rows"))
    assert counts == 0


def test_a_sink_that_cannot_write_fails_its_own_query(spark, tmp_path):
    with Engine(spark=spark, directory=tmp_path) as engine:
        engine.execute(
            STREAM + "CREATE QUERY lost AS SELECT a FROM S INTO json('/dev/full');"
            "CREATE QUERY fine AS SELECT a FROM S INTO csv('fine.csv');"
        )
        engine.push("S", [(1, 2)])
        with pytest.raises(MillpondError, match=r"query lost INTO json.*No space left"):
            engine.finish()
        assert [failure.query for failure in engine.failures()] == ["lost"]
    assert (tmp_path / "fine.csv").read_text().splitlines() == ["ts,weight,a", "1,1,2"]


def test_a_failure_shows_the_rows_that_caused_it(engine):
    engine.execute("CREATE QUERY huge AS SELECT t + 9223372036854775800 AS x FROM S WHERE a > 1")
    engine.push("S", [(1, 2), (100, 3), (101, 1)])
    with pytest.raises(MillpondError, match=r"query huge: a number leaves the range"):
        engine.finish()
    (failure,) = engine.failures()
    assert "100, 3" in failure.rows

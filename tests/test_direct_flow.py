"""Direct interoperability without a scheduler: whoever brings tuples carries them through."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millpond import Engine
from millpond.execution.executor import Executors
from millpond.execution.steps import DRIVER
from millpond.scheduling.direct_flow import DirectFlow
from millpond.scheduling.registry import make
from millpond.scheduling.runtime import SchedulingLoop
from millpond.simulator import Conditions, Simulation
from tests.fuzz import check, held_back
from tests.generator import seeded_case
from tests.scheduling.threads.test_thread_configurations import (
    ARRIVALS,
    EXPECTED,
    outcome,
    shared_plan,
)
from tests.ways import Way

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE QUERY even AS SELECT a FROM S WHERE a % 2 = 0;
CREATE QUERY counts AS SELECT n, count(*) AS m FROM
  (SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a) GROUP BY n;
"""

UNEVEN = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE STREAM Silent (t BIGINT, a INT) TIMESTAMP BY t;
CREATE VIEW Counts AS RELATION SELECT a, count(*) AS n FROM S [ROWS 3] GROUP BY a;
CREATE QUERY alone AS SELECT a, n FROM Counts;
CREATE QUERY joined AS SELECT Counts.a FROM Counts JOIN Silent [RANGE 5] ON Counts.a = Silent.a;
"""


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that execute steps."""
    found: list[int] = []
    execute = Executors.execute

    def noting(executors: Executors, step: Any) -> Any:
        found.append(threading.get_ident())
        return execute(executors, step)

    monkeypatch.setattr(Executors, "execute", noting)
    return found


def values(engine: Engine) -> list[Any]:
    return [row["a"] for row in engine.results("even", "rows")]


def test_a_push_returns_when_its_tuples_are_through_and_nobody_else_works(
    threads: list[int],
) -> None:
    with Engine({"mode": "direct", "driver_rows": 10**9}) as engine:
        engine.execute(SCRIPT)
        engine.push("S", [(1, 2), (2, 3), (3, 4), (4, 4)])
        assert values(engine) == [2, 4]
        assert isinstance(engine.present_strategy, DirectFlow)
        engine.execute("INSERT INTO S VALUES (6, 8), (7, 8)")
        assert values(engine) == [2, 4, 4, 8]
        engine.advance("S", 10)
        assert values(engine) == [2, 4, 4, 8, 8]
        assert set(threads) == {threading.get_ident()}
        joined = threading.Thread(target=lambda: engine.push("S", [(11, 2), (12, 2)]))
        joined.start()
        joined.join()
        assert values(engine)[-1] == 2
        assert set(threads) == {threading.get_ident(), joined.ident}
        assert {row["queue"] for row in engine.show("queues").to_pylist()[3:]} <= {"no"}


def test_a_dear_function_keeps_the_thread_that_brings_tuples(threads: list[int]) -> None:
    """In other modes a step that takes long gets a thread of its own."""
    with Engine({"driver_rows": 10**9}) as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;")
        engine.register_function("dear", lambda a: a, ["INT"], "INT")
        engine.execute("CREATE QUERY even AS SELECT dear(a) AS a FROM S;")
        engine.push("S", [(1, 1), (2, 2)])
        engine.run_until_idle()
        for running in engine.runtime.running.values():  # a row seems to take a minute
            running.places._costs[DRIVER].record(1, 60.0)
        before = len(threads)
        engine.execute("SET mode = 'direct'")
        engine.push("S", [(3, 3), (4, 4)])
        assert values(engine) == [1, 2, 3]
        assert set(threads[before:]) == {threading.get_ident()}


def test_callbacks_may_push_and_modes_may_change() -> None:
    with Engine({"mode": "direct"}) as engine:
        engine.execute(SCRIPT)
        engine.subscribe("even", lambda table: len(values(engine)) < 3 and push(engine))
        push(engine)
        assert values(engine) == [0, 0, 0]
        engine.execute("SET mode = 'free'; SET strategy = 'chain'")
        push(engine)
        assert values(engine) == [0, 0, 0]  # until somebody has the engine work
        engine.run_until_idle()
        assert len(values(engine)) == 4
        engine.execute("SET mode = 'direct'")
        engine.start()  # from now on the loop in the background carries what comes
        push(engine)
        engine.run_until_idle()
        engine.stop()
        assert len(values(engine)) == 5


def push(engine: Engine) -> None:
    first = 2 * engine.inputs.streams["s"].arrived + 1
    engine.push("S", [(first, 0), (first + 1, 1)])


@pytest.mark.parametrize("processors", [1, 2])
def test_without_a_scheduler_the_answers_are_the_same(processors: int) -> None:
    simulation = Simulation(shared_plan(), ARRIVALS, Conditions(processors=processors))
    loop = SchedulingLoop(simulation, DirectFlow())
    for strategy in (DirectFlow(), make("ots"), DirectFlow()):
        loop.strategy = strategy
        for _ in range(40):
            loop.turn()
    loop.run()
    assert outcome(simulation.recorder.close(simulation.now_seconds)) == EXPECTED


@pytest.mark.parametrize("seed", [3, 7])
def test_random_queries_agree_with_the_reference(spark: SparkSession, seed: int) -> None:
    """Who brings a tuple has all done that follows, so that each relation is as it is then."""
    way = replace(Way.drawn(seed).seldom_validated(), mode="direct", driver_rows=10**9)
    failures = check(way.engines(spark), seeded_case(seed, 4))
    assert not failures, failures[0]


def test_a_queue_parts_a_query_from_those_that_wait_for_other_streams() -> None:
    with Engine({"mode": "direct", "driver_rows": 10**9}) as engine:
        engine.execute(UNEVEN)
        engine.push("S", [(1, 1), (2, 2), (3, 3)])
        assert held_back(engine, "alone")
        assert not engine.results("alone").num_rows
        engine.execute("ALTER PLAN QUEUE AFTER op2")
        engine.run_until_idle()
        assert not held_back(engine, "alone")
        assert engine.results("alone").num_rows == 2

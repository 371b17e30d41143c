"""Whoever implements the interface of executors can have the steps: the answers are the same."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import MillpondError
from millpond.execution import rides
from tests.execution.in_process import WORKS, InProcess

STREAMS = """
CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t;
CREATE STREAM R (t BIGINT, k INT, w INT) TIMESTAMP BY t;
"""
QUERIES = {
    "large": "SELECT t, v FROM S WHERE v > 3",
    "counts": "SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE 5] GROUP BY k",
    "total": "SELECT count(*) AS n FROM S [RANGE 4]",
    "last_rows": "SELECT k, v FROM S [ROWS 3]",
    "keys_there": "SELECT DISTINCT k FROM S [RANGE 3]",
    "joined": "SELECT S.k, v, w FROM S [RANGE 3], R [RANGE 4] WHERE S.k = R.k AND v > w",
    "arrived": "ISTREAM(SELECT k, max(v) AS m FROM S [RANGE 4] GROUP BY k)",
    "windows": "SELECT window_end, k, sum(v) AS s FROM S [HOP 4 SLIDE 3] GROUP BY window_end, k"
    " EMIT FINAL",
    "sessions": "SELECT k, window_end, sum(v) AS s FROM S [SESSION 3 PARTITION BY k WHERE v > 2]"
    " GROUP BY k, window_start, window_end EMIT FINAL",
    "in_sessions": "RELATION SELECT * FROM S [SESSION 2 PARTITION BY v]",
    "rising": "SELECT * FROM S MATCH_RECOGNIZE (PARTITION BY k MEASURES A.v AS f, sum(B.v) AS s"
    " PATTERN (A B+? NOT C) WITHIN 3 DEFINE B AS B.v > PREV(B.v), C AS C.v > sum(B.v))",
    "framed": "SELECT k, sum(v) OVER (PARTITION BY k ORDER BY t ROWS 2 PRECEDING) AS s,"
    " lag(v) OVER (ORDER BY t, k) AS l FROM S [RANGE 3]",
    "so_far": "SELECT v, sum(v) OVER (PARTITION BY k ORDER BY t) AS s FROM S",
    "best": "SELECT k, max_by(v, t) AS m, first(v) AS f, string_agg(CAST(v AS STRING), '') AS s"
    " FROM S [RANGE 4] GROUP BY k",
    "contents": "RSTREAM(SELECT k, v FROM S [RANGE 6 SLIDE 2])",
    "chain": "SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM S [RANGE 5] GROUP BY k) C"
    " GROUP BY n",
}


def answers(driver_rows, store=None, queries=QUERIES, tasks=0):
    script = ";".join(f"CREATE QUERY {name} AS {text}" for name, text in queries.items())
    settings = {"driver_rows": driver_rows, "place_by": "rows", "validate": "on", "tasks": tasks}
    with Engine(settings, store=store) as engine:
        engine.execute(STREAMS + script)
        for t in range(8):
            engine.push("S", [(t, i % 3, (i * t) % 7) for i in range(6)])
            engine.push("R", [(t, i % 4, i) for i in range(4)])
            engine.run_until_idle()
        engine.finish()
        tally = engine.runtime.tally
        return {name: engine.results(name).to_pylist() for name in queries}, tally


@pytest.fixture
def in_process(monkeypatch):
    WORKS.clear()
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)


@pytest.mark.parametrize(("is_stored", "tasks"), [(False, 0), (True, 0), (False, 3)])
def test_tasks_that_run_in_this_process_answer_what_the_driver_does(
    in_process, tmp_path, is_stored, tasks
):
    found, there = answers(0, tmp_path / "store" if is_stored else None, tasks=tasks)
    expected, here = answers(10**9)
    assert found == expected
    assert there.executor_rows > 0 == there.driver_rows
    assert here.driver_steps > here.executor_steps
    assert {"WriteRows", "RunKernel", "RunMemberKernel", "RunJoin", "RunSnapshots"} <= WORKS.keys()


def test_members_of_a_unit_ride_in_one_job(in_process):
    chain = {"chain": "SELECT k, count(*) AS n FROM (SELECT DISTINCT k, v FROM S [RANGE 5]) D"}
    chain["chain"] += " GROUP BY k"
    found, _ = answers(0, queries=chain)
    assert WORKS["Ride"] > 0
    assert found == answers(10**9, queries=chain)[0]


def test_what_reads_the_output_of_a_single_task_is_divided_if_it_is_much(in_process, monkeypatch):
    queries = {"gone": "SELECT DSTREAM k, v FROM S [ROWS 3]"}
    few, _ = answers(0, queries=queries, tasks=3)
    assert WORKS["Ride"] > 0
    WORKS.clear()
    monkeypatch.setattr(rides, "ALONE_ROWS", 0)
    many, _ = answers(0, queries=queries, tasks=3)
    assert WORKS["Ride"] == 0 < WORKS["WriteRows"]
    assert many == few == answers(10**9, queries=queries)[0]


def test_a_step_that_fails_there_fails_its_query_and_no_other(in_process):
    with Engine({"driver_rows": 0}) as engine:
        engine.execute(STREAMS + "CREATE QUERY counts AS SELECT count(*) AS n FROM S [RANGE 2];")
        engine.execute("CREATE QUERY fragile AS SELECT 9223372036854775000 + v AS x FROM S")
        engine.push("S", [(1, 1, 1000), (2, 1, 1)])
        with pytest.raises(MillpondError, match="query fragile: a number leaves the range"):
            engine.finish()
        engine.finish()
        assert [failure.query for failure in engine.failures()] == ["fragile"]
        assert engine.results("counts").num_rows > 2

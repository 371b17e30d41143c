"""A join that explodes keeps to its share: it is cut in time, and stopped where that is no help."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from millpond import Engine
from millpond.errors import MillpondError
from millpond.execution.executor import Executors
from millpond.execution.operators.join import RunningJoin
from millpond.execution.operators.running import OperatorStep
from millpond.execution.steps import EXECUTORS, Outcome

STREAMS = """
    SET budget = '1 MB'; SET processors = 1;
    CREATE STREAM L (k INT, a INT, ts BIGINT) TIMESTAMP BY ts;
    CREATE STREAM R (k INT, b INT, ts BIGINT) TIMESTAMP BY ts;
"""
JOIN = "SELECT L.k, a, b FROM L [RANGE 1000], R [RANGE 1000] WHERE L.k = R.k"


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """What the steps of joins have brought."""
    found, execute = list[Outcome](), Executors.execute

    def seen(executors: Executors, step: OperatorStep) -> Outcome:
        outcome = execute(executors, step)
        if isinstance(step.running, RunningJoin):
            found.append(outcome)
        return outcome

    monkeypatch.setattr(Executors, "execute", seen)
    return found


def feed(engine: Engine, times: list[int]) -> None:
    keys, values = [1] * len(times), list(range(len(times)))
    for stream, name in (("L", "a"), ("R", "b")):
        rows = {"k": pa.array(keys, pa.int32()), name: pa.array(values, pa.int32())}
        engine.push(stream, pa.table({**rows, "ts": pa.array(times, pa.int64())}))


def rows_of(engine: Engine, query: str) -> list[dict[str, Any]]:
    return engine.results(query).to_pylist()


def test_a_join_that_explodes_is_done_in_steps_that_keep_to_their_share(
    joined: list[Outcome],
) -> None:
    with Engine() as engine:
        engine.execute(
            STREAMS + f"CREATE QUERY q AS SELECT count(*) AS n, sum(a * b) AS s FROM ({JOIN}) J"
        )
        feed(engine, list(range(250)))
        engine.finish()
        most = max(rows_of(engine, "q"), key=lambda row: row["n"])
    assert (most["n"], most["s"]) == (250 * 250, sum(range(250)) ** 2)
    sizes = [each.bytes for each in joined]
    assert sum(each.rows for each in joined) == 250 * 250
    assert max(sizes) <= 2**20
    assert len([size for size in sizes if size]) > 2


@pytest.mark.slow
def test_a_join_on_the_executors_keeps_to_its_share_too(
    spark: SparkSession, joined: list[Outcome]
) -> None:
    with Engine(spark=spark) as engine:
        engine.execute(STREAMS + "SET driver_rows = 0; SET place_by = 'rows'; SET tasks = 2;")
        engine.execute(f"CREATE QUERY q AS ISTREAM({JOIN}); CREATE QUERY calm AS SELECT a FROM L")
        feed(engine, list(range(250)))
        engine.run_until_idle()
        for stream in "LR":
            engine.advance(stream, 400)
        engine.run_until_idle()
        assert engine.result_count("q") == 250 * 250
        assert len([each for each in joined if each.place == EXECUTORS and each.rows]) > 2
        feed(engine, [500] * 400)
        for stream in "LR":
            engine.advance(stream, 501)
        with pytest.raises(MillpondError, match=r"query q.*pairs.*SET budget"):
            engine.run_until_idle()
        engine.run_until_idle()
        assert [each.query for each in engine.failures()] == ["q"]
        assert engine.result_count("calm") == 650


def test_the_same_pairs_come_of_a_step_that_is_cut_and_of_one_that_is_not() -> None:
    answers = []
    for budget in ("1 MB", "1 GB"):
        with Engine() as engine:
            engine.execute(STREAMS + f"SET budget = '{budget}'; CREATE QUERY q AS ISTREAM({JOIN})")
            feed(engine, [n // 3 for n in range(240)])
            engine.finish()
            answers.append(sorted(tuple(r.values()) for r in rows_of(engine, "q")))
    assert len(answers[0]) == 240 * 240
    assert answers[0] == answers[1]


def test_an_instant_that_explodes_stops_its_query_by_name_and_no_other() -> None:
    with Engine() as engine:
        engine.execute(
            STREAMS + f"CREATE QUERY boom AS {JOIN}; CREATE QUERY calm AS SELECT a FROM L;"
        )
        feed(engine, [5] * 400)
        with pytest.raises(MillpondError, match=r"query boom.*160,000 pairs.*SET budget"):
            engine.finish()
        engine.finish()
        assert [each.query for each in engine.failures()] == ["boom"]
        assert len(rows_of(engine, "calm")) == 400

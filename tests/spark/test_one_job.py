"""Different queries over the same pages: what the executors do quickly they do in one job."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import InputError
from millpond.execution import regrouping

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts; CREATE STREAM T (ts BIGINT);"
QUERIES = {
    "large": "SELECT ts, k FROM S WHERE v > 5",
    "counts": "SELECT k, count(*) AS n FROM S [RANGE 3] GROUP BY k",
    "sums": "SELECT v, sum(k) AS n FROM S [RANGE 4] GROUP BY v",
    "total": "SELECT count(*) AS n FROM S [RANGE 2]",
}


@pytest.fixture
def engine(spark, monkeypatch):
    monkeypatch.setattr(regrouping, "QUICK_SECONDS", 600.0)  # a machine may be slow
    with Engine({"driver_rows": 0}, spark) as engine:
        engine.execute(STREAM)
        yield engine


def register(engine, **queries):
    engine.execute(";".join(f"CREATE QUERY {name} AS {text}" for name, text in queries.items()))


def pages(engine, first, last):
    for ts in range(first, last):
        engine.push("S", [(ts, i % 3, i) for i in range(10)])
        engine.run_until_idle()
    engine.runtime.move_queues()


def together(engine):
    """The queries whose outputs are in one unit, those with the most first."""
    outputs = {output: name for name, output in engine.queries.outputs.items()}
    named = [
        sorted(outputs[each] for each in unit.identities & outputs.keys()) for unit in units(engine)
    ]
    return sorted((each for each in named if each), key=lambda each: (-len(each), each))


def units(engine):
    return engine.runtime.units


def answers(engine, names):
    return {name: engine.results(name).to_pylist() for name in names}


def test_what_is_quick_becomes_one_unit_and_answers_what_it_did(spark, engine):
    register(engine, **QUERIES, other="SELECT ts FROM T")
    pages(engine, 0, 1)
    assert len(together(engine)) == 5  # the first step says little
    pages(engine, 1, 6)
    assert together(engine) == [sorted(QUERIES), ["other"]]
    engine.finish()
    with Engine({"driver_rows": 10**9}, spark) as here:
        here.execute(STREAM)
        register(here, **QUERIES)
        pages(here, 0, 6)
        assert len(together(here)) == len(QUERIES)  # in the driver they need not wait for others
        here.finish()
        assert answers(here, QUERIES) == answers(engine, QUERIES)


def test_one_that_comes_later_joins_them_and_one_that_goes_leaves_the_others(engine):
    register(engine, **QUERIES)
    pages(engine, 0, 4)
    register(engine, late="SELECT max(v) AS m FROM S [RANGE 2]")
    pages(engine, 4, 8)
    assert together(engine) == [sorted((*QUERIES, "late"))]
    engine.execute("DROP QUERY counts")
    pages(engine, 8, 10)
    assert together(engine) == [["large", "late", "sums", "total"]]


def test_what_takes_long_stays_apart(engine, monkeypatch):
    monkeypatch.setattr(regrouping, "QUICK_SECONDS", 0.0)
    register(engine, **QUERIES)
    pages(engine, 0, 4)
    assert len(together(engine)) == len(QUERIES)


def test_a_strategy_that_chooses_where_queues_stand_chooses_this_too(engine):
    register(engine, **QUERIES)
    pages(engine, 0, 4)
    assert len(together(engine)) == 1
    engine.execute("SET strategy = 'hmts'")
    pages(engine, 4, 6)
    assert len(together(engine)) > 1


def test_one_that_fails_fails_alone(engine):
    register(engine, **QUERIES, fragile="SELECT 9223372036854775000 + v AS x FROM S")
    pages(engine, 0, 4)
    assert together(engine) == [sorted((*QUERIES, "fragile"))]
    engine.push("S", [(4, 1, 1000), (4, 2, 3)])
    with pytest.raises(InputError, match="query fragile: a number leaves the range"):
        pages(engine, 5, 7)
    pages(engine, 7, 8)
    assert [failure.query for failure in engine.failures()] == ["fragile"]
    engine.finish()
    counted = [row["n"] for row in engine.results("total").to_pylist() if row["weight"] > 0]
    assert 22 in counted  # 10 + 2 + 10: none is missed, none there twice

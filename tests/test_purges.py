"""Whoever drops a query of a shared shape frees what was kept for it, and nobody else notices."""

from __future__ import annotations

from functools import cache

import pytest

from millpond import Engine
from tests.crashing import die
from tests.keeping import kept_by_query

pytestmark = pytest.mark.slow

SCHEMA = """
    CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;
    CREATE STREAM T (ts BIGINT, k INT) TIMESTAMP BY ts;
"""
TEXTS = {
    "count": "SELECT k, count(*) AS n FROM S [UNBOUNDED] WHERE v > {0} GROUP BY k",
    "extremes": "SELECT k, max(v) AS n, percentile(v, 0.5) AS p FROM S [UNBOUNDED] WHERE v > {0} "
    "GROUP BY k",
    "extremes of rows": "SELECT k, min(v) AS n FROM S [ROWS 5 WHERE v > {0}] GROUP BY k",
    "range": "SELECT k, max(v) AS n FROM S [RANGE 7] WHERE v > {0} GROUP BY k",
    "all": "SELECT sum(v) AS n FROM S [UNBOUNDED] WHERE v > {0}",
    "distinct": "SELECT DISTINCT k, v FROM S [UNBOUNDED] WHERE v > {0}",
    "rows": "SELECT k, v FROM S [PARTITION BY k ROWS 3 WHERE v > {0}]",
    "join": "SELECT S.k, v FROM S [UNBOUNDED], T [UNBOUNDED] WHERE S.k = T.k AND v > {0}",
    "join of rows": "SELECT S.k, v FROM S [ROWS 9 WHERE v > {0}], T [ROWS 3 WHERE k > {0}] "
    "WHERE S.k = T.k",
    "rstream": "SELECT RSTREAM k, v FROM S [ROWS 50] WHERE v > {0}",
    "rstream of counts": "SELECT RSTREAM k, count(*) AS n FROM S [UNBOUNDED] WHERE v > {0} "
    "GROUP BY k",
    "rstream of slides": "SELECT RSTREAM k, v FROM S [RANGE 6 SLIDE 3] WHERE v > {0}",
    "above an rstream": "SELECT k, max(n) AS n FROM (SELECT RSTREAM k, count(*) AS n FROM S "
    "[UNBOUNDED] WHERE v > {0} GROUP BY k) x [UNBOUNDED] GROUP BY k",
    "difference": "SELECT k FROM S [UNBOUNDED] WHERE v > {0} EXCEPT SELECT k FROM T [UNBOUNDED] "
    "WHERE k > {0}",
}


def begun(engine, text, queries=6):
    """Some queries of one shape, the first of which stands alone."""
    engine.execute(SCHEMA)
    for i in range(queries):
        engine.execute(f"CREATE QUERY q{i} AS {text.format(i)}")


def fed(engine, first, last):
    """Tuples from a time to another, in two steps."""
    for start, end in ((first, (first + last) // 2), ((first + last) // 2, last)):
        times = range(start, end)
        engine.push("S", [(ts, n % 3, (ts * 7 + n) % 11) for ts in times for n in range(4)])
        engine.push("T", [(ts, ts % 4) for ts in times])
        engine.advance("S", end - 1)
        engine.advance("T", end - 1)
        engine.run_until_idle()


@pytest.fixture(params=TEXTS)
def text(request):
    return TEXTS[request.param]


@cache
def alone(text, number):
    """What a query answers that nobody shares anything with."""
    with Engine({"sharing": "off"}) as engine:
        begun(engine, text, queries=0)
        engine.execute(f"CREATE QUERY q{number} AS {text.format(number)}")
        fed(engine, 0, 20)
        return sorted(map(str, engine.results(f"q{number}").to_pylist()))


def test_what_was_kept_for_a_query_goes_with_it(text):
    with Engine() as engine:
        begun(engine, text)
        fed(engine, 0, 10)
        before = kept_by_query(engine)
        engine.execute("DROP QUERY q2; DROP QUERY q4")
        after = kept_by_query(engine)
        gone = set(before) - set(after)
        assert len(gone) == 2
        assert after == {each: rows for each, rows in before.items() if each not in gone}
        fed(engine, 10, 20)
        assert not set(kept_by_query(engine)) & gone
        found = sorted(map(str, engine.results("q3").to_pylist()))
    assert found == alone(text, 3)


@pytest.mark.parametrize("shortens", [False, True])
def test_it_stays_gone_after_a_crash(text, shortens, tmp_path):
    engine = Engine(store=tmp_path)
    begun(engine, text)
    fed(engine, 0, 10)
    before = kept_by_query(engine)
    engine.execute("DROP QUERY q2; DROP QUERY q4")
    fed(engine, 10, 12)
    if shortens:
        engine.compact_log()
    after = kept_by_query(engine)
    die(engine)
    with Engine(store=tmp_path) as again:
        assert kept_by_query(again) == after
        fed(again, 12, 20)
        assert len(set(before) - set(kept_by_query(again))) == 2
        found = sorted(map(str, again.results("q3").to_pylist()))
    assert found == alone(text, 3)


def test_a_large_group_looks_for_what_is_gone_now_and_then():
    with Engine() as engine:
        begun(engine, TEXTS["count"], queries=41)
        fed(engine, 0, 3)
        engine.push("S", [(3, 1, 100)])
        engine.advance("S", 3)
        engine.run_until_idle()
        numbers = [len(kept_by_query(engine))]
        for i in range(1, 12):
            engine.execute(f"DROP QUERY q{i}")
            numbers.append(len(kept_by_query(engine)))
    assert numbers == [41] * 9 + [32] * 3


@pytest.mark.parametrize("name", ["extremes", "rstream of counts"])
def test_on_the_executors(spark, name):
    with Engine({"driver_rows": 0}, spark) as engine:
        begun(engine, TEXTS[name], queries=4)
        fed(engine, 0, 2)
        assert len(kept_by_query(engine)) == 4
        engine.execute("DROP QUERY q1")
        assert len(kept_by_query(engine)) == 3
        fed(engine, 2, 4)
        assert len(kept_by_query(engine)) == 3
        found = sorted(map(str, engine.results("q2").to_pylist()))
    with Engine({"sharing": "off"}) as engine:
        begun(engine, TEXTS[name], queries=4)
        fed(engine, 0, 4)
        assert found == sorted(map(str, engine.results("q2").to_pylist()))

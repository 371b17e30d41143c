"""CREATE QUERY … FROM: a query that comes late sees what its streams still hold."""

from __future__ import annotations

import datetime as dt

import pytest

from millpond import Engine
from millpond.errors import CqlError
from millpond.storage.readers import Reader
from tests.crashing import die, validate_open

S = "CREATE STREAM S (ts BIGINT, k INT) TIMESTAMP BY ts"
KEEP = "CREATE QUERY keep AS SELECT count(*) AS n FROM S [RANGE 1000]"
COUNT = "AS SELECT count(*) AS n FROM S [RANGE 1000] WHERE k = 1"
ALERT = "AS SELECT ts, k FROM S WHERE k = 1"


def feed(engine, times, k=1):
    for ts in times:
        engine.push("S", [(ts, k)])
        engine.advance("S", ts)
        engine.run_until_idle()


def times(engine, query):
    return [row["ts"] for row in engine.results(query).to_pylist()]


@pytest.fixture
def engine():
    with Engine() as made:
        made.execute(S)
        yield made


def test_history_is_seen_as_far_as_windows_hold_it(engine):
    engine.execute(KEEP)
    feed(engine, range(10))
    engine.execute(f"CREATE QUERY whole FROM BEGINNING {ALERT}")
    engine.execute(f"CREATE QUERY part FROM 7 {ALERT}")
    engine.execute(f"CREATE QUERY now {ALERT}; CREATE QUERY later FROM 12 {ALERT}")
    feed(engine, range(10, 14))
    assert times(engine, "whole") == list(range(14))
    assert times(engine, "part") == list(range(7, 14))
    assert times(engine, "now") == list(range(10, 14))
    assert times(engine, "later") == [12, 13]


def test_an_answer_is_what_it_would_have_been(engine):
    engine.execute(KEEP)
    engine.execute(f"CREATE QUERY early {COUNT}")
    feed(engine, range(0, 10, 2))
    engine.execute(f"CREATE QUERY late WEIGHT 2 FROM BEGINNING ON ERROR SKIP {COUNT}")
    feed(engine, range(10, 1300, 400))
    engine.finish()
    assert engine.results("late").to_pylist() == engine.results("early").to_pylist()


def test_what_is_gone_is_refused_with_the_earliest_possible_time(engine):
    engine.execute("CREATE QUERY short AS SELECT count(*) AS n FROM S [RANGE 3]")
    feed(engine, range(10))
    with pytest.raises(CqlError) as refused:
        engine.execute(f"CREATE QUERY q FROM BEGINNING {ALERT}")
    assert str(refused.value) == (
        'line 1, column 1: query "q" cannot begin FROM BEGINNING: stream S is no longer there up '
        "to 5; the earliest possible is FROM 6; leave FROM out to begin now"
    )
    with pytest.raises(CqlError, match="the earliest possible is FROM 6"):
        engine.execute(f"EXPLAIN PHYSICAL CREATE QUERY q FROM 5 {ALERT}")
    assert engine.catalog.get("q") is None
    engine.execute(f"CREATE QUERY q FROM 6 {ALERT}")
    engine.run_until_idle()
    assert times(engine, "q") == [6, 7, 8, 9]


def test_times_are_told_as_streams_have_them():
    with Engine() as engine:
        engine.execute("SET tick = '1 second'")
        engine.execute("CREATE STREAM S (ts TIMESTAMP, k INT) TIMESTAMP BY ts")
        engine.execute("CREATE QUERY short AS SELECT count(*) AS n FROM S [RANGE 3 SECONDS]")
        for second in range(10):
            at = dt.datetime(2024, 1, 1, 0, 0, second)
            engine.push("S", [(at, 1)])
            engine.advance("S", at)
            engine.run_until_idle()
        with pytest.raises(CqlError, match="FROM TIMESTAMP '2024-01-01T00:00:06'"):
            engine.execute(f"CREATE QUERY q FROM BEGINNING {ALERT}")
        engine.execute(f"CREATE QUERY q FROM TIMESTAMP '2024-01-01T00:00:06' {ALERT}")
        engine.run_until_idle()
        assert engine.result_count("q") == 4


def test_a_relation_must_not_have_changed_since(engine):
    engine.execute(KEEP)
    engine.execute("CREATE RELATION R (k INT); INSERT INTO R VALUES (1)")
    text = "AS SELECT S.ts FROM S [NOW], R WHERE S.k = R.k"
    feed(engine, range(3))
    engine.execute(f"CREATE QUERY q FROM BEGINNING {text}")
    engine.execute("INSERT INTO R VALUES (2)")
    feed(engine, range(3, 6))
    assert times(engine, "q") == list(range(6))
    with pytest.raises(CqlError, match=r"relation R has changed at 3; .* possible is FROM 4;"):
        engine.execute(f"CREATE QUERY p FROM BEGINNING {text}")


def test_a_query_without_streams_has_no_time_to_begin_from(engine):
    engine.execute("CREATE RELATION R (k INT)")
    with pytest.raises(CqlError, match="reads no stream"):
        engine.execute("CREATE QUERY q FROM BEGINNING AS SELECT k FROM R")


def test_who_only_looks_on_keeps_nothing_for_others(engine):
    """After a restart nobody looks on, and what he held is gone."""
    engine.inputs.queues["stream:s"].subscribe(Reader(-1, works=False))
    engine.execute("CREATE QUERY short AS SELECT count(*) AS n FROM S [RANGE 3]")
    feed(engine, range(10))
    with pytest.raises(CqlError, match="the earliest possible is FROM 6"):
        engine.execute(f"CREATE QUERY q FROM BEGINNING {ALERT}")


def test_explain_says_from_when_on(engine):
    (plan,) = engine.execute(f"EXPLAIN PHYSICAL CREATE QUERY q FROM BEGINNING {ALERT}")
    assert plan.text.endswith(
        "begins FROM BEGINNING, with what its streams still hold; it runs by itself at first"
    )


@pytest.mark.parametrize("shortens", [False, True])
@pytest.mark.parametrize("runs", [False, True])
def test_it_goes_on_after_a_crash(tmp_path, shortens, runs):
    engine = Engine(store=tmp_path)
    engine.execute(f"{S}; {KEEP}")
    feed(engine, range(5))
    engine.execute(f"CREATE QUERY q FROM 2 {ALERT}; CREATE QUERY now {ALERT}")
    if runs:
        engine.run_until_idle()
    if shortens:
        engine.compact_log()
    die(engine)
    with Engine(store=tmp_path) as again:
        feed(again, range(5, 8))
        assert times(again, "q") == list(range(2, 8))
        assert times(again, "now") == list(range(5, 8))
        again.execute(f"CREATE QUERY more {ALERT}")
        feed(again, [8])
        assert times(again, "more") == [8]


def pushed(engine, times):
    for ts in times:
        engine.push("S", [(ts, 1)])
        engine.advance("S", ts)


LATER = KEEP.replace("keep", "later")
SHORT = "CREATE QUERY short AS SELECT count(*) AS n FROM S [RANGE 1]"
HISTORIES = {
    "kept": ([S, KEEP, feed], True),
    "kept, and nothing has run": ([S, KEEP, pushed], True),
    "kept by one that came later": ([S, KEEP, feed, LATER, "DROP QUERY keep"], True),
    "kept too late": ([S, feed, KEEP], False),
    "kept too late, and nothing has run": ([S, pushed, KEEP], False),
    "kept too late by the second one": ([S, SHORT, feed, KEEP], False),
    "dropped": ([S, KEEP, feed, "DROP QUERY keep", LATER], False),
    "at rest": ([S, KEEP, feed, "ALTER QUERY keep INACTIVE", "ALTER QUERY keep ACTIVE"], False),
}


@pytest.mark.parametrize("shortens", [False, True])
@pytest.mark.parametrize("death", [None, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("history", HISTORIES)
def test_deaths_make_no_history_and_lose_none(tmp_path, history, death, shortens):
    actions, is_there = HISTORIES[history]
    engine = Engine(store=tmp_path)
    for number, action in enumerate(actions, 1):
        if callable(action):
            action(engine, range(5))
        else:
            engine.execute(action)
        if number == death:
            engine = reopened(engine, tmp_path, shortens)
    if is_there:
        engine.execute(f"CREATE QUERY q FROM BEGINNING {ALERT}")
    else:
        with pytest.raises(CqlError, match="the earliest possible is FROM"):
            engine.execute(f"CREATE QUERY q FROM BEGINNING {ALERT}")
    feed(engine, [5])
    engine = reopened(engine, tmp_path, shortens)
    feed(engine, [6])
    assert not is_there or times(engine, "q") == list(range(7))
    engine.close()


def reopened(engine, store, shortens):
    if shortens:
        engine.compact_log()
    die(engine)
    engine = Engine(store=store)
    validate_open(engine)
    return engine

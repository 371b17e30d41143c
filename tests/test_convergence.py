"""Operators of late-comers become one with those of others, and no answer changes."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.planning.physical import OutputOperator
from tests.crashing import die, validate_open

DDL = (
    "CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;"
    "CREATE STREAM T (ts BIGINT, k INT) TIMESTAMP BY ts;"
    "CREATE RELATION R (k INT PRIMARY KEY, name STRING);"
    "INSERT INTO R VALUES (0, 'zero'), (1, 'one');"
)
BY_KEY = "SELECT k, count(*) AS n FROM S [RANGE 5] GROUP BY k"
NESTED = f"SELECT count(*) AS n FROM (ISTREAM({BY_KEY})) [RANGE 4]"
JOINED = "SELECT S.k, name, count(*) AS n FROM S [RANGE 3], R WHERE S.k = R.k GROUP BY S.k, name"
BY_ROWS = "SELECT k, count(*) AS n FROM S [ROWS 4] GROUP BY k"
OF_RELATION = "SELECT k, name FROM R WHERE name <> 'x'"
TEXTS = (BY_KEY, NESTED, JOINED, BY_ROWS, OF_RELATION)


def page(engine, ts):
    """Three tuples, and all that follows from them."""
    engine.push("S", [(ts, ts % 3, 0), (ts, 0, ts), (ts, 1, 1)])
    engine.advance("S", ts)
    engine.advance("T", ts)
    engine.run_until_idle()


def register(engine, suffix, texts=TEXTS):
    for number, text in enumerate(texts):
        engine.execute(f"CREATE QUERY q{number}{suffix} AS {text}")


def shared(engine):
    """The operators beside those that put queries out."""
    operators = engine.graph.operators
    return {i for i, each in operators.items() if not isinstance(each, OutputOperator)}


def copies(engine):
    return [name for name in engine.inputs.queues if name.startswith("relation:r@")]


def rows(engine, query):
    return [tuple(row.values()) for row in engine.results(query).to_pylist()]


def alone(text, since, pages, changes=()):
    """The answer of a query that is the only one, registered after some pages."""
    with Engine() as engine:
        engine.execute(DDL)
        for ts in range(pages):
            if ts == since:
                engine.execute(f"CREATE QUERY q AS {text}")
            engine.execute("".join(each for at, each in changes if at == ts) or "SHOW STREAMS")
            page(engine, ts)
        engine.finish()
        return rows(engine, "q")


def test_they_become_one_when_windows_have_passed_and_answers_are_those_of_each_alone():
    changes = [(12, "INSERT INTO R VALUES (2, 'two');"), (15, "DELETE FROM R WHERE k = 0;")]
    with Engine() as engine:
        engine.execute(DDL)
        register(engine, "")
        first = shared(engine)
        for ts in range(20):
            if ts in (3, 4):
                register(engine, f"_{ts}")
                assert len(shared(engine)) > len(first)
            engine.execute("".join(each for at, each in changes if at == ts) or "SHOW STREAMS")
            page(engine, ts)
        assert shared(engine) == first
        assert not copies(engine)
        engine.finish()
        for number, text in enumerate(TEXTS):
            for ts in (3, 4):
                expected = alone(text, ts, 20, changes)
                assert rows(engine, f"q{number}_{ts}") == expected


def test_those_that_never_settle_stay_apart():
    texts = [
        "SELECT k, count(*) AS n FROM S [UNBOUNDED] GROUP BY k",
        "SELECT k, count(*) AS n FROM S [PARTITION BY k ROWS 1] GROUP BY k",
        "SELECT k, count(*) AS n FROM S [ROWS 2 SLIDE 2] GROUP BY k",
    ]
    with Engine() as engine:
        engine.execute(DDL)
        register(engine, "", texts)
        first = shared(engine)
        page(engine, 0)
        register(engine, "_late", texts)
        for ts in range(1, 12):
            page(engine, ts)
        assert len(shared(engine)) == 2 * len(first)
        assert "will be one" not in str(engine.explain("q0_late"))


def test_nothing_becomes_one_with_sharing_off():
    with Engine({"sharing": "off"}) as engine:
        engine.execute(DDL)
        register(engine, "")
        first = shared(engine)
        page(engine, 0)
        register(engine, "_late")
        for ts in range(1, 15):
            page(engine, ts)
        assert len(shared(engine)) == 2 * len(first)


def test_a_late_comer_goes_on_when_the_first_is_dropped_before_or_after():
    with Engine() as engine:
        engine.execute(DDL)
        engine.execute(f"CREATE QUERY a AS {BY_KEY}; CREATE QUERY b AS {JOINED}")
        page(engine, 0)
        engine.execute(f"CREATE QUERY a_late AS {BY_KEY}; CREATE QUERY b_late AS {JOINED}")
        for ts in range(1, 3):
            page(engine, ts)
        engine.drop("b")
        for ts in range(3, 9):
            page(engine, ts)
        engine.drop("a")
        for ts in range(9, 12):
            page(engine, ts)
        engine.finish()
        assert rows(engine, "a_late") == alone(BY_KEY, 1, 12)
        assert rows(engine, "b_late") == alone(JOINED, 1, 12)
        engine.execute("DROP QUERY a_late; DROP QUERY b_late")
        assert not engine.graph.operators


@pytest.mark.parametrize("shortens", [False, True])
@pytest.mark.parametrize("drops", [False, True])
def test_they_go_on_after_a_crash(tmp_path, shortens, drops):
    """Operators have the numbers they had, also if only the late-comer is left of a pair."""
    engine = Engine(store=tmp_path)
    engine.execute(DDL)
    register(engine, "")
    for ts in range(18):
        if ts == 3:
            register(engine, "_late")
        page(engine, ts)
        if ts == 5 or ts == 15:
            if drops and ts == 15:
                for number in range(len(TEXTS)):
                    engine.drop(f"q{number}")
            before = engine.graph.whole()
            if shortens:
                engine.compact_log()
            die(engine)
            engine = Engine(store=tmp_path)
            validate_open(engine)
            again = engine.graph.whole()
            assert again == before
    assert len(shared(engine)) == 7
    assert not copies(engine)
    engine.finish()
    found = [rows(engine, f"q{number}_late") for number in range(len(TEXTS))]
    engine.close()
    assert found == [alone(text, 3, 18) for text in TEXTS]


def test_explain_and_show_tell_what_will_be_shared():
    with Engine() as engine:
        engine.execute(DDL)
        register(engine, "")
        page(engine, 0)
        (plan,) = engine.execute(f"EXPLAIN PHYSICAL CREATE QUERY x AS {BY_KEY}")
        assert "will be one with op1 from 6 on" in str(plan)
        (plan,) = engine.execute(f"EXPLAIN PHYSICAL CREATE QUERY x AS {BY_ROWS}")
        assert "once 4 elements have come" in str(plan)
        engine.execute(f"CREATE QUERY x AS {BY_KEY}")
        page(engine, 1)
        (told,) = [r for r in engine.execute("SHOW SHARING")[0].to_pylist() if r["when"]]
        assert (told["queries"], told["when"]) == ("q0, q1, x", "from 6 on")
        for ts in range(2, 8):
            page(engine, ts)
        told = engine.execute("SHOW SHARING")[0].to_pylist()
        assert not any(row["when"] for row in told)
        assert "q0, q1, x" in {row["queries"] for row in told}


def test_a_late_comer_from_the_beginning_is_one_with_the_first_at_once():
    with Engine() as engine:
        engine.execute(DDL)
        engine.execute("CREATE QUERY keep AS SELECT count(*) AS n FROM S [RANGE 100]")
        engine.execute(f"CREATE QUERY a AS {BY_KEY}")
        first = shared(engine)
        for ts in range(4):
            page(engine, ts)
        engine.execute(f"CREATE QUERY b FROM BEGINNING AS {BY_KEY}")
        page(engine, 4)
        assert shared(engine) == first
        engine.finish()
        assert rows(engine, "a") == rows(engine, "b")

"""MATCH_RECOGNIZE against a search that tries all ways, however pages are cut, wherever it runs."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from millpond import Engine
from millpond.errors import MillpondError
from millpond.kernels import begun_matches
from tests import reference
from tests.execution.in_process import WORKS, InProcess
from tests.matching import difference
from tests.query_generator import Column, QueryGenerator, Table

SCHEMA = (("t", "BIGINT"), ("a", "INT"), ("b", "DOUBLE"), ("s", "STRING"), ("d", "TIMESTAMP"))
COLUMNS = [Column("", *each) for each in SCHEMA]
STREAM = f"CREATE STREAM S ({', '.join(map(' '.join, SCHEMA))}) TIMESTAMP BY t;"
COMPUTED = "(ISTREAM(SELECT t, a, b, s, d FROM S [RANGE 2]))"
PER_CASE = 10


def drawn_rows(rng):
    """Rows in order of time, many of one instant."""
    time, rows = 0, []
    for _ in range(rng.choice([8, 14, 20])):
        time += rng.choice([0, 0, 1, 1, 2, 5])
        day = datetime(2024, 1, 1) + timedelta(seconds=rng.randrange(4))
        numbers = rng.choice([None, 0, 1, 2, 3]), rng.choice([None, 0.0, 0.5, 1.25, -2.0])
        rows.append((time, *numbers, rng.choice(["a", "b", None]), day))
    return rows


def drawn_queries(rng):
    """Patterns over the stream, and some over a computed one."""
    drawing = QueryGenerator(rng, [Table("S", SCHEMA, True, 20, in_ticks=True)])
    for _ in range(PER_CASE):
        source = COMPUTED if rng.random() < 0.2 else "S"
        yield f"SELECT * FROM {source} {drawing.match_recognize(COLUMNS)[0]} AS M"


def pieces(rng, rows):
    """The rows in pages, and whether the engine runs behind each."""
    while rows:
        size = rng.choice([1, 2, 3, 7, 100])
        yield rows[:size], rng.random() < 0.7
        rows = rows[size:]


def answers(queries, rows, rng, settings, store=None, restarts=False):
    """What an engine says that gets the rows page by page."""
    engine = Engine(settings, store=store)
    engine.execute(STREAM)
    for number, text in enumerate(queries):
        engine.execute(f"CREATE QUERY q{number} AS {text}")
    for page, is_run in pieces(rng, rows):
        engine.push("S", page)
        if is_run:
            engine.run_until_idle()
        if restarts and rng.random() < 0.5:
            if rng.random() < 0.5:
                engine.compact_log()
            engine.close()
            engine = Engine(settings, store=store)
    engine.finish()
    found = [engine.results(f"q{number}").to_pylist() for number in range(len(queries))]
    engine.close()
    return [[(row["ts"], row["weight"], tuple(row.values())[2:]) for row in rows] for rows in found]


def assert_right(seed, settings, **ways):
    rng = random.Random(seed)
    rows, queries = drawn_rows(rng), list(drawn_queries(rng))
    found = answers(queries, rows, rng, settings, **ways)
    streams = {"S": (SCHEMA, [(row[0], seq, row) for seq, row in enumerate(rows)])}
    for text, told in zip(queries, found, strict=True):
        expected = reference.evaluate(text, streams)
        assert not difference(expected, told), (rows, text, expected, told)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_matches_are_those_of_a_search_by_the_definition(seed):
    assert_right(seed, {"validate": "on"})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 23))
def test_restarts_and_checkpoints_do_not_matter(seed, tmp_path):
    assert_right(seed, {}, store=tmp_path / "store", restarts=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 43))
def test_tasks_elsewhere_find_the_same(seed, monkeypatch):
    WORKS.clear()
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    assert_right(seed, {"driver_rows": 0, "place_by": "rows"})
    assert WORKS["RunKernel"]


ALARM = (
    "SELECT id, asked FROM S MATCH_RECOGNIZE (PARTITION BY id MEASURES A.t AS asked "
    "PATTERN (A NOT B) WITHIN 5 DEFINE A AS k = 'ask', B AS k = 'answer')"
)
ASKING = "CREATE STREAM S (t BIGINT, id INT, k STRING) TIMESTAMP BY t;"


def test_a_heartbeat_alone_says_that_nothing_came():
    with Engine() as engine:
        engine.execute(f"{ASKING} CREATE QUERY alarms AS {ALARM}")
        engine.push("S", [(1, 1, "ask"), (2, 2, "ask"), (3, 2, "answer")])
        engine.advance("S", 5)
        engine.run_until_idle()
        assert engine.results("alarms").num_rows == 0
        engine.advance("S", 6)
        engine.run_until_idle()
        found = [(row["ts"], row["id"], row["asked"]) for row in engine.results("alarms", "rows")]
        assert found == [(6, 1, 1)]


def test_what_fails_where_a_row_is_tried_fails_the_query_and_says_why():
    text = (
        "SELECT v FROM S MATCH_RECOGNIZE (MEASURES B.v AS v PATTERN (A B) "
        "DEFINE A AS A.v > 0, B AS B.v + A.v > 0)"
    )
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, v BIGINT) TIMESTAMP BY t;")
        engine.execute(f"CREATE QUERY q AS {text}")
        engine.push("S", [(1, -1), (2, 2**63 - 1), (3, 1)])
        with pytest.raises(MillpondError, match="a number leaves the range of its type"):
            engine.finish()


def test_where_errors_are_skipped_such_a_row_does_not_stand_for_its_variable():
    text = (
        "SELECT v FROM S MATCH_RECOGNIZE (MEASURES B.v AS v PATTERN (A X*? B) "
        "DEFINE B AS B.v + A.v > 0)"
    )
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, v BIGINT) TIMESTAMP BY t;")
        engine.execute(f"CREATE QUERY q ON ERROR SKIP AS {text}")
        engine.push("S", [(1, 2**63 - 1), (2, 1), (3, -5)])
        engine.finish()
        assert [row["v"] for row in engine.results("q", "rows")] == [-5]


def test_a_sum_that_leaves_its_range_is_told_so():
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, v BIGINT) TIMESTAMP BY t;")
        engine.execute(
            "CREATE QUERY q AS SELECT s FROM S MATCH_RECOGNIZE (MEASURES sum(v) AS s "
            "PATTERN (A B C)) AS M"
        )
        engine.push("S", [(1, 2**63 - 1), (2, 1), (3, -5)])
        engine.advance("S", 3)
        engine.run_until_idle()
        assert [row["s"] for row in engine.results("q", "rows")] == [2**63 - 5]
        engine.push("S", [(4, 2**63 - 1), (5, 1), (6, 0)])
        with pytest.raises(MillpondError, match="sum leaves the range of BIGINT"):
            engine.finish()


@pytest.mark.parametrize("policy", ["STOP", "SKIP"])
def test_a_match_whose_ways_have_no_end_stops_its_query_alone(policy, monkeypatch):
    monkeypatch.setattr(begun_matches, "MOST_WAYS", 100)
    engine = Engine()
    engine.execute(f"""CREATE STREAM S (t BIGINT, x BIGINT) TIMESTAMP BY t;
        CREATE QUERY many ON ERROR {policy} AS SELECT s FROM S MATCH_RECOGNIZE (
          MEASURES sum(A.x) AS s PATTERN (F (A | B)+ C) DEFINE F AS x = 1, C AS C.x = sum(A.x));
        CREATE QUERY plain AS SELECT x FROM S""")
    engine.push("S", [(n, 2**n) for n in range(12)])
    with pytest.raises(MillpondError, match="more than 100 ways to go on"):
        engine.finish()
    assert engine.results("plain")["x"].to_pylist() == [2**n for n in range(12)]


def test_what_is_kept_is_said_by_explain():
    with Engine() as engine:
        engine.execute(f"{ASKING} CREATE QUERY alarms AS {ALARM}")
        assert "keeps begun matches 5 ticks at most" in str(engine.explain("alarms"))

"""Queries that are REDUCED TO less run, share, recover and show as the queries that they become.

Costs two seconds.
"""

import random

import pytest

from millpond import Engine
from tests import reference
from tests.matching import difference

DECLARED = """
CREATE STREAM S (t BIGINT, k INT, x INT) TIMESTAMP BY t;
CREATE STREAM U (t BIGINT, k INT, y INT) TIMESTAMP BY t;
CREATE RELATION R (k INT PRIMARY KEY, n INT);
INSERT INTO R VALUES (0, 10), (1, 20);
"""
QUERIES = {
    "grouped": (
        "SELECT k, count(*) AS n, max(x) AS h FROM S [RANGE 30] GROUP BY k",
        "WINDOW OF S = RANGE 7",
    ),
    "introduced": ("SELECT s.x, R.n FROM S s, R WHERE s.k = R.k", "WINDOW OF s = ROWS 4"),
    "joined": (
        "RELATION SELECT S.x, U.y FROM S [RANGE 20], U [PARTITION BY k ROWS 9] WHERE S.k = U.k",
        "WINDOW OF S = RANGE 5, WINDOW OF U = ROWS 2",
    ),
    "nested": (
        "SELECT k FROM S [RANGE 9] WHERE EXISTS (SELECT * FROM U [RANGE 9] WHERE U.k = S.k)",
        "WINDOW OF U = RANGE 1, WINDOW OF S = RANGE 3",
    ),
}
SAMPLED = {
    "sampled": ("SELECT x FROM S [RANGE 9]", "SAMPLE OF S = 50 PERCENT, WINDOW OF S = RANGE 3"),
    "pushed": (
        "SELECT T.x FROM (SELECT ISTREAM S.x FROM S [NOW] WHERE S.k > 0) T SAMPLE(50)",
        "SAMPLE OF T PUSHED TO S",
    ),
}


def drawn(seed, rows=60):
    draw = random.Random(seed)
    times = sorted(draw.randrange(40) for _ in range(rows))
    return [(at, draw.randrange(3), draw.randrange(9)) for at in times]


def engine_with(queries, **settings):
    engine = Engine(settings=settings)
    engine.execute(DECLARED)
    for name, (text, said) in queries.items():
        engine.execute(f"CREATE QUERY {name} REDUCED TO ({said}) AS {text}")
    return engine


def fed(engine, parts=(slice(None),)):
    for part in parts:
        engine.push("S", drawn(1)[part])
        engine.push("U", drawn(2)[part])
        engine.run_until_idle()
    engine.finish()
    return engine


def results(engine, name):
    names = engine.query_entry(name).plan.schema.names
    return [
        (row["ts"], row.get("weight", 1), tuple(row[each] for each in names))
        for row in engine.results(name, "rows")
    ]


@pytest.fixture(scope="module")
def engine():
    return fed(engine_with(QUERIES | SAMPLED))


@pytest.mark.parametrize("name", QUERIES)
def test_the_answer_is_that_of_the_reduced_text(engine, name):
    schema = [("t", "BIGINT"), ("k", "INT")]
    streams = {
        "S": ([*schema, ("x", "INT")], [(row[0], n, row) for n, row in enumerate(drawn(1))]),
        "U": ([*schema, ("y", "INT")], [(row[0], n, row) for n, row in enumerate(drawn(2))]),
    }
    relations = {"R": ([("k", "INT"), ("n", "INT")], [(None, 1, (0, 10)), (None, 1, (1, 20))])}
    text = engine.query_entry(name).text
    assert text != QUERIES[name][0]
    expected = reference.evaluate(text, streams, relations)
    assert difference(expected, results(engine, name)) == []
    assert difference(reference.evaluate(QUERIES[name][0], streams, relations), expected)


@pytest.mark.parametrize("name", QUERIES | SAMPLED)
def test_it_shares_all_with_a_query_of_its_text(engine, name):
    with_both = engine_with({name: (QUERIES | SAMPLED)[name]})
    before = len(with_both.execute("SHOW STEPS")[0])
    with_both.execute(f"CREATE QUERY same AS {with_both.query_entry(name).text}")
    assert len(with_both.execute("SHOW STEPS")[0]) <= before + 1  # what puts its results out
    fed(with_both)
    assert results(with_both, "same") == results(with_both, name)
    assert difference(results(engine, name), results(with_both, name)) == []


def test_it_recovers(tmp_path):
    store = str(tmp_path / "store")
    first = engine_with(QUERIES | SAMPLED, store=store)
    first.push("S", drawn(1)[:30])
    first.run_until_idle()
    first.close()
    again = Engine(settings={"store": store})
    again.compact_log()
    again.close()
    again = Engine(settings={"store": store})
    assert again.query_entry("sampled").reduced == (
        "SAMPLE OF S = 50 PERCENT",
        "WINDOW OF S = RANGE 3",
    )
    again.push("S", drawn(1)[30:])
    again.push("U", drawn(2))
    again.finish()
    whole = fed(engine_with(QUERIES | SAMPLED))
    for name in QUERIES | SAMPLED:
        assert difference(results(whole, name), results(again, name)) == []
    again.close()


def test_it_is_altered_as_others_are():
    engine = engine_with({"grouped": QUERIES["grouped"]})
    engine.execute("ALTER QUERY grouped SET WINDOW OF S = RANGE 12")
    assert "[RANGE 12]" in engine.query_entry("grouped").text


def test_it_says_what_was_reduced(engine):
    shown = next(
        row for row in engine.execute("SHOW QUERIES")[0].to_pylist() if row["name"] == "pushed"
    )
    assert "REDUCED TO (SAMPLE OF T PUSHED TO S)" in shown["text"]
    assert "reduced: SAMPLE OF T PUSHED TO S" in engine.explain("pushed").text
    assert engine.entities().get("query", "pushed").get("reduced") == "SAMPLE OF T PUSHED TO S"
    offered = engine.explain("grouped", "reductions").text
    assert "WINDOW OF S = RANGE 3" in offered
    (plan,) = engine.execute("EXPLAIN REDUCTIONS SELECT DISTINCT k FROM S [RANGE 4]")
    assert "WINDOW OF S = RANGE 2: under DISTINCT" in plan.text

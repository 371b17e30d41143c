"""Views that are read more than once, with selections and columns of their own each time."""

from __future__ import annotations

from collections import Counter

import pytest

from millpond import Engine
from tests import reference

SCHEMA = [("t", "BIGINT"), ("a", "BIGINT"), ("b", "BIGINT")]
ROWS = [(t, t % 3, (t * 7) % 5) for t in range(1, 13)] + [(13, 9223372036854775807, 1)]
VIEWS = {
    "Recent": "SELECT a, b FROM S [RANGE 4]",
    "Groups": "SELECT a, count(*) AS n, max(b) AS m FROM Recent GROUP BY a",
    "Pairs": "SELECT x.a, x.b, y.b AS c, x.b + y.b AS d FROM Recent x, Recent y WHERE x.a = y.a",
    "Risky": "SELECT a + 1 AS a, b FROM S [RANGE 4]",
    "Twice": "SELECT x.a, y.b FROM Risky x, Risky y WHERE x.a = y.a AND x.b > 0",
}
QUERIES = {
    "groups": "SELECT x.n, y.m FROM Groups x, Groups y WHERE x.a > 0 AND y.a < 2 AND x.n = y.n",
    "pairs": "SELECT x.b, y.d FROM Pairs x, Pairs y WHERE x.a = 1 AND y.a = 2 AND x.c = y.c",
    "outer_pairs": "SELECT x.c, y.d FROM Pairs x LEFT JOIN Pairs y ON x.d = y.b WHERE x.a > 0",
    "without": "SELECT a, c FROM Pairs WHERE d > 3 EXCEPT SELECT a, c FROM Pairs WHERE b > 2",
    "inside": "SELECT a, n FROM Groups WHERE n IN (SELECT m FROM Groups WHERE a > 0)",
    "more": "SELECT a, d FROM Pairs WHERE d > (SELECT max(n) FROM Groups WHERE a < 2)",
    "streams": "SELECT RSTREAM x.a, y.n FROM Groups x, Groups y WHERE x.n = y.m AND x.a = 1",
}
SKIPPING = {
    "skipped": "SELECT x.a, y.b FROM Twice x, Twice y WHERE x.b = y.b AND x.a > 1",
}


def of_reference(query, policy="stop"):
    """{(ts, row): weight} by definition."""
    streams = {"S": (SCHEMA, [(row[0], i, row) for i, row in enumerate(ROWS)])}
    return Counter(
        {(t, r): w for t, w, r in reference.evaluate(query, streams, {}, VIEWS, 1, policy)}
    )


def of_engine(engine, name):
    """{(ts, row): weight} that the engine has put out."""
    found = Counter()
    for row in engine.results(name, "rows"):
        ts, weight, *values = row.values()
        found[ts, tuple(values)] += weight
    return found


@pytest.fixture
def engine(spark):
    with Engine(spark=spark) as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a BIGINT, b BIGINT) TIMESTAMP BY t;")
        for name, text in VIEWS.items():
            engine.execute(f"CREATE VIEW {name} AS {text}")
        for name, text in QUERIES.items():
            engine.execute(f"CREATE QUERY q_{name} AS {text}")
        for name, text in SKIPPING.items():
            engine.execute(f"CREATE QUERY q_{name} ON ERROR SKIP AS {text}")
        for row in ROWS:
            engine.push("S", [row])
            engine.run_until_idle()
        engine.finish()
        yield engine


def test_answers_are_those_of_the_definition_and_each_use_of_a_view_is_counted(engine):
    for name, text in QUERIES.items():
        assert of_engine(engine, f"q_{name}") == of_reference(text), name
    for name, text in SKIPPING.items():
        assert of_engine(engine, f"q_{name}") == of_reference(text, "skip"), name
        came = [row for row in engine.left_out(f"q_{name}").to_pylist() if row["weight"] > 0]
        assert [(row["ts"], row["weight"]) for row in came] == [(13, 4)]

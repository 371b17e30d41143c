"""Where queues stand when nobody has said anything: where work divides."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.planning.placement import QueuePlacement, edges

DECLARED = """
CREATE STREAM S (t BIGINT, k INT, v INT, d DOUBLE) TIMESTAMP BY t;
CREATE STREAM T (t BIGINT, k INT, v INT) TIMESTAMP BY t;
CREATE VIEW counted AS SELECT k, count(*) AS n, max(v) AS m FROM S [RANGE 3] GROUP BY k;
CREATE VIEW by_d AS SELECT d, count(*) AS n FROM S [RANGE 3] GROUP BY d;
CREATE VIEW by_d_and_k AS SELECT d, k, count(*) AS n FROM S [RANGE 3] GROUP BY d, k;
"""


def queued(*queries: str) -> set[str]:
    """The edges that have a queue by default, as the kinds of the two operators."""
    with Engine() as engine:
        engine.execute(DECLARED)
        for number, query in enumerate(queries):
            engine.execute(f"CREATE QUERY q{number} AS {query};")
        operators = engine.graph.operators
        found = QueuePlacement().queues(engine.graph)
        return {" ".join(operators[each].label().split()[0] for each in edge) for edge in found}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, n FROM counted",
        "SELECT k, max(n * 2) AS x FROM counted WHERE n > 1 GROUP BY k",
        "SELECT ISTREAM k, n FROM counted WHERE n > 1",
        "SELECT DISTINCT k, v FROM S [RANGE 3]",
        "SELECT count(*) AS n FROM S [RANGE 3]",
        "SELECT S.k, S.v, T.v AS w FROM S [RANGE 3], T [RANGE 3] WHERE S.k = T.k",
        "SELECT k, count(*) AS n FROM (SELECT k, v FROM S [PARTITION BY k ROWS 3]) AS r GROUP BY k",
    ],
)
def test_a_chain_that_stays_divided_by_its_keys_has_none(query: str) -> None:
    assert queued(query) == set()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT n, count(*) AS x FROM counted GROUP BY n", {"Aggregate Aggregate"}),
        ("SELECT k + 1 AS l, max(n) AS x FROM counted GROUP BY k + 1", {"Aggregate Aggregate"}),
        ("SELECT max(n) AS x FROM counted", {"Aggregate Aggregate"}),
        ("SELECT DISTINCT n FROM counted", {"Aggregate Distinct"}),
        (
            "SELECT d, max(n) AS x FROM by_d_and_k GROUP BY d",
            {"Aggregate Aggregate"},
        ),
        (
            "SELECT d, max(n) AS x FROM by_d GROUP BY d",  # 0.0 and -0.0 are one key
            {"Aggregate Aggregate"},
        ),
        (
            "SELECT S.v, T.v AS w FROM S [RANGE 3], T [RANGE 3] WHERE S.k = T.k",
            {"Join Istream"},
        ),
        (
            "SELECT counted.k, T.v FROM counted, T [RANGE 3] WHERE counted.k = T.k",
            {"Aggregate Join"},
        ),
    ],
)
def test_where_rows_are_divided_anew_there_is_one(query: str, found: set[str]) -> None:
    assert queued(query) == found


def test_what_several_read_has_a_queue_behind_it() -> None:
    assert queued("SELECT k, n FROM counted", "SELECT k FROM counted WHERE n > 1") == {
        "Aggregate Output"
    }


def test_a_strategy_and_before_it_a_user_have_queues_as_they_want() -> None:
    with Engine() as engine:
        engine.execute(DECLARED + "CREATE QUERY q AS SELECT k, n FROM counted;")
        (edge,) = edges(engine.graph)
        chosen = QueuePlacement().choose(engine.graph, {edge})
        assert chosen.queues(engine.graph) == {edge}
        assert chosen.say(edge[0], False).queues(engine.graph) == set()
        assert QueuePlacement().say(edge[0], True).queues(engine.graph) == {edge}
        assert chosen.undecided().queues(engine.graph) == set()

"""From when on operators that began late are as those that were there from the beginning."""

from __future__ import annotations

import json

import pytest

from millpond.catalog import Catalog, RelationEntry, StreamEntry
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_statement
from millpond.cql.statements import Create
from millpond.errors import Position
from millpond.identities import BY_NUMBER
from millpond.planning.convergence import ALWAYS, foreseen, settle
from millpond.planning.draft import add_query
from millpond.planning.graph import Graph
from millpond.planning.optimise import optimise
from millpond.planning.plan_data import from_data, to_data
from millpond.schema import FOREVER

DDL = (
    "CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts",
    "CREATE STREAM T (ts BIGINT, k INT, v INT) TIMESTAMP BY ts",
    "CREATE RELATION R (k INT, name STRING)",
)
GROUPED = "SELECT k, count(*) AS n FROM S [RANGE 10] GROUP BY k"
SINCE = {"stream:s": 100, "stream:t": 200, "relation:r@1": 150}


def plan_of(text):
    catalog = Catalog()
    for statement in DDL:
        apply(check_statement(statement, Position(1, 1), catalog).action, catalog)
    assert all(isinstance(e, StreamEntry | RelationEntry) for e in catalog.entries.values())
    action = check_statement(f"CREATE QUERY q AS {text}", Position(1, 1), catalog).action
    assert isinstance(action, Create)
    return optimise(action.entry.plan)


def graph_of(text, late=None):
    """The operators of a query from the beginning, and of one that comes late."""
    graph = Graph()
    for epoch, (name, query) in enumerate([("early", text), ("late", late or text)]):
        before = set(graph.operators)
        add_query(graph, name, plan_of(query), epoch)
        for identity in [each for each in graph.operators if each not in before]:
            settle(graph, identity, SINCE if epoch else {})
    return graph


def last_settled(text):
    """When what the late query puts out last is settled: the operator below its output."""
    graph = graph_of(text)
    output = max(graph.operators, key=BY_NUMBER)
    (below,) = graph.queues_of(output)
    return graph.settled[below]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("SELECT k, count(*) FROM S [RANGE 10] GROUP BY k", 111),
        ("SELECT k, count(*) FROM S [NOW] GROUP BY k", 101),
        ("SELECT k, count(*) FROM S [RANGE 10 SLIDE 20] GROUP BY k", 120),
        ("SELECT k, count(*) FROM S [TUMBLE 30] GROUP BY k", 120),
        ("SELECT k, count(*) FROM S [HOP 30 SLIDE 20] GROUP BY k", 130),
        ("SELECT k, count(*) FROM S [SESSION 30 PARTITION BY k] GROUP BY k", FOREVER),
        ("SELECT k, count(*) FROM S [UNBOUNDED] GROUP BY k", FOREVER),
        ("SELECT k, count(*) FROM S [PARTITION BY k ROWS 2] GROUP BY k", FOREVER),
        ("SELECT k, count(*) FROM S [ROWS 4 SLIDE 2] GROUP BY k", FOREVER),
        ("SELECT k, count(*) FROM S [ROWS 4] GROUP BY k", FOREVER),
        ("SELECT S.k, T.v FROM S [RANGE 10], T [RANGE 5] WHERE S.k = T.k", 206),
        ("SELECT S.k, R.name FROM S [RANGE 10], R WHERE S.k = R.k", 150),
        ("SELECT k, count(*) FROM R GROUP BY k", 150),
        (f"SELECT count(*) FROM (ISTREAM({GROUPED})) [RANGE 30]", 142),
        ("RSTREAM(SELECT k, count(*) FROM S [RANGE 10] GROUP BY k)", 111),
        ("SELECT count(*) FROM S [RANGE 10] SAMPLE(50)", 111),
    ],
)
def test_times_follow_from_windows(text, time):
    assert last_settled(text) == time


def test_whoever_was_there_from_the_beginning_is_always_settled():
    graph = graph_of("SELECT k, count(*) FROM S [UNBOUNDED] GROUP BY k")
    first = min(graph.operators, key=BY_NUMBER)
    assert graph.settled[first] == ALWAYS


def test_what_will_become_one_is_foreseen_from_the_inputs_up():
    text = "SELECT count(*) FROM (ISTREAM(SELECT DISTINCT k FROM S [RANGE {}])) [RANGE 30]"
    found = foreseen(graph_of(text.format(10)))
    assert [each.at for each in found] == sorted(each.at for each in found)
    assert found[-1].at == 142
    assert not foreseen(graph_of(text.format(10), text.format(11)))


def test_above_windows_of_rows_it_is_as_many_rows():
    found = foreseen(graph_of("SELECT k, count(*) FROM S [ROWS 4] GROUP BY k"))
    assert [each.rows for each in found] == [4, 4]


def test_above_what_never_settles_nothing_is_foreseen():
    assert not foreseen(graph_of("SELECT k, count(*) FROM S [PARTITION BY k ROWS 2] GROUP BY k"))


def test_operators_are_the_same_after_some_became_one_and_were_written_down():
    text = "SELECT S.k, count(*) FROM S [RANGE 10], R WHERE S.k = R.k GROUP BY S.k"
    graph, again = graph_of(text), Graph()
    foreseen(graph)
    again.add(from_data(json.loads(json.dumps(to_data(graph.whole()))), {}))
    assert again.operators == graph.operators
    assert again.epochs == graph.epochs
    assert again.whole() == graph.whole()
    assert all(again.made_of(node) == graph.made_of(node) for node in plan_of(text).walk())

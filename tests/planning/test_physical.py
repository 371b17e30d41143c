"""The graph of all queries: equal parts exist once, and go when nobody reads them."""

from __future__ import annotations

import pytest

from millpond.planning.draft import add_query
from millpond.planning.graph import Graph
from millpond.planning.optimise import optimise
from millpond.planning.physical import (
    AggregateOperator,
    ArrivalsOperator,
    CountOperator,
    DifferenceOperator,
    JoinOperator,
    OutputOperator,
    RowsWindowOperator,
    SnapshotsOperator,
)
from tests.planning.test_rewrites import checked


def graph_of(**queries):
    """A graph with these queries, and the ids of their outputs."""
    graph = Graph()
    return graph, {
        name: add_query(graph, name, optimise(checked(q))) for name, q in queries.items()
    }


def kinds(graph):
    return [type(operator) for operator in graph.operators.values()]


COUNT = "SELECT a, count(*) AS c FROM S [RANGE 5] GROUP BY a"


def test_equal_queries_exist_once():
    graph, _ = graph_of(one=COUNT, two=COUNT.replace("S [", "S x [").replace("c FROM", "d FROM"))
    assert kinds(graph) == [AggregateOperator, OutputOperator, OutputOperator]


def test_equal_subplans_of_different_queries_exist_once():
    graph, outputs = graph_of(
        one=f"SELECT a FROM ({COUNT}) WHERE c > 1", two=f"SELECT a FROM ({COUNT}) WHERE c > 2"
    )
    assert kinds(graph) == [AggregateOperator, OutputOperator, OutputOperator]
    (shared,) = graph.upstream(outputs["one"]) & graph.upstream(outputs["two"])
    assert graph.readers(shared) == [outputs["one"], outputs["two"]]


def test_queries_of_another_epoch_have_operators_of_their_own():
    graph = Graph()
    for epoch in (0, 1, 1):
        add_query(graph, f"q{len(graph.operators)}", optimise(checked(COUNT)), epoch)
    assert kinds(graph).count(AggregateOperator) == 2


def test_removing_a_query_removes_what_nobody_else_reads():
    graph, outputs = graph_of(
        one=COUNT, two=COUNT, three="SELECT DISTINCT a FROM S [RANGE 5]", four="SELECT a FROM S"
    )
    assert graph.remove(outputs["one"]) == [outputs["one"]]
    removed = graph.remove(outputs["two"])
    assert removed[0] == outputs["two"]
    assert len(removed) == 2
    assert kinds(graph) == [CountOperator, OutputOperator, OutputOperator]
    graph.remove(outputs["three"])
    graph.remove(outputs["four"])
    assert graph.operators == {}


def test_a_removed_operator_may_come_back_under_a_new_name():
    graph, outputs = graph_of(one=COUNT)
    before = set(graph.operators)
    graph.remove(outputs["one"])
    add_query(graph, "one", optimise(checked(COUNT)))
    assert not before & set(graph.operators)
    assert len(graph.operators) == 2


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a FROM S WHERE a > 1", [OutputOperator]),
        ("SELECT a FROM S [RANGE 5]", [DifferenceOperator, OutputOperator]),
        ("SELECT S.a, n FROM S [RANGE 5], R WHERE a = k AND b > 1",
         [JoinOperator, DifferenceOperator, OutputOperator]),
        (COUNT, [AggregateOperator, OutputOperator]),
        ("SELECT a FROM S [ROWS 3]", [RowsWindowOperator, DifferenceOperator, OutputOperator]),
        ("SELECT RSTREAM a FROM S [RANGE 3]", [SnapshotsOperator, OutputOperator]),
        ("SELECT a FROM (ISTREAM(SELECT DISTINCT a FROM S [NOW])) [ROWS 2]",
         [CountOperator, ArrivalsOperator, RowsWindowOperator, DifferenceOperator, OutputOperator]),
        ("SELECT k FROM R EXCEPT SELECT a FROM S [NOW]",
         [CountOperator, OutputOperator]),
        ("SELECT k, n FROM R UNION ALL SELECT k, n FROM Fixed", [OutputOperator]),
    ],
)  # fmt: skip
def test_only_what_keeps_state_is_an_operator(query, expected):
    graph, _ = graph_of(q=query)
    assert kinds(graph) == expected


def test_selections_and_projections_above_a_join_are_part_of_it():
    graph, _ = graph_of(q="SELECT S.a + 1 AS c FROM S [RANGE 5], R WHERE a = k AND b > k + 1")
    (join,) = (o for o in graph.operators.values() if isinstance(o, JoinOperator))
    assert join.post.schema.names == ("c",)
    assert "then Project" in graph.describe()


def test_an_operator_over_ranges_knows_that_nothing_is_taken_back():
    for query, expected in (
        (COUNT, True),
        (COUNT.replace("RANGE", "ROWS"), False),
        ("SELECT n, count(*) AS c FROM R GROUP BY n", False),
        ("SELECT n, count(*) AS c FROM S [NOW], Fixed WHERE a = k GROUP BY n", True),
    ):
        graph, _ = graph_of(q=query)
        (found,) = (o for o in graph.operators.values() if isinstance(o, AggregateOperator))
        assert found.is_append_only is expected

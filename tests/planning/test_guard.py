"""ON ERROR SKIP in plans: clauses guarded where they stand, and what they leave out as plans."""

from __future__ import annotations

import pytest

from millpond.catalog import Catalog
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_script
from millpond.cql.expressions import OuterColumn, walk
from millpond.errors import MillpondError
from millpond.planning.attempts import may_fail
from millpond.planning.draft import add_query
from millpond.planning.graph import Graph
from millpond.planning.guard import guard, left_out
from millpond.planning.optimise import optimise
from millpond.planning.predicates import expressions_of
from millpond.schema import Type
from tests.planning.test_rewrites import ALL
from tests.planning.test_rewrites import checked as elsewhere

DECLARATIONS = """
CREATE STREAM S (t BIGINT, a BIGINT, b INT) TIMESTAMP BY t;
CREATE RELATION R (k BIGINT, n INT);
"""


def checked(query, before=""):
    """The plan of a query as it is written."""
    catalog = Catalog()
    for statement in check_script(f"{DECLARATIONS}{before}CREATE QUERY q AS\n{query};", catalog):
        apply(statement.action, catalog)
    return catalog.get("q").plan


# query; guarded plan
PLANS = """
SELECT a + 1 AS c, b FROM S;
Istream
  Project attempt((a + 1)) AS c, b
    Filter succeeds((a + 1))
      Window UNBOUNDED
        Stream S

SELECT b FROM S [ROWS 5 WHERE a * 2 > b] WHERE a + 1 = 2 AND b > 1;
Istream
  Project b
    Filter ((attempt((a + 1)) = 2) AND (b > 1))
      Window ROWS 5
        Filter (attempt((a * 2)) > cast(b AS BIGINT))
          Stream S

SELECT a * 2, sum(-a) FROM S GROUP BY a * 2 HAVING max(a) + 1 > 0;
Project (a * 2) AS a * 2, sum(neg(a)) AS sum(-a)
  Filter (attempt((max(a) + 1)) > 0)
    Aggregate sum(attempt(neg(a))), max(a) BY attempt((a * 2))
      Filter (succeeds((a * 2)) AND succeeds(neg(a)))
        Window UNBOUNDED
          Stream S

SELECT b, n FROM S LEFT JOIN R ON a + 1 = k AND n = b;
Istream
  Project b, n
    Join LEFT ON ((attempt((a + 1)) = k) AND (n = b))
      Window UNBOUNDED
        Stream S
      Relation R

SELECT b FROM S WHERE a + 1 IN (SELECT k + 1 FROM R);
Istream
  Project b
    Filter (attempt((a + 1)) IN Project attempt((k + 1)) AS k + 1)
      Window UNBOUNDED
        Stream S

SELECT (SELECT max(k) FROM R) + b AS m FROM S;
Istream
  Project m
    Filter succeeds
      Project attempt((scalar(Project max(k)) + cast(b AS BIGINT))) AS m, \
succeeds((scalar(Project max(k)) + cast(b AS BIGINT))) AS succeeds
        Window UNBOUNDED
          Stream S
"""
CASES = [tuple(chunk.strip("\n").split(";\n", 1)) for chunk in PLANS.split("\n\n")]


@pytest.mark.parametrize(("query", "expected"), CASES, ids=[query for query, _ in CASES])
def test_clauses_are_guarded_as_they_are_written(query, expected):
    plan = checked(query)
    guarded = guard(plan).plan
    assert str(guarded) == expected
    assert guarded.schema == plan.schema
    assert guard(guarded).plan == guarded


def every_expression(plan):
    return [e for node in plan.walk() for e in expressions_of(node)]


@pytest.mark.parametrize("query", [query for query, _ in CASES])
def test_no_rewrite_brings_failure_back(query):
    for plan in (checked(query), *(fault.plan for fault in guard(checked(query)).faults)):
        optimised = optimise(plan, "skip")
        assert not any(map(may_fail, every_expression(optimised)))


@pytest.mark.parametrize("query", list(dict.fromkeys(query for _, query, _ in ALL)))
def test_a_plan_in_which_nothing_fails_stays_as_it_is(query):
    plan = elsewhere(query)
    guarded = guard(plan)
    fails = any(map(may_fail, every_expression(plan)))
    assert fails == bool(guarded.faults)
    assert fails or guarded.plan == plan


def test_arithmetic_that_cannot_leave_bigint_needs_no_guard():
    plan = checked("SELECT b + 1, b * b - 7, -b, abs(b), round(b, -2), (a % 10) * b FROM S")
    assert guard(plan) == (plan, [])
    assert guard(checked("SELECT b * b * b FROM S")).faults


def faults(query, before=""):
    """(clause, expressions) of everything that may fail."""
    return [(f.clause, f.expressions) for f in guard(checked(query, before)).faults]


def test_faults_say_where_the_expression_stands_and_what_it_is():
    query = "SELECT a + 1 AS c, b,\n  -a\nFROM S [NOW WHERE  a  * 2 > 1]\nWHERE a - 1 > 0 AND b > 1"
    assert faults(query) == [
        ("WHERE", ("line 7, column 20: WHERE a * 2 > 1",)),
        ("WHERE", ("line 8, column 7: WHERE a - 1 > 0 AND b > 1",)),
        ("SELECT", ("line 5, column 8: SELECT a + 1", "line 6, column 3: SELECT -a")),
    ]
    grouped = (
        "SELECT a * 2, count(*), sum(a + 1) + 1 FROM S JOIN R ON a + n = k "
        "GROUP BY a * 2 HAVING max(-a) + 1 > 0"
    )
    assert faults(grouped) == [
        ("ON", ("line 5, column 57: ON a + n = k",)),
        (
            "GROUP BY",
            (
                "line 5, column 76: GROUP BY a * 2",
                "line 5, column 29: argument of sum((a + 1))",
                "line 5, column 93: argument of max(neg(a))",
            ),
        ),
        ("HAVING", ("line 5, column 89: HAVING max(-a) + 1 > 0",)),
        ("SELECT", ("line 5, column 25: SELECT sum(a + 1) + 1",)),
    ]


def test_a_view_is_named_where_it_was_written():
    view = "CREATE VIEW V AS SELECT k + 1 AS k FROM R;\n"
    assert faults("SELECT V.k + n AS s FROM V, R", view) == [
        ("SELECT", ("line 4, column 25: SELECT k + 1",)),
        ("SELECT", ("line 6, column 8: SELECT V.k + n",)),
    ]


def test_what_is_left_out_is_a_relation_of_expressions_and_rows():
    plan = left_out(guard(checked("SELECT a + 1, -a FROM S [RANGE 5] WHERE b + a > 1")).faults)
    assert plan.schema.names == ("expression", "row")
    assert set(plan.schema.types) == {Type.STRING}
    assert not plan.is_stream
    assert left_out([]) is None
    assert str(optimise(plan)).splitlines()[0] == "Combine +"


def test_what_a_windows_where_leaves_out_stays():
    (fault,) = guard(checked("SELECT b FROM S [ROWS 2 WHERE a + 1 > 0]")).faults
    assert [node.label() for node in fault.plan.walk()][1:] == [
        "Window UNBOUNDED",
        "Filter not(succeeds((a + 1)))",
        "Stream S",
    ]


def test_what_an_equality_leaves_out_is_looked_for_on_its_own_side():
    (fault,) = guard(checked("SELECT b FROM S JOIN R ON a + 1 = k AND n = b")).faults
    joined = optimise(fault.plan).inputs[0]
    assert str(joined).splitlines()[2:] == [
        "    Filter not(succeeds((a + 1)))",
        "      Stream S",
        "  Relation R",
    ]


CORRELATED = (
    "SELECT b FROM S WHERE EXISTS (SELECT 1 FROM R WHERE k + 1 = S.a AND k * 2 > 1)",
    "SELECT (SELECT sum(k + 1) FROM R WHERE k - 1 = S.a AND n > 1) AS x FROM S",
)


@pytest.mark.parametrize("query", CORRELATED)
def test_what_a_correlated_subquery_leaves_out_names_no_outer_column(query):
    found = guard(checked(query)).faults
    assert found
    for fault in found:
        expressions = [part for e in every_expression(fault.plan) for part in walk(e)]
        assert not any(isinstance(part, OuterColumn) for part in expressions)
        add_query(Graph(), "faults", optimise(fault.plan))


def test_the_policy_is_part_of_what_an_operator_is():
    query = "SELECT a + 1 AS c, count(*) AS n FROM S GROUP BY a + 1"
    graph = Graph()
    for number, policy in enumerate(("stop", "skip", "stop", "skip")):
        add_query(graph, f"q{number}", optimise(checked(query), policy))
    assert len(graph.operators) == 2 + 4
    harmless_too = Graph()
    for number, policy in enumerate(("stop", "skip")):
        add_query(
            harmless_too, f"q{number}", optimise(checked(query.replace("a + 1", "b + 1")), policy)
        )
    assert len(harmless_too.operators) == 1 + 2


def test_an_expression_whose_guards_would_explode_is_refused():
    nested = "a + 1"
    for _ in range(30):
        nested = f"coalesce({nested}, a)"
    with pytest.raises(MillpondError, match=r"line 5, column 8: SELECT .* is too large for ON"):
        guard(checked(f"SELECT {nested} AS c FROM S"))

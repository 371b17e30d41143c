"""Queries become the plans that the text fixtures show."""

from __future__ import annotations

import pytest

from millpond.cql.check.statements import check_statement
from millpond.cql.statements import Create
from millpond.errors import Position
from tests.cql.fixtures_format import Fixture, declared, load
from tests.cql.printing import printed
from tests.cql.validation import validate

THEMES = (
    "expressions",
    "grouping",
    "joins",
    "set_operations",
    "stream_paper",
    "subqueries",
    "to_stream",
    "windows",
)
CATALOG = declared()


@pytest.mark.parametrize("fixture", load(*THEMES), ids=str)
def test_query_becomes_the_plan_shown(fixture: Fixture) -> None:
    action = check_statement(fixture.text, Position(1, 1), CATALOG).action
    assert isinstance(action, Create)
    assert printed(action.entry.plan) == fixture.expected
    validate(action.entry.plan)


def test_equal_queries_under_other_names_have_equal_plans() -> None:
    one = "SELECT x.a AS n FROM S x [ROWS 5], R y WHERE x.a = y.k"
    two = "select Alpha.A as n from s Alpha [rows 5 preceding], r where alpha.a = R.K"
    plans = [check_statement(text, Position(1, 1), CATALOG).action for text in (one, two)]
    assert plans[0].entry.plan == plans[1].entry.plan
    assert hash(plans[0].entry.plan) == hash(plans[1].entry.plan)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (
            "SELECT RANK() OVER (ORDER BY count(*) DESC) AS r, a, count(*) AS n FROM S GROUP BY 2",
            "SELECT RANK() OVER (ORDER BY count(*) DESC) AS r, a, count(*) AS n FROM S GROUP BY a",
        ),
        (
            "SELECT f, a FROM S GROUP BY ROLLUP (2, 1) ORDER BY f LIMIT 1",
            "SELECT f, a FROM S GROUP BY ROLLUP (a, f) ORDER BY f LIMIT 1",
        ),
        ("SELECT a FROM S [TUMBLE INTERVAL '90 seconds']", "SELECT a FROM S [TUMBLE 90 SECONDS]"),
        (
            "SELECT a FROM TABLE(TUMBLE(TABLE S, DESCRIPTOR(t), INTERVAL '10' SECONDS)) SAMPLE (9)",
            "SELECT a FROM S SAMPLE (9) [TUMBLE 10 SECONDS]",
        ),
        (
            "SELECT a, RANK() OVER (ORDER BY x) FROM TABLE(TUMBLE(TABLE S, DESCRIPTOR(t), 10))",
            "SELECT a, RANK() OVER (ORDER BY x) FROM S [TUMBLE 10]",
        ),
        ("SELECT count(DISTINCT (a, x)) AS n FROM S", "SELECT count(DISTINCT a, x) AS n FROM S"),
        ("SELECT count(DISTINCT (a)) AS n FROM S", "SELECT count(DISTINCT a) AS n FROM S"),
        (
            "SELECT * FROM S MATCH_RECOGNIZE (MEASURES FINAL LAST(A.x) AS x PATTERN (A+ B))",
            "SELECT * FROM S MATCH_RECOGNIZE (MEASURES LAST(A.x) AS x PATTERN (A+ B))",
        ),
        (
            "SELECT * FROM S MATCH_RECOGNIZE (MEASURES RUNNING sum(A.x) AS x PATTERN (A+ B))",
            "SELECT * FROM S MATCH_RECOGNIZE (MEASURES sum(A.x) AS x PATTERN (A+ B))",
        ),
    ],
)
def test_two_ways_to_write_a_query_have_one_plan(one: str, two: str) -> None:
    plans = [check_statement(text, Position(1, 1), CATALOG).action for text in (one, two)]
    assert plans[0].entry.plan == plans[1].entry.plan

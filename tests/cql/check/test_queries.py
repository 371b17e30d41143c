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

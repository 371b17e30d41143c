"""Shapes: what plans have in common that differ in constants only."""

from __future__ import annotations

import pytest

from millpond.catalog import Catalog
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_statement
from millpond.errors import Position
from millpond.kernels.expressions import can_lower
from millpond.planning.optimise import optimise
from millpond.planning.shapes import lift

DDL = (
    "CREATE STREAM S (ts BIGINT, k INT, v DOUBLE, s STRING) TIMESTAMP BY ts",
    "CREATE STREAM T (ts BIGINT, k INT) TIMESTAMP BY ts",
    "CREATE RELATION R (k INT PRIMARY KEY, n STRING)",
)


@pytest.fixture(scope="module")
def catalog():
    made = Catalog()
    for text in DDL:
        apply(check_statement(text, Position(1, 1), made).action, made)
    return made


@pytest.fixture
def shape(catalog):
    """The shape of a query's text."""

    def of(text, is_late=False):
        action = check_statement(f"CREATE QUERY q AS {text}", Position(1, 1), catalog).action
        return lift(optimise(action.entry.plan), can_lower, is_late)

    return of


EQUAL = [
    ("SELECT ts, v FROM S WHERE k = 1", "SELECT S.ts AS other, v FROM S WHERE 7 = k"),
    ("SELECT v * 2 FROM S WHERE v > 1.5", "SELECT v * 3 AS x FROM S WHERE v > 2.5"),
    ("SELECT k FROM S WHERE s LIKE 'a%'", "SELECT k FROM S WHERE s LIKE '_b'"),
    ("SELECT k FROM S WHERE k IN (1, 2)", "SELECT k FROM S WHERE k IN (4, 5)"),
    ("SELECT k FROM S WHERE k IN (1, 2)", "SELECT k FROM S WHERE k IN (3, 4, NULL)"),
    ("SELECT k FROM S WHERE k IN (1, 2)", "SELECT k FROM S WHERE 7 = k"),
    ("SELECT k FROM S WHERE k NOT IN (1, 2)", "SELECT k FROM S WHERE k <> 7"),
    (
        "SELECT k FROM S WHERE k IN (1, 2) AND s = 'a'",
        "SELECT k FROM S WHERE s IN ('b', 'c') AND k = 3",
    ),
    ("SELECT k FROM S WHERE s NOT LIKE 'a%'", "SELECT k FROM S WHERE s NOT LIKE '_b'"),
    (
        "SELECT k, count(*) FROM S [RANGE 5] WHERE v > 1 GROUP BY k HAVING count(*) > 2",
        "SELECT k, count(*) FROM S [RANGE 5] WHERE v > 9 GROUP BY k HAVING count(*) > 3",
    ),
    (
        "SELECT k, max(v) FROM S [RANGE 5] WHERE v > 1 GROUP BY k",
        "SELECT k, max(v) FROM S [RANGE 7] WHERE v > 1 GROUP BY k",
    ),
    (
        "SELECT count(*) FROM S [RANGE 5 WHERE k = 1] WHERE v > 1",
        "SELECT count(*) FROM S [RANGE 7 WHERE k = 2] WHERE v > 2",
    ),
    (
        "SELECT S.k FROM S [RANGE 5], T [RANGE 9] WHERE S.k = T.k AND S.k = 1",
        "SELECT S.k FROM S [RANGE 6], T [RANGE 9] WHERE S.k = T.k AND S.k = 1",
    ),
    ("SELECT count(*) FROM S [NOW] WHERE k = 1", "SELECT count(*) FROM S [NOW] WHERE k = 2"),
    ("SELECT k FROM S SAMPLE(5) WHERE k = 1", "SELECT k FROM S SAMPLE(7.5) WHERE k = 2"),
    ("SELECT k FROM S SAMPLE(5)", "SELECT k FROM S SAMPLE(7.5)"),
    ("SELECT k FROM S [ROWS 5]", "SELECT k FROM S [ROWS 7]"),
    (
        "SELECT k, avg(v) FROM S SAMPLE(5) [PARTITION BY k ROWS 5] GROUP BY k",
        "SELECT k, avg(v) FROM S SAMPLE(7) [PARTITION BY k ROWS 7] GROUP BY k",
    ),
    ("SELECT k FROM S [ROWS 5 WHERE k = 1]", "SELECT k FROM S [ROWS 7 WHERE k = 2]"),
    (
        "SELECT k FROM S [PARTITION BY s ROWS 5 SLIDE 2 WHERE k = 1]",
        "SELECT k FROM S [PARTITION BY s ROWS 7 SLIDE 2 WHERE k = 1]",
    ),
    (  # what reads the second window are a query's own elements, whoever else reads them
        "SELECT a.k FROM (SELECT ISTREAM k FROM S WHERE k > 1) a [ROWS 5]",
        "SELECT a.k FROM (SELECT ISTREAM k FROM S WHERE k > 1) a [ROWS 6]",
    ),
    (
        "SELECT k, count(*) FROM (SELECT DISTINCT k, s FROM S WHERE v > 1) a [RANGE 5] GROUP BY k",
        "SELECT k, count(*) FROM (SELECT DISTINCT k, s FROM S WHERE v > 1) a [RANGE 6] GROUP BY k",
    ),
    (
        "SELECT S.k FROM S [RANGE 5], T [RANGE 9] WHERE S.k = T.k AND v > 1",
        "SELECT S.k FROM S [RANGE 5], T [RANGE 9] WHERE S.k = T.k AND v > 2",
    ),
    (
        "SELECT k FROM S WHERE v < 1 AND k IN (SELECT k FROM R WHERE n = 'a')",
        "SELECT k FROM S WHERE v < 2 AND k IN (SELECT k FROM R WHERE n = 'b')",
    ),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_queries_that_differ_in_constants_have_one_shape(shape, one, other):
    first, second = shape(one), shape(other)
    assert first.shape == second.shape
    assert first.constants != second.constants
    assert [c.type for c in first.constants] == [c.type for c in second.constants]


DIFFERENT = [
    ("SELECT ts FROM S WHERE k = 1", "SELECT ts FROM S WHERE k > 1"),
    ("SELECT ts FROM S WHERE k = 1", "SELECT ts FROM S WHERE k <> 1"),
    ("SELECT ts FROM S WHERE k = 1", "SELECT ts FROM S WHERE k = 1 OR k = 2"),
    ("SELECT ts FROM S WHERE k = 1", "SELECT ts FROM T WHERE k = 1"),
    ("SELECT ts FROM S WHERE k = 1", "SELECT ts, k FROM S WHERE k = 1"),
    ("SELECT k FROM S [RANGE 5] WHERE k = 1", "SELECT k FROM S [ROWS 5] WHERE k = 1"),
    ("SELECT count(*) FROM S [NOW] WHERE k = 1", "SELECT count(*) FROM S [RANGE 1] WHERE k = 1"),
    (
        "SELECT count(*) FROM S [RANGE 4 SLIDE 2] WHERE k = 1",
        "SELECT count(*) FROM S [RANGE 6 SLIDE 2] WHERE k = 1",
    ),
    (
        "SELECT k FROM S [ROWS 5 SLIDE 2 WHERE k = 1]",
        "SELECT k FROM S [ROWS 5 SLIDE 3 WHERE k = 1]",
    ),
    (  # nothing is selected below the aggregates: they are the same
        "SELECT k, count(*) FROM S SAMPLE(5) [RANGE 5] GROUP BY k HAVING count(*) > 1",
        "SELECT k, count(*) FROM S SAMPLE(7) [RANGE 5] GROUP BY k HAVING count(*) > 1",
    ),
    ("SELECT k FROM S [ROWS 5] WHERE k = 1", "SELECT k FROM S [ROWS 6] WHERE k = 1"),
    (  # nothing is selected below the windows: they read the same rows
        "SELECT k, count(*) FROM S [RANGE 5] GROUP BY k HAVING count(*) > 1",
        "SELECT k, count(*) FROM S [RANGE 7] GROUP BY k HAVING count(*) > 1",
    ),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_plans_have_other_shapes(shape, one, other):
    assert shape(one).shape != shape(other).shape


NONE = [
    "SELECT k, max(v) FROM S [RANGE 5] GROUP BY k",  # no constant
    "SELECT ts + ts FROM S WHERE k = 1",  # may fail: a failure is a query's own
]


@pytest.mark.parametrize("text", NONE)
def test_what_is_not_lifted(shape, text):
    assert shape(text) is None


def test_a_row_is_tagged_where_the_first_constant_is_needed(shape):
    """The aggregate below is the same for all queries, and runs once."""
    text = "SELECT k, count(*) AS c FROM S [RANGE 5] GROUP BY k HAVING count(*) > 3"
    assert str(shape(text).plan).splitlines() == [
        "Match queries ON (count(*) > ?1)",
        "  Aggregate count(*) BY k",
        "    Window RANGE 5",
        "      Stream S",
    ]


def test_a_window_over_what_is_selected_has_a_length_of_its_own(shape):
    text = "SELECT k, count(*) AS c FROM S [RANGE 5] WHERE k IN (1, 2) GROUP BY k"
    lifted = shape(text)
    assert [str(each) for each in lifted.constants] == ["(1, 2)", "5"]
    assert str(lifted.plan).splitlines()[-2:] == [
        "      Match queries ON one_of(k, ?1), Window RANGE ?2",
        "        Stream S",
    ]


def test_a_rows_window_over_what_is_selected_has_a_length_of_its_own(shape):
    lifted = shape("SELECT k, v FROM S [PARTITION BY s ROWS 5 WHERE k = 1]")
    assert [str(each) for each in lifted.constants] == ["1", "5"]
    assert str(lifted.plan).splitlines()[-3:] == [
        "      Window PARTITION BY s, ~query ROWS ?2",
        "        Match queries ON one_of(k, ?1)",
        "          Stream S",
    ]


def test_the_rate_of_a_sample_is_a_limit_below_which_draws_are(shape):
    lifted = shape("SELECT ts FROM S SAMPLE(50) WHERE v < k AND k = 1 AND v > 2")
    assert [str(each) for each in lifted.constants] == ["2.0", "1", str(2**39)]
    assert str(lifted.plan).splitlines()[-1] == "      Stream S"
    assert "AND (v > ?1)) AND one_of(k, ?2)) AND (draw < ?3))" in str(lifted.plan)


def test_a_sample_of_what_a_query_computes_is_its_own(shape):
    assert shape("SELECT k FROM (SELECT ISTREAM k FROM S WHERE k > 1) a SAMPLE(5)") is None


def test_a_late_query_is_tagged_where_its_streams_are_read(shape):
    assert shape("SELECT ts FROM S WHERE k = 1", is_late=True).streams == ("s",)
    having = "SELECT k, count(*) FROM S [RANGE 5] GROUP BY k HAVING count(*) > 3"
    assert shape(having, is_late=True) is None  # every row would be tagged with every query
    relation = "SELECT S.k FROM S, R WHERE S.k = R.k AND v > 1 AND n = 'a'"
    assert shape(relation, is_late=True) is None  # the relation's rows came before the query
    rstream = "SELECT RSTREAM k FROM S [RANGE 5] WHERE v > 1"
    assert shape(rstream) is not None
    assert shape(rstream, is_late=True) is None  # what ends was there before the query
    istream = (
        "SELECT S.k FROM S [NOW], (SELECT ISTREAM k FROM R) t [RANGE 9] WHERE S.k = t.k AND v > 1"
    )
    assert shape(istream) is not None
    assert shape(istream, is_late=True) is None

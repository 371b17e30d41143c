"""Which selections let only rows through that others let through too."""

from __future__ import annotations

import itertools
import json
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.catalog import Catalog
from millpond.cql.algebra import Filter
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_statement
from millpond.cql.expressions import Call, Column, Literal
from millpond.errors import Position
from millpond.kernels.expressions import Condition
from millpond.planning.implication import implies, never_fails
from millpond.planning.optimise import optimise
from millpond.planning.plan_data import from_data, to_data
from millpond.planning.predicates import conjoin
from millpond.schema import Type
from tests.drawn_examples import examples

CATALOG = Catalog()
DDL = (
    "CREATE STREAM S (ts BIGINT, k INT, b BIGINT, v DOUBLE, s STRING, d DATE, t BOOLEAN) "
    "TIMESTAMP BY ts"
)
apply(check_statement(DDL, Position(1, 1), CATALOG).action, CATALOG)


def predicate(where):
    """A condition as the planner has it."""
    text = f"CREATE QUERY q AS SELECT ts FROM S WHERE {where}"
    plan = optimise(check_statement(text, Position(1, 1), CATALOG).action.entry.plan)
    return next(node.predicate for node in plan.walk() if isinstance(node, Filter))


IMPLIED = [
    ("v > 5", "v > 4"),
    ("v > 5", "v >= 5"),
    ("v > 5", "4 < v"),
    ("v = 5", "v BETWEEN 1 AND 9"),
    ("k > 4", "k >= 5"),
    ("k < 5 AND v > 1", "k <= 4"),
    ("k = 3", "k IN (1, 2, 3)"),
    ("k IN (1, 3, NULL)", "k IN (1, 2, 3)"),
    ("k IN (1, 3, 9) AND k < 5", "k IN (1, 2, 3)"),
    ("k > 5", "k <> 5"),
    ("k > 5", "k NOT IN (1, 5)"),
    ("k NOT IN (1, 5)", "k <> 5"),
    ("k = 5", "k IS NOT NULL"),
    ("s LIKE '%x'", "s IS NOT NULL"),
    ("s LIKE 'abc%'", "s LIKE 'ab%'"),
    ("s LIKE 'abc_e%'", "s LIKE 'abc%'"),
    ("s = 'abc'", "s LIKE '_b%'"),
    ("s LIKE 'b%'", "s > 'a'"),
    ("s LIKE 'abc%'", "s <> 'b'"),
    ("d > DATE '2024-02-28'", "d >= DATE '2024-01-01'"),
    ("k > 5", "k > 3 OR v > 1"),
    ("upper(s) = 'A' AND k = 1", "upper(s) = 'A'"),
    ("b = 2", "b > 1"),
    ("t = TRUE", "t IS NOT NULL"),
]
NOT_IMPLIED = [
    ("v > 4", "v > 5"),
    ("v >= 5", "v > 5"),
    ("v > 5", "v < 9"),
    ("v > 5", "k > 5"),
    ("v > 5 OR k = 1", "v > 5"),
    ("k IN (1, 4)", "k IN (1, 2, 3)"),
    ("k <> 5", "k > 5"),
    ("k IS NULL", "k IS NOT NULL"),
    ("s LIKE 'ab%'", "s LIKE 'abc%'"),
    ("s LIKE '%abc'", "s LIKE 'abc%'"),
    ("s LIKE 'a%'", "s < 'b'"),
    ("k NOT IN (1, NULL)", "k > 9"),
    ("NOT (k > 5)", "v > 5"),
    ("v > 0", "sqrt(v) > 0"),
]


@pytest.mark.parametrize(("stronger", "weaker"), IMPLIED)
def test_what_is_implied(stronger, weaker):
    assert implies(predicate(stronger), predicate(weaker))
    assert implies(predicate(stronger), predicate(stronger))


@pytest.mark.parametrize(("stronger", "weaker"), NOT_IMPLIED)
def test_what_is_not_known_to_be(stronger, weaker):
    assert not implies(predicate(stronger), predicate(weaker))


def test_what_can_fail_is_known():
    assert never_fails(predicate("k > 5 AND s LIKE 'a%' AND v / 0 > 1"))
    assert not never_fails(predicate("k > 5 AND b + 1 > 2"))
    assert not never_fails(predicate("CAST(v AS INT) = 2"))


DOMAINS = {
    Type.INT: (-1, 0, 1, 2, 3),
    Type.BIGINT: (0, 1, 2**63 - 1, -(2**63)),
    Type.DOUBLE: (-0.0, 0.0, 0.5, 1.0, float("nan"), float("inf"), float("-inf")),
    Type.STRING: ("", "a", "ab", "b", "a\nb", "é", "😀", "%"),
    Type.DATE: (date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29)),
    Type.BOOLEAN: (False, True),
}
COLUMNS = [Column(position, type_) for position, type_ in enumerate(DOMAINS)]
ARROW = (pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.bool_())
PATTERNS = ("%", "a%", "ab%", "_", "a_%", "%b", "a", "", "\\%%", "a%b", "é%")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def literals(type_):
    return st.sampled_from([Literal(value, type_) for value in (*DOMAINS[type_], None)])


def call(function, *arguments):
    return Call(function, arguments, Type.BOOLEAN)


@st.composite
def comparisons(draw, columns=COLUMNS):
    column = draw(st.sampled_from(columns))
    kinds = ("compare", "compare", "flip", "in", "not in", "null")
    kind = draw(st.sampled_from((*kinds, "like") if column.type is Type.STRING else kinds))
    constant = draw(literals(column.type))
    if kind == "compare":
        return call(draw(st.sampled_from(COMPARISONS)), column, constant)
    if kind == "flip":
        return call(draw(st.sampled_from(COMPARISONS)), constant, column)
    if kind in ("in", "not in"):
        found = call("in", column, *draw(st.lists(literals(column.type), min_size=1, max_size=3)))
        return call("not", found) if kind == "not in" else found
    if kind == "like":
        like = call("like", column, Literal(draw(st.sampled_from(PATTERNS)), Type.STRING))
        return call("not", like) if draw(st.booleans()) else like
    is_null = call("is_null", column)
    return call("not", is_null) if draw(st.booleans()) else is_null


def predicates(most):
    either = st.builds(lambda a, b: call("or", a, b), comparisons(), comparisons())
    parts = st.lists(
        st.one_of(comparisons(), comparisons(), comparisons(), either), min_size=1, max_size=most
    )
    return parts.map(conjoin)


def rows():
    """Each value of each column, beside values of the others, and NULLs."""
    domains = [(*domain, None) for domain in DOMAINS.values()]
    longest = max(map(len, domains))
    shifts = itertools.product(range(longest), (1, 3, 5, 7))
    listed = [
        [domain[(start + step * place) % len(domain)] for place, domain in enumerate(domains)]
        for start, step in shifts
    ]
    return [
        pa.array(column, type_)
        for column, type_ in zip(zip(*listed, strict=True), ARROW, strict=True)
    ]


ROWS = rows()


def passing(part):
    """The numbers of the rows that a predicate lets through."""
    kept = Condition([part]).holds(ROWS, len(ROWS[0]))
    return {number for number, is_kept in enumerate(kept) if is_kept}


@pytest.mark.slow
@examples(1000)
@given(predicates(4), predicates(2))
def test_what_is_implied_holds_of_all_rows_that_pass(stronger, weaker):
    if implies(stronger, weaker):
        assert passing(stronger) <= passing(weaker), f"{stronger} and {weaker}"


@pytest.mark.slow
@examples(1000)
@given(st.data())
def test_comparisons_of_one_column_too(data):
    """So that more is implied: both look at the same values."""
    of_column = comparisons([data.draw(st.sampled_from(COLUMNS))])
    stronger = conjoin(data.draw(st.lists(of_column, min_size=1, max_size=3)))
    weaker = data.draw(of_column)
    if implies(stronger, weaker):
        assert passing(stronger) <= passing(weaker), f"{stronger} and {weaker}"


@given(predicates(4))
def test_predicates_come_back_from_plain_data(part):
    again = from_data(json.loads(json.dumps(to_data(part))), {})
    assert repr(again) == repr(part)

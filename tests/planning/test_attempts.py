"""What is said of expressions that fail agrees with their meaning, and itself never fails."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.cql.algebra import RelationScan
from millpond.cql.expressions import Call, Column, InSubquery, Literal, OuterColumn, Quantified
from millpond.planning.attempts import failure, may_fail, sizes, success, truth, value
from millpond.schema import Field, Schema, Type

MAX = 2**63 - 1
FAILED = "failed"
ROWS = list(itertools.product((None, 1, MAX, -MAX - 1), (None, MAX), (None, True, False)))
"""Values of a BIGINT, another BIGINT and a BOOLEAN."""

A, B = Column(0, Type.BIGINT, "a"), Column(1, Type.BIGINT, "b")
P = Column(2, Type.BOOLEAN, "p")
ONE, NULL = Literal(1, Type.BIGINT), Literal(None, Type.BIGINT)


def call(function, *arguments):
    """A call of the type that its function has here."""
    numbers = ("+", "neg", "case", "coalesce", "nullif", "greatest", "attempt")
    return Call(function, arguments, arguments[-1].type if function in numbers else Type.BOOLEAN)


def meaning(expression, row):
    """The value of an expression by docs/semantics.md, or FAILED."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Column):
        return row[expression.position]
    match expression.function:
        case "attempt":
            found = meaning(expression.arguments[0], row)
            return None if found is FAILED else found
        case "succeeds":
            return meaning(expression.arguments[0], row) is not FAILED
        case "case":
            return case_of(expression.arguments, row)
        case "coalesce":
            found = (meaning(argument, row) for argument in expression.arguments)
            return next((v for v in found if v is not None), None)
    return applied(expression.function, [meaning(a, row) for a in expression.arguments])


def case_of(arguments, row):
    for condition, result in zip(arguments[:-1:2], arguments[1::2], strict=False):
        holds = meaning(condition, row)
        if holds is FAILED or holds:
            return FAILED if holds is FAILED else meaning(result, row)
    return meaning(arguments[-1], row) if len(arguments) % 2 else None


def applied(function, values):
    """A function that looks at all its arguments."""
    if function in ("and", "or"):
        winner = function == "or"
        order = [winner, FAILED, None, not winner]
        return next(v for v in order if any(v is w for w in values))
    if function == "in":
        return applied("or", [applied("=", [values[0], other]) for other in values[1:]])
    if any(v is FAILED for v in values):
        return FAILED
    if function == "is_null":
        return values[0] is None
    if function == "is_not_distinct":
        return values[0] == values[1]
    if function == "greatest":
        return max((v for v in values if v is not None), default=None)
    if function == "nullif":
        return None if values[0] == values[1] else values[0]
    return None if None in values else strict(function, *values)


def strict(function, *values):
    if function in ("+", "neg"):
        result = sum(values) if function == "+" else -values[0]
        return result if -MAX - 1 <= result <= MAX else FAILED
    return {
        "not": lambda x: not x,
        "=": lambda x, y: x == y,
        ">": lambda x, y: x > y,
    }[function](*values)


def expressions():
    """Numbers and conditions in one another, drawn from a seed."""
    return st.integers(0, 2**32).map(lambda seed: drawn(random.Random(seed), 3))


def drawn(rng, depth):
    return number(rng, depth) if rng.random() < 0.5 else condition(rng, depth)


def number(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([A, B, ONE, NULL])
    function = rng.choice(["+", "+", "neg", "nullif", "greatest", "coalesce", "case", "cases"])
    one, two, three = (number(rng, depth - 1) for _ in range(3))
    if function == "neg":
        return call("neg", one)
    if function == "case":
        return call("case", condition(rng, depth - 1), one)
    if function == "cases":
        first, second = condition(rng, depth - 1), condition(rng, depth - 1)
        return call("case", first, one, second, two, three)
    return call(function, one, two)


def condition(rng, depth):
    if depth == 0 or rng.random() < 0.1:
        return P
    function = rng.choice(["and", "or", "not", "=", ">", "is_not_distinct", "in", "is_null"])
    if function in ("and", "or"):
        return call(function, condition(rng, depth - 1), condition(rng, depth - 1))
    if function == "not":
        return call("not", condition(rng, depth - 1))
    numbers = [number(rng, depth - 1) for _ in range({"in": 3, "is_null": 1}.get(function, 2))]
    return call(function, *numbers)


@given(expressions())
def test_a_value_is_null_where_the_expression_fails_and_success_says_where(expression):
    for row in ROWS:
        meant = meaning(expression, row)
        assert meaning(value(expression), row) == (None if meant is FAILED else meant)
        assert meaning(success(expression), row) is (meant is not FAILED)
        assert meaning(failure([expression]), row) is (meant is FAILED)
        if expression.type is Type.BOOLEAN:
            assert (meaning(truth(expression), row) is True) == (meant is True)


@given(expressions())
def test_nothing_that_is_made_of_it_can_fail(expression):
    for made in (value(expression), success(expression), truth(expression)):
        assert not may_fail(made)
        assert value(made) == made


@given(expressions())
def test_sizes_bound_what_is_made(expression):
    of_value, of_success = sizes(expression)
    assert (of_success > 0) == may_fail(expression)
    assert count(value(expression)) <= 8 * of_value
    assert count(success(expression)) <= 8 * max(of_success, 1)


def count(expression):
    """The number of nodes."""
    return 1 + sum(map(count, getattr(expression, "arguments", ())))


def test_what_cannot_fail_stays_as_it_is():
    for expression in (A, call(">", A, B), call("case", P, A, B), Literal(7, Type.INT)):
        assert value(expression) is expression
        assert success(expression) == Literal(True, Type.BOOLEAN)


def test_equalities_stay_equalities_and_conjuncts_conjuncts():
    plus = call("+", A, ONE)
    condition = call("and", call("=", plus, B), P)
    assert str(truth(condition)) == "((attempt((a + 1)) = b) AND p)"


SUBQUERY = RelationScan("R", Schema((Field("k", Type.BIGINT),)))


def test_a_value_in_a_subquery_fails_where_the_value_fails():
    plus = call("+", A, ONE)
    inside = InSubquery(plus, SUBQUERY)
    assert str(truth(inside)) == "(attempt((a + 1)) IN Relation R)"
    assert str(value(call("not", inside))) == (
        "not(case(succeeds((a + 1)), (attempt((a + 1)) IN Relation R)))"
    )
    compared = Quantified(plus, ">=", "all", SUBQUERY)
    assert str(truth(compared)) == ("case(succeeds((a + 1)), (attempt((a + 1)) >= all Relation R))")
    assert str(success(compared)) == "succeeds((a + 1))"


def test_an_equality_with_an_outer_column_keeps_its_sides():
    outer = OuterColumn(0, Type.BIGINT, "x")
    assert str(truth(call("=", call("+", A, ONE), outer))) == "(attempt((a + 1)) = outer(x))"


@pytest.mark.parametrize("function", ["case", "coalesce"])
def test_nesting_in_conditions_is_measured_before_it_is_built(function):
    nested = plus = call("+", A, ONE)
    for _ in range(40):
        first = call(">", nested, ONE) if function == "case" else nested
        nested = call(function, first, plus)
    assert sum(sizes(nested)) > 2**40

"""Deep and long statements are answered, or refused with a clear error; never a crash."""

from __future__ import annotations

import time

import pytest

from millpond.cql.check.statements import check_statement
from millpond.cql.text.tokens import MAX_CHARACTERS, MAX_NESTING
from millpond.errors import CqlError, Position
from tests.cql.fixtures_format import declared
from tests.cql.validation import validate

CATALOG = declared()

NESTED = {
    "parentheses": lambda n: f"SELECT {'(' * n}a{')' * n} FROM S",
    "calls": lambda n: f"SELECT {'abs(' * n}a{')' * n} FROM S",
    "cases": lambda n: f"SELECT {'CASE WHEN f THEN ' * n}a{' END' * n} FROM S",
    "subqueries in FROM": lambda n: f"SELECT a FROM {'(SELECT a FROM ' * n}S{')' * n}",
    "parentheses in FROM": lambda n: f"SELECT a FROM {'(' * n}SELECT a FROM S{')' * n}",
    "EXISTS": lambda n: f"SELECT a FROM S{' WHERE EXISTS (SELECT 1 FROM R' * n}{')' * n}",
    "IN": lambda n: f"SELECT k FROM R WHERE k IN {'(SELECT k FROM R WHERE k IN ' * n}(1){')' * n}",
    "values": lambda n: (
        f"SELECT a FROM S WHERE a > {'(SELECT max(k) FROM R WHERE k > ' * n}1{')' * n}"
    ),
    "NOT": lambda n: f"SELECT {'NOT ' * n}f FROM S",
    "signs": lambda n: f"SELECT {'- ' * n}a FROM S",
    "unions": lambda n: f"{'(' * n}SELECT a FROM S{' UNION SELECT a FROM S)' * n}",
    "joins": lambda n: (
        f"SELECT 1 FROM {'(' * n}R{''.join(f' CROSS JOIN R r{i})' for i in range(n))}"
    ),
}
CHAINED = {
    "AND": lambda n: "SELECT a FROM S WHERE f" + " AND f" * n,
    "OR": lambda n: "SELECT a FROM S WHERE f" + " OR a = 1" * n,
    "||": lambda n: "SELECT s" + " || 'x'" * n + " FROM S",
    "IN": lambda n: "SELECT a FROM S WHERE a IN (0" + ", 1" * n + ")",
    "items": lambda n: "SELECT a" + ", a" * n + " FROM S",
}
LIMITED = {
    "+": lambda n: "SELECT a" + " + 1" * n + " FROM S",
    "UNION": lambda n: "SELECT a FROM S" + " UNION SELECT a FROM S" * n,
    "JOIN": lambda n: "SELECT 1 FROM R" + "".join(f" CROSS JOIN R r{i}" for i in range(n)),
    "NOT =": lambda n: "SELECT " + "NOT f = " * n + "f FROM S",
}


def check(text: str) -> None:
    plan = check_statement(text, Position(1, 1), CATALOG).action.entry.plan
    validate(plan)
    hash(plan)
    str(plan)


@pytest.mark.parametrize("kind", NESTED)
def test_nesting_up_to_the_limit_is_answered(kind: str) -> None:
    check(NESTED[kind](MAX_NESTING - 2))


@pytest.mark.parametrize("kind", NESTED)
def test_deeper_nesting_is_refused(kind: str) -> None:
    for depth in (MAX_NESTING + 1, 500, 5_000):
        with pytest.raises(CqlError, match=r"nested more than|characters"):
            check(NESTED[kind](depth))


@pytest.mark.parametrize("kind", CHAINED)
def test_long_chains_are_answered(kind: str) -> None:
    started = time.process_time()
    check(CHAINED[kind](1_000))
    assert time.process_time() - started < 20


@pytest.mark.parametrize("kind", LIMITED)
def test_chains_that_make_deep_plans_are_answered_or_refused(kind: str) -> None:
    check(LIMITED[kind](40))
    with pytest.raises(CqlError, match=r"more than|too deep"):
        check(LIMITED[kind](3_000))


def test_a_join_without_conditions_is_refused_at_once() -> None:
    text = "SELECT 1 FROM R" + " JOIN R" * 300
    with pytest.raises(CqlError, match="expected ON or USING"):
        check(text)


def test_long_statements_are_refused() -> None:
    with pytest.raises(CqlError, match="at most 100,000 are allowed"):
        check("SELECT a FROM S WHERE s = '" + "x" * MAX_CHARACTERS + "'")

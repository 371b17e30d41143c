"""Each rewrite turns plans into those that its fixture file shows, and keeps their schema."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millpond.catalog import Catalog
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_script, check_statement
from millpond.errors import Position
from millpond.planning.optimise import REWRITES, optimise

FOLDER = Path(__file__).parent / "fixtures"
NAMES = [rewrite.__name__ for rewrite in REWRITES]


def declared():
    """A catalog with the names that the fixtures use."""
    catalog = Catalog()
    for statement in check_script((FOLDER / "declarations.cql").read_text(), catalog):
        apply(statement.action, catalog)
    return catalog


CATALOG = declared()


def checked(text):
    """The plan of a query as the planner is given it."""
    return check_statement(text, Position(1, 1), CATALOG).action.entry.plan


def cases(name):
    """(query, expected plan) of a file: a query ends with a semicolon, its plan with an empty line.

    Lines that begin with # are remarks.
    """
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    return [
        tuple(part.strip("\n") for part in chunk.split(";\n", maxsplit=1))
        for chunk in re.split(r"\n{2,}", text.strip("\n"))
    ]


ALL = [(name, *case) for name in dict.fromkeys(NAMES) for case in cases(name)]


@pytest.mark.parametrize(("name", "query", "expected"), ALL, ids=[f"{n}: {q}" for n, q, _ in ALL])
def test_a_rewrite_gives_the_plan_shown(name, query, expected):
    before = checked(query)
    for rewrite in REWRITES[: NAMES.index(name)]:
        before = rewrite(before)
    after = REWRITES[NAMES.index(name)](before)
    assert str(after) == expected
    assert after.schema == before.schema


@pytest.mark.parametrize("query", list(dict.fromkeys(q for _, q, _ in ALL)))
def test_all_rewrites_together_keep_the_schema_and_settle(query):
    plan = checked(query)
    optimised = optimise(plan)
    assert optimised.schema == plan.schema
    assert optimised.is_stream == plan.is_stream


def test_every_rewrite_has_a_fixture_file():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(NAMES)

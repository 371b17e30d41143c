"""Whatever the text, the front end answers with a statement or with a CqlError."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.cql.check.statements import check_statement
from millpond.cql.text.parse import syntax_tree
from millpond.cql.text.split import is_complete, split_statements
from millpond.errors import CqlError, Position
from tests.cql.check.test_errors import cases
from tests.cql.check.test_queries import THEMES
from tests.cql.fixtures_format import declared, load
from tests.cql.validation import validate
from tests.drawn_examples import examples

CATALOG = declared()
STATEMENTS = [fixture.text for fixture in load(*THEMES)] + [text for text, _, _ in cases()]
_WORDS = (
    "SELECT FROM WHERE GROUP BY HAVING UNION ALL EXCEPT JOIN ON USING NATURAL LEFT SEMI AS IN IS "
    "NOT NULL AND OR LIKE BETWEEN CASE WHEN THEN ELSE END EXISTS ANY DISTINCT ISTREAM Rstream( "
    "CREATE STREAM RELATION VIEW QUERY INSERT INTO VALUES UPDATE SET DELETE DROP SHOW EXPLAIN "
    "ALTER [NOW] [ROWS 5] [RANGE 1 DAY [PARTITION SLIDE SAMPLE(10) ( ) [ ] , . * + - / % = <> < >= "
    "|| :: <=> ; ' \" -- /* */ ? : @ # $ { } ` ~ & ^ ! \\ S S2 R R2 V a b k n x s f d t 1 2.5 1e9 "
    "'x' '2024-01-01' count(*) sum( cast( DATE TIMESTAMP INTERVAL OVER "
    "² １ 1e 5e+ 1e9999 1e999 \ufeff \xa0 \r 1. .5 1.2.3 é \x00 INT STRING DECIMAL"
)
PIECES = tuple(word for word in re.split(" ", _WORDS) if word)


def answered(text: str) -> None:
    """Checks a text; anything but an answer or a located error fails."""
    is_complete(text)
    split_statements(text)
    try:
        action = check_statement(text, Position(1, 1), CATALOG).action
    except CqlError as error:
        assert_in(text, error.position)
        return
    entry = getattr(action, "entry", None)
    if hasattr(entry, "plan"):
        validate(entry.plan)
    syntax_tree(text)


def assert_in(text: str, position: Position | None) -> None:
    """Checks that a position lies in the text or just behind it."""
    assert position is not None
    lines = text.split("\n")
    assert 1 <= position.line <= len(lines)
    assert 1 <= position.column <= len(lines[position.line - 1]) + 1


@examples(150)
@given(st.text(max_size=60))
def test_random_characters_are_answered(text: str) -> None:
    answered(text)


@examples(300)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_random_words_are_answered(words: list[str]) -> None:
    answered(" ".join(words))
    answered("SELECT a FROM S WHERE " + " ".join(words))
    answered("SELECT " + " ".join(words) + " FROM S, R")


@examples(400)
@given(st.sampled_from(STATEMENTS), st.integers(0, 2**32))
def test_mutated_statements_are_answered(statement: str, seed: int) -> None:
    answered(mutated(statement, random.Random(seed)))


def mutated(statement: str, rng: random.Random) -> str:
    """The statement with a few words dropped, doubled, swapped, replaced or inserted."""
    words = statement.split(" ")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(words) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            words[at:at] = [rng.choice(PIECES)]
        elif kind == 1:
            words[at : at + 1] = []
        elif kind == 2:
            words[at : at + 1] = [rng.choice(PIECES)]
        else:
            words[at : at + 2] = words[at : at + 2][::-1]
        words = words or ["SELECT"]
    return " ".join(words)


@pytest.mark.parametrize("statement", STATEMENTS[::7])
def test_truncated_statements_are_answered(statement: str) -> None:
    for end in range(0, len(statement), 3):
        answered(statement[:end])

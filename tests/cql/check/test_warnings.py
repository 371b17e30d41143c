"""What is hardly meant is warned of, under its place, with the way out; and nothing else is."""

import re

import pytest

from millpond.cql.apply import apply
from millpond.cql.check.statements import check_script, check_statement
from millpond.errors import Position
from tests.cql.fixtures_format import FOLDER, declared

CATALOG = declared()
for _statement in check_script(
    "CREATE VIEW Bounded AS SELECT a FROM S [RANGE 5];"
    "CREATE VIEW SaidStream AS STREAM SELECT a FROM S [RANGE 5];",
    CATALOG,
):
    apply(_statement.action, CATALOG)

CARET = re.compile(r"( *)\^ (.*)")


def cases() -> list[tuple[str, list[tuple[int, str]]]]:
    text = (FOLDER / "warnings.txt").read_text(encoding="utf-8")
    blocks = [b.strip("\n").split("\n") for b in text.split("\n\n") if not b.startswith("#")]
    found = []
    for statement, *carets in blocks:
        marks = [CARET.fullmatch(line).groups() for line in carets]
        found.append((statement, [(len(blanks) + 1, words) for blanks, words in marks]))
    return found


@pytest.mark.parametrize(("statement", "expected"), cases())
def test_warning_stands_under_its_place(statement: str, expected: list[tuple[int, str]]) -> None:
    warnings = check_statement(statement, Position(1, 1), CATALOG).warnings
    assert [each.position.column for each in warnings] == [column for column, _ in expected]
    for each, (_, words) in zip(warnings, expected, strict=True):
        assert each.message.startswith(words)


def ways_out() -> list[tuple[str, str]]:
    """Statements that are warned of, and what the warning says to write instead."""
    return [
        ("SELECT DISTINCT a FROM S [ROWS 2]", "RELATION SELECT DISTINCT a FROM S [ROWS 2]"),
        ("SELECT DISTINCT a FROM S [ROWS 2]", "STREAM SELECT DISTINCT a FROM S [ROWS 2]"),
        ("SELECT count(*) FROM Bounded", "SELECT count(*) FROM Bounded [UNBOUNDED]"),
    ]


@pytest.mark.parametrize(("doubtful", "certain"), ways_out())
def test_the_way_out_is_not_warned_of(doubtful: str, certain: str) -> None:
    assert check_statement(doubtful, Position(1, 1), CATALOG).warnings
    assert not check_statement(certain, Position(1, 1), CATALOG).warnings

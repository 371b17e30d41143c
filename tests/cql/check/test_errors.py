"""Every error names its place, the thing and the way out."""

from __future__ import annotations

import re

import pytest

from millpond.cql.check.statements import check_script, check_statement
from millpond.errors import CqlError, Position
from tests.cql.fixtures_format import FOLDER, declared

CATALOG = declared()
CARET = re.compile(r"( *)\^ (.*)")


def cases() -> list[tuple[str, str, Position]]:
    """Statement, message and position of each block of the fixture file."""
    text = (FOLDER / "errors.txt").read_text(encoding="utf-8")
    return [case(block) for block in text.split("\n\n") if not block.startswith("#")]


def case(block: str) -> tuple[str, str, Position]:
    lines = [line for line in block.strip("\n").split("\n") if not line.startswith("#")]
    place = next(i for i, line in enumerate(lines) if CARET.fullmatch(line))
    blanks, message = CARET.fullmatch(lines[place]).groups()
    statement = "\n".join(lines[:place] + lines[place + 1 :])
    return statement, message, Position(place, len(blanks) + 1)


@pytest.mark.parametrize(("statement", "message", "position"), cases())
def test_error_stands_under_its_place(statement: str, message: str, position: Position) -> None:
    with pytest.raises(CqlError) as raised:
        check_statement(statement, Position(1, 1), CATALOG)
    assert raised.value.message == message
    assert raised.value.position == position


def test_positions_count_in_the_whole_script() -> None:
    script = "CREATE STREAM S (a INT);\n\n  SELECT a FROM S;  SELECT a,\n b FROM S;"
    with pytest.raises(CqlError, match=r"^line 4, column 2: no column"):
        list(check_script(script, CATALOG.__class__()))


def test_errors_on_the_first_line_count_from_the_statement() -> None:
    with pytest.raises(CqlError, match=r'^line 7, column 24: no stream, relation or view "nope"'):
        check_statement("SELECT a FROM nope", Position(7, 10), CATALOG)


def test_no_fixture_expects_an_internal_word() -> None:
    for _, message, _ in cases():
        assert not re.search(r"sqlglot|Expr\b|class '|TokenType|Traceback", message)


def test_an_unknown_setting_is_named_with_its_neighbour() -> None:
    with pytest.raises(CqlError, match=r'^line 1, column 5: no setting "sed"; did you mean "seed"'):
        check_statement("SET sed = 1", Position(1, 1), CATALOG)

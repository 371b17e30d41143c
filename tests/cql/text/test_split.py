"""Scripts are cut at the semicolons that end statements, and only there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.cql.text.split import is_complete, split_statements
from millpond.errors import Position


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        (" ; ;\n;", []),
        ("a; b", ["a", "b"]),
        ("a 'x;y' b;c", ["a 'x;y' b", "c"]),
        ("a 'it''s; ok';c", ["a 'it''s; ok'", "c"]),
        ('a "x;""y";c', ['a "x;""y"', "c"]),
        ("a -- x; y\nb;c", ["a -- x; y\nb", "c"]),
        ("a /* x; '\n*/ b;c", ["a /* x; '\n*/ b", "c"]),
        ("/* only */ -- comments", []),
        ("-- first\na;-- last", ["a"]),
        ("a - b / c;", ["a - b / c"]),
        ("a 'open; b", ["a 'open; b"]),
        ("a; /* open; b", ["a", "/* open; b"]),
    ],
)
def test_split_at_semicolons_outside_quotes_and_comments(script: str, expected: list[str]) -> None:
    assert [text for text, _ in split_statements(script)] == expected


def test_statements_carry_their_positions() -> None:
    script = "a;\n  -- note\n  b\n c ; d"
    assert split_statements(script) == [
        ("a", Position(1, 1)),
        ("b\n c", Position(3, 3)),
        ("d", Position(4, 6)),
    ]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("  -- only a comment", True),
        ("SELECT a", False),
        ("SELECT a;", True),
        ("SELECT a; -- done", True),
        ("SELECT a; SELECT", False),
        ("SELECT ';", False),
        ("SELECT a /* ; ", False),
        ("SELECT a -- ;", False),
    ],
)
def test_prompt_knows_whether_to_wait(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@given(st.text(alphabet="ab;'\"-/* \n", max_size=40))
def test_pieces_stand_where_they_say(script: str) -> None:
    lines = script.split("\n")
    for text, position in split_statements(script):
        rest = "\n".join([lines[position.line - 1][position.column - 1 :], *lines[position.line :]])
        assert rest.startswith(text)
        assert text.strip() == text or "*" in text or "'" in text or '"' in text

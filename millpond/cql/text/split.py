"""Cuts a script into statements, aware of quotes and comments."""

import re
from collections.abc import Iterator

from millpond.cql.text.places import position_at
from millpond.errors import Position

# One lexical piece of a script; an unclosed quote or comment runs to the end of the text.
_PIECE = re.compile(
    r"""(?P<comment>--[^\n\r]*|/\*.*?(?:\*/|\Z))
      | (?P<end>;)
      | (?P<space>[\s\ufeff]+)
      | (?P<quoted>'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z))
      | (?P<other>[^-/;\s\ufeff'"]+|.)""",
    re.VERBOSE | re.DOTALL,
)


def split_statements(text: str) -> list[tuple[str, Position]]:
    """The statements of a script, without their semicolons, each with its position.

    >>> split_statements("SET a = ';';  -- done;\\nSHOW ALL")
    [("SET a = ';'", Position(line=1, column=1)), ('SHOW ALL', Position(line=2, column=1))]
    """
    found, at, position = [], 0, Position(1, 1)
    for first, last, _ in _spans(text):
        position = position_at(text[at:first], position, first - at)
        found.append((text[first:last], position))
        at = first
    return found


def is_complete(text: str) -> bool:
    """Whether a prompt's input may be run: nothing but blanks, or closed by a semicolon.

    >>> is_complete("SELECT 'a;"), is_complete("SELECT a;  -- note")
    (False, True)
    """
    return all(closed for _, _, closed in _spans(text))


def _spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start and end offset of each statement, and whether a semicolon closes it."""
    first: int | None = None
    last = 0
    for piece in _PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "end":
            if first is not None:
                yield first, last, True
            first = None
        elif kind in ("quoted", "other") or (kind == "comment" and not _closed(piece.group())):
            first = piece.start() if first is None else first
            last = piece.end()
    if first is not None:
        yield first, last, False


def _closed(comment: str) -> bool:
    return comment.startswith("--") or (len(comment) >= 4 and comment.endswith("*/"))

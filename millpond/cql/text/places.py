"""Where in a statement something stands, and the fault that is found there."""

from dataclasses import dataclass

from sqlglot import exp

from millpond.cql.written import Written
from millpond.errors import CqlError, Position


class StatementError(Exception):
    """An error at an offset of the statement's text; becomes a ``CqlError`` at the boundary."""

    def __init__(self, message: str, place: exp.Expr | int | None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset_of(place) if isinstance(place, exp.Expr) else place

    def located(self, text: str, start: Position) -> CqlError:
        """The same fault with its place in the script; ``text`` begins at ``start``."""
        return CqlError(self.message, position_at(text, start, self.offset or 0))


@dataclass(frozen=True)
class StatementText:
    """The text of one statement, which begins at ``start`` of the script."""

    text: str
    start: Position

    def of(self, node: exp.Expr) -> str:
        """The text of a node that was marked with the offsets of its text."""
        start, end = node.meta.get("text", (0, 0))
        return self.text[start:end]

    def position(self, offset: int | None) -> Position:
        """The place of an offset in the script."""
        return position_at(self.text, self.start, offset or 0)

    def written(self, clause: str, node: exp.Expr) -> Written:
        """A marked node as it stands in a clause."""
        start, _ = node.meta.get("text", (offset_of(node), None))
        return Written(clause, " ".join(self.of(node).split()), self.position(start))


def offset_of(node: exp.Expr) -> int | None:
    """The offset of a node's first token, taken from the node or from the leaves below it."""
    for candidate in node.walk(bfs=False):
        start = candidate.meta.get("start")
        if start is not None:
            return int(start)
    return None


def offset_at(text: str, start: Position, position: Position) -> int:
    """The offset in ``text``, which itself begins at ``start``, of a position.

    >>> offset_at("SELECT *\\nFROM x", Position(3, 5), Position(4, 6))
    14
    """
    lines = position.line - start.line
    if lines == 0:
        return position.column - start.column
    return sum(len(line) + 1 for line in text.split("\n")[:lines]) + position.column - 1


def position_at(text: str, start: Position, offset: int) -> Position:
    """The position of ``offset`` in ``text``, which itself begins at ``start``.

    >>> position_at("SELECT *\\nFROM x", Position(3, 5), 14)
    Position(line=4, column=6)
    """
    before = text[:offset]
    lines = before.count("\n")
    if lines == 0:
        return Position(start.line, start.column + offset)
    return Position(start.line + lines, offset - before.rfind("\n"))

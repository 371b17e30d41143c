"""A statement in the log: what it says of names and settings; what runs is said beside it."""

from dataclasses import dataclass, field
from typing import Protocol

from millpond.catalog import Entry
from millpond.cql.statements import Statement
from millpond.errors import Position
from millpond.storage.statement_memory import digest_of
from millpond.storage.transitions import UNLOGGED, Transition


class Saying(Protocol):
    """Does what statements say."""

    def checked(self, text: str, position: Position) -> Statement:
        """What a text says."""

    def say(self, statement: Statement) -> None:
        """Has names and settings be as a statement says, which can be done."""

    def count(self, digest: str) -> None:
        """A statement was executed, which changes rows."""

    def forget(self, name: str) -> None:
        """Something is declared no more."""

    def declare_again(self, entry: Entry, text: str, position: Position) -> None:
        """Something is declared, as a statement has said it."""

    def restore(self, executed: dict[str, int]) -> None:
        """Statements were executed so often."""


@dataclass(frozen=True)
class Said(Transition, kind="statement", to="statements"):
    """A statement was executed."""

    text: str
    line: int
    column: int
    statement: Statement | None = field(default=None, compare=False, metadata=UNLOGGED)

    def apply(self, part: Saying) -> None:
        """Has it be so."""
        part.say(self.statement or part.checked(self.text, Position(self.line, self.column)))


def said(statement: Statement) -> Said:
    """That a statement was executed."""
    position = statement.position
    return Said(statement.text, position.line, position.column, statement)


@dataclass(frozen=True)
class Counted(Transition, kind="counted", to="statements"):
    """A statement was executed that changes rows, which are in the log beside it."""

    digest: str

    def apply(self, part: Saying) -> None:
        """Counts it."""
        part.count(self.digest)


def counted(statement: Statement) -> Counted:
    """That a statement was executed which changes rows."""
    return Counted(digest_of(statement.text))


@dataclass(frozen=True)
class Dropped(Transition, kind="drop", to="statements"):
    """Something was dropped that nobody uses."""

    name: str

    def apply(self, part: Saying) -> None:
        """Forgets it."""
        part.forget(self.name)


@dataclass(frozen=True)
class EntryKept(Transition, kind="entry", to="statements"):
    """What is declared under a name, in a checkpoint, and the statement that has said so."""

    entry: Entry
    text: str
    line: int
    column: int

    def apply(self, part: Saying) -> None:
        """Declares it."""
        part.declare_again(self.entry, self.text, Position(self.line, self.column))


@dataclass(frozen=True)
class ExecutedKept(Transition, kind="executed", to="statements"):
    """How often each statement was executed, by its digest, in a checkpoint."""

    executed: dict[str, int]

    def apply(self, part: Saying) -> None:
        """Remembers it."""
        part.restore(self.executed)

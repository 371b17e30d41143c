"""A statement in the log: what it says of names and settings; what runs is said beside it."""

from dataclasses import dataclass, field, replace
from typing import Protocol

from millpond.catalog import Entry, RelationEntry
from millpond.cql.statements import Action, AlterStream, Create, Statement
from millpond.errors import Position
from millpond.settings import EXACT
from millpond.storage.statement_memory import digest_of
from millpond.storage.transitions import UNLOGGED, Transition


class Saying(Protocol):
    """Does what statements say."""

    def checked(self, text: str, position: Position, tolerate: str) -> Statement:
        """What a text says, where queries that say nothing of it tolerate that."""

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

    def keep(self, stream: str, percent: float, reason: str) -> None:
        """So many tuples of a stream are kept from now on."""


@dataclass(frozen=True)
class Said(Transition, kind="statement", to="statements"):
    """A statement was executed."""

    text: str
    line: int
    column: int
    statement: Statement | None = field(default=None, compare=False, metadata=UNLOGGED)
    checks_key: bool = False
    """Whether a PRIMARY KEY in it is looked at; before that was done it was a remark."""
    within: int | None = None
    """What was measured when it was executed, if it says AS MEASURED."""
    tolerate: str = EXACT
    """What queries tolerated that said nothing of it."""

    def apply(self, part: Saying) -> None:
        """Has it be so."""
        position = Position(self.line, self.column)
        said = self.statement or part.checked(self.text, position, self.tolerate)
        said = said if self.checks_key else _without_key(said)
        part.say(said if self.within is None else measured(said, self.within))


def said(statement: Statement, within: int | None = None) -> Said:
    """That a statement was executed; what was measured for it."""
    position, key = statement.position, _checks_key(statement.action)
    place, tolerate = (position.line, position.column), statement.tolerate
    return Said(statement.text, *place, statement, key, within, tolerate)


def measured(statement: Statement, within: int) -> Statement:
    """A statement that says AS MEASURED, with what was measured."""
    match statement.action:
        case AlterStream() as action:
            return replace(statement, action=action.measured(within))
    return statement


def _checks_key(action: Action) -> bool:
    match action:
        case Create(RelationEntry() as entry):
            return entry.checks_key
    return False


def _without_key(statement: Statement) -> Statement:
    """What a statement said when PRIMARY KEY was a remark."""
    match statement.action:
        case Create(RelationEntry() as entry) if entry.checks_key:
            return replace(statement, action=Create(replace(entry, on_conflict="ignore")))
    return statement


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
class KeptChanged(Transition, kind="keep", to="statements"):
    """The engine keeps other many tuples of a stream for queries that tolerate it, and why."""

    stream: str
    percent: float
    reason: str

    def apply(self, part: Saying) -> None:
        """Has it be so."""
        part.keep(self.stream, self.percent, self.reason)


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

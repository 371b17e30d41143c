"""Checked statements: what a script asks for, one frozen class a statement."""

from dataclasses import dataclass, field, replace
from typing import Any, Self, Union

from millpond.catalog import (
    Constraint,
    PartitionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    Tolerance,
    ViewEntry,
)
from millpond.cql.expressions import Expression
from millpond.cql.node import Node
from millpond.cql.patterns import Pattern
from millpond.errors import CqlWarning, Position
from millpond.settings import EXACT


@dataclass(frozen=True)
class Create:
    """CREATE STREAM | RELATION | VIEW | QUERY | PARTITION. A bare SELECT becomes a query called q1,
    q2, …"""

    entry: StreamEntry | RelationEntry | ViewEntry | QueryEntry | PartitionEntry
    replaces: bool = False
    """Whether it takes the place of a view of that name."""


@dataclass(frozen=True)
class Leave:
    """CREATE … IF NOT EXISTS of what is there, or DROP … IF EXISTS of what is not: all is well."""

    kind: str
    name: str
    is_there: bool


@dataclass(frozen=True)
class Drop:
    """DROP STREAM | RELATION | VIEW | QUERY | PARTITION name."""

    kind: str
    name: str


@dataclass(frozen=True)
class Insert:
    """INSERT INTO stream-or-relation VALUES …; rows in schema order, constants evaluated."""

    relation: str
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Punctuate:
    """PUNCTUATE stream WHERE …: no tuple that comes later matches the pattern."""

    stream: str
    pattern: Pattern
    on_violation: str


@dataclass(frozen=True)
class Delete:
    """DELETE FROM relation [WHERE …]; the predicate sees the relation's columns."""

    relation: str
    predicate: Expression | None


@dataclass(frozen=True)
class Update:
    """UPDATE relation SET column = expression [WHERE …]; one expression a column, in order."""

    relation: str
    expressions: tuple[Expression, ...]
    predicate: Expression | None


@dataclass(frozen=True)
class AlterQuery:
    """ALTER QUERY name SET WEIGHT w | ACTIVE | INACTIVE | ON ERROR SKIP | STOP | SET WINDOW OF …
    | TOLERATE (…) | SET [NO] PARTITION"""

    name: str
    weight: float | None = None
    active: bool | None = None
    on_error: str | None = None
    plan: Node | None = None
    """With another length of a window, or another confidence."""
    text: str = ""
    """What the query says then, and said before."""
    old_text: str = ""
    position: Position = field(default=Position(1, 1))
    """Where that stands."""
    tolerates: Tolerance | None = None
    partition: str | None = None
    """The partition it is in from now on; empty: in none."""


@dataclass(frozen=True)
class AlterStream:
    """ALTER STREAM name DELAY length | DELAY ADAPTIVE … | IDLE AFTER length | AHEAD AT MOST
    length | ADD constraint | DROP CONSTRAINT constraint | ALTER CONSTRAINT constraint WITHIN length
    | KEEP rate."""

    name: str
    delay_ticks: int | None = None
    late_percent: float = 0.0
    """With a delay: what may come too late if it follows how tuples come."""
    idle_microseconds: int | None = None
    ahead_microseconds: int | None = None
    adds: Constraint | None = None
    drops: str | None = None
    kept_percent: float | None = None
    alters: Constraint | None = None
    """A constraint as it is from now on."""
    is_measured: bool = False
    """Whether what is added is within as many rows as were seen, which is still to be said."""

    def measured(self, within: int) -> Self:
        """With that said."""
        adds = None if self.adds is None else replace(self.adds, within=within)
        return replace(self, adds=adds, is_measured=False)


@dataclass(frozen=True)
class AlterPlan:
    """ALTER PLAN QUEUE | NO QUEUE AFTER operator."""

    operator: str
    has_queue: bool


@dataclass(frozen=True)
class AlterPartition:
    """ALTER PARTITION name STRATEGY s | THREADS n | PRIORITY p | ADD | DROP OPERATOR …"""

    name: str
    strategy: str | None = None
    threads: int | None = None
    priority: float | None = None
    adds: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()


@dataclass(frozen=True)
class Show:
    """SHOW STREAMS | RELATIONS | VIEWS | QUERIES | PARTITIONS | SETTINGS | ALL."""

    kind: str


@dataclass(frozen=True)
class Explain:
    """EXPLAIN [SYNTAX | LOGICAL | PHYSICAL] query-or-name."""

    stage: str
    query: QueryEntry


@dataclass(frozen=True)
class SetOption:
    """SET key = value."""

    key: str
    value: Any


Action = Union[
    Create,
    Drop,
    Leave,
    Insert,
    Punctuate,
    Delete,
    Update,
    AlterQuery,
    AlterStream,
    AlterPlan,
    AlterPartition,
    Show,
    Explain,
    SetOption,
]


@dataclass(frozen=True)
class Statement:
    """A checked statement with its text and place."""

    action: Action
    position: Position
    text: str
    tolerate: str = EXACT
    """What queries tolerated that say nothing of it."""

    @property
    def warnings(self) -> tuple[CqlWarning, ...]:
        """What it says and is hardly meant."""
        entry = self.action.entry if isinstance(self.action, Create) else None
        return entry.warnings if isinstance(entry, (ViewEntry, QueryEntry)) else ()

"""Statements as written: the outer forms of CQL, with queries and expressions as syntax trees."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Union

from sqlglot import exp


@dataclass(frozen=True)
class Name:
    """An identifier and its offset."""

    text: str
    offset: int


@dataclass(frozen=True)
class Duration:
    """A number with an optional unit, as in DELAY 5 SECONDS."""

    number: str
    unit: Name | None
    offset: int


@dataclass(frozen=True)
class Option:
    """key = value, in a connector or after WITH; the value is evaluated."""

    key: str
    value: Any
    offset: int


@dataclass(frozen=True)
class ConnectorCall:
    """A source or sink such as csv('a.csv', header = true); arguments are evaluated."""

    name: Name
    arguments: tuple[Any, ...]
    options: tuple[Option, ...]


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of CREATE STREAM or CREATE RELATION."""

    name: Name
    type_name: Name
    is_key: bool
    on_conflict: str = "refuse"


@dataclass(frozen=True)
class BadRowPolicy:
    """ON BAD ROW STOP, SKIP, or INTO a sink."""

    skips: bool
    sink: ConnectorCall | None
    offset: int


@dataclass(frozen=True)
class ConstraintClause:
    """[CONSTRAINT name] what is promised [WITHIN length] [ON VIOLATION policy]."""

    name: Name | None
    column: Name
    within: Duration | None
    on_violation: str
    offset: int
    kind: str = "ordered"
    more_columns: tuple[Name, ...] = ()
    target: Name | None = None
    """The stream that is referenced; its columns, which may be all that is said."""
    target_columns: tuple[Name, ...] = ()
    is_measured: bool = False
    """Whether it is within what was seen."""


@dataclass(frozen=True)
class PunctuatedClause:
    """PUNCTUATED BY (column) [ON VIOLATION policy]."""

    column: Name
    on_violation: str


@dataclass(frozen=True)
class AdaptiveDelay:
    """DELAY ADAPTIVE n PERCENT AT MOST length: as long as all but n percent of the tuples need."""

    late_percent: float
    most: Duration


@dataclass(frozen=True)
class CreateStreamStatement:
    """CREATE STREAM."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    timestamp_by: Name | None
    delay: Duration | AdaptiveDelay | None
    source: ConnectorCall | None
    options: tuple[Option, ...]
    on_bad_row: BadRowPolicy | None = None
    idle_after: Duration | None = None
    ahead: Duration | None = None
    skew: Duration | None = None
    constraints: tuple[ConstraintClause, ...] = ()
    punctuated: PunctuatedClause | None = None


@dataclass(frozen=True)
class CreateRelationStatement:
    """CREATE RELATION."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    key: tuple[Name, ...]
    source: ConnectorCall | None
    options: tuple[Option, ...]
    on_conflict: str = "refuse"
    """What becomes of two rows with one key, where that is said behind the columns."""


@dataclass(frozen=True)
class CreateViewStatement:
    """CREATE VIEW; ``columns`` are other names for those of the query."""

    name: Name
    query: exp.Expr
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Start:
    """FROM BEGINNING, FROM TIMESTAMP '…' or FROM a number of ticks: a text, a number or neither."""

    value: str | int | None
    offset: int


@dataclass(frozen=True)
class Tolerating:
    """TOLERATE (SAMPLE AT LEAST … PERCENT, ERROR … [PERCENT], CONFIDENCE … PERCENT, FALSE NEGATIVES
    … PERCENT, FALSE POSITIVES … PERCENT, SHED BY …, WINDOW AT LEAST RANGE …, MEMORY …), or EXACT.
    """

    is_exact: bool
    offset: int
    least_percent: float = 0.0
    confidence_percent: float = 95.0
    error: float = 0.0
    is_relative: bool = True
    false_negatives: float | None = None
    """In percent, as is the next; None if nothing is said of it."""
    false_positives: float | None = None
    shed_by: Name | None = None
    """The column by which tuples are dropped first that have little of it."""
    is_unsaid: bool = False
    """Whether the query does not say so itself: it is exact then if it has no bounds."""
    shortest: Duration | None = None
    """The shortest that its window may be."""
    window_bytes: int | None = None
    """What its window may take before it is shortened."""
    is_of_samples: bool = False
    """Whether something is said that a smaller sample would be for."""

    @property
    def needed_percent(self) -> float:
        """How many tuples have to be kept: who tolerates another window alone reads all."""
        is_whole = self.shortest is not None and not self.is_of_samples
        return 100.0 if is_whole else self.least_percent

    @property
    def is_of_sets(self) -> bool:
        """Whether something is said of answers that are sets of rows."""
        return self.false_negatives is not None or self.false_positives is not None


@dataclass(frozen=True)
class Reduction:
    """One part of REDUCED TO: WINDOW or SAMPLE OF a source, and what it is then."""

    kind: str
    source: Name
    amount: str
    """RANGE or ROWS and a length, or a number of percent."""
    offset: int
    target: Name | None = None
    """To which stream of a subquery its sample is pushed."""

    def __str__(self) -> str:
        if self.target is not None:
            return f"{self.kind} OF {self.source.text} PUSHED TO {self.target.text}"
        percent = " PERCENT" if self.kind == "SAMPLE" else ""
        return f"{self.kind} OF {self.source.text} = {self.amount}{percent}"


@dataclass(frozen=True)
class CreateQueryStatement:
    """CREATE QUERY, or a bare query (``name`` None)."""

    name: Name | None
    query: exp.Expr
    text: str
    offset: int
    """Where its text begins."""
    weight: float = 1.0
    active: bool = True
    sink: ConnectorCall | None = None
    on_error: str | None = None
    start: Start | None = None
    tolerating: Tolerating | None = None
    reductions: tuple[Reduction, ...] = ()
    partition: Name | None = None


@dataclass(frozen=True)
class DropStatement:
    """DROP; ``is_lenient``: IF EXISTS."""

    kind: str
    name: Name
    is_lenient: bool = False


@dataclass(frozen=True)
class ConditionalStatement:
    """CREATE IF NOT EXISTS (``if_exists`` is "keep") or CREATE OR REPLACE ("replace")."""

    kind: str
    name: Name
    statement: "StatementSyntax"
    if_exists: str


@dataclass(frozen=True)
class Row:
    """One row of VALUES."""

    values: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class InsertStatement:
    """INSERT INTO … VALUES."""

    relation: Name
    columns: tuple[Name, ...] | None
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class PunctuateStatement:
    """PUNCTUATE stream WHERE pattern."""

    stream: Name
    condition: exp.Expr
    on_violation: str


@dataclass(frozen=True)
class DeleteStatement:
    """DELETE FROM."""

    relation: Name
    condition: exp.Expr | None


@dataclass(frozen=True)
class Assignment:
    """column = value, in UPDATE."""

    column: Name
    value: exp.Expr


@dataclass(frozen=True)
class UpdateStatement:
    """UPDATE … SET."""

    relation: Name
    assignments: tuple[Assignment, ...]
    condition: exp.Expr | None


@dataclass(frozen=True)
class WindowLength:
    """WINDOW OF name-or-alias = RANGE | ROWS length."""

    source: Name
    kind: str
    length: str
    offset: int
    """Where the length stands."""


@dataclass(frozen=True)
class AlterQueryStatement:
    """ALTER QUERY."""

    name: Name
    weight: float | None = None
    active: bool | None = None
    on_error: str | None = None
    window: WindowLength | None = None
    tolerating: Tolerating | None = None
    partition: Name | None = None
    leaves_partition: bool = False


@dataclass(frozen=True)
class AlterStreamStatement:
    """ALTER STREAM: another delay or time of silence, a constraint more, less or otherwise, or how
    many tuples are kept."""

    name: Name
    delay: Duration | AdaptiveDelay | None = None
    idle_after: Duration | None = None
    ahead: Duration | None = None
    adds: ConstraintClause | None = None
    drops: Name | None = None
    alters: Name | None = None
    within: Duration | None = None
    """What the altered constraint is within from now on."""
    kept_percent: float | None = None


@dataclass(frozen=True)
class AlterPlanStatement:
    """ALTER PLAN."""

    operator: Name
    has_queue: bool


@dataclass(frozen=True)
class PartitionOptions:
    """What is said of a partition; None where nothing is."""

    strategy: str | None = None
    strategy_offset: int = 0
    threads: int | None = None
    priority: float | None = None


@dataclass(frozen=True)
class CreatePartitionStatement:
    """CREATE PARTITION."""

    name: Name
    options: PartitionOptions


@dataclass(frozen=True)
class AlterPartitionStatement:
    """ALTER PARTITION: other options, or operators more or fewer."""

    name: Name
    options: PartitionOptions = PartitionOptions()
    adds: tuple[Name, ...] = ()
    drops: tuple[Name, ...] = ()


@dataclass(frozen=True)
class ShowStatement:
    """SHOW a kind of entry, or one entry by name."""

    what: Name


@dataclass(frozen=True)
class ExplainStatement:
    """EXPLAIN a query, or a registered one by name."""

    stage: str
    query: CreateQueryStatement | Name


@dataclass(frozen=True)
class SetStatement:
    """SET key = value."""

    key: Name
    value: Any
    offset: int


StatementSyntax = Union[
    CreateStreamStatement,
    CreateRelationStatement,
    CreateViewStatement,
    CreateQueryStatement,
    DropStatement,
    InsertStatement,
    PunctuateStatement,
    DeleteStatement,
    UpdateStatement,
    AlterQueryStatement,
    AlterStreamStatement,
    AlterPlanStatement,
    CreatePartitionStatement,
    AlterPartitionStatement,
    ShowStatement,
    ExplainStatement,
    SetStatement,
    ConditionalStatement,
]


def tree(syntax: Any, label: str = "", depth: int = 0) -> Iterator[str]:
    """The lines of a readable tree of a statement's syntax."""
    head = "  " * depth + (f"{label}: " if label else "")
    if isinstance(syntax, Name):
        yield head + syntax.text
    elif isinstance(syntax, (list, tuple)):
        for item in syntax:
            yield from tree(item, label, depth)
    elif (parts := _parts(syntax)) is not None:
        simple = [f"{n}={v}" for n, v in parts if isinstance(v, (str, int, float))]
        yield head + " ".join([type(syntax).__name__, *simple])
        for name, value in parts:
            if not isinstance(value, (str, int, float)):
                yield from tree(value, name, depth + 1)
    else:
        yield head + repr(syntax)


def _parts(syntax: Any) -> list[tuple[str, Any]] | None:
    """The named parts of a node that are present, without offsets and raw text."""
    if isinstance(syntax, exp.Expr):
        named = [(name.rstrip("_"), value) for name, value in syntax.args.items()]
    elif hasattr(syntax, "__dataclass_fields__"):
        named = [(f.name, getattr(syntax, f.name)) for f in fields(syntax)]
    else:
        return None
    return [
        (n, v) for n, v in named if n not in ("offset", "text") and v not in (None, (), [], False)
    ]

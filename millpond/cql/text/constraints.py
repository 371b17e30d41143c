"""The constraints of streams: what CREATE STREAM and ALTER STREAM say of tuples to come."""

from dataclasses import dataclass

from millpond.cql.text.cursor import Cursor
from millpond.cql.text.syntax import ConstraintClause, Duration, Name

CONSTRAINTS = ("CONSTRAINT", "ORDERED", "UNIQUE", "CLUSTERED", "REFERENCES", "FOREIGN")
"""The words with which a constraint begins."""

POLICIES = ("STOP", "COUNT", "WIDEN")

_FAR = "how far behind a tuple may come, such as 100 ROWS or 10 SECONDS"


@dataclass(frozen=True)
class _Promise:
    """What a constraint promises, of which columns."""

    kind: str
    columns: tuple[Name, ...]
    target: Name | None = None
    target_columns: tuple[Name, ...] = ()


def constraint_clause(cursor: Cursor) -> ConstraintClause:
    """[CONSTRAINT name] ORDERED BY (column) | CLUSTERED BY (column) | UNIQUE (column, …)
    | [FOREIGN KEY (column, …)] REFERENCES stream (column, …) WITHIN length
    [ON VIOLATION STOP | COUNT | WIDEN]."""
    offset = cursor.offset
    has_name = cursor.accept("CONSTRAINT")
    name = cursor.name("the name of the constraint") if has_name else None
    promise = _promise(cursor)
    first, *more = promise.columns
    is_measured = cursor.accept("AS", "MEASURED")
    return ConstraintClause(
        name,
        first,
        None if is_measured else _within(cursor, promise.kind),
        _policy(cursor),
        offset,
        promise.kind,
        tuple(more),
        promise.target,
        promise.target_columns,
        is_measured,
    )


def _promise(cursor: Cursor) -> _Promise:
    kind = cursor.choice(
        "ORDERED BY, CLUSTERED BY, UNIQUE, REFERENCES or FOREIGN KEY", *CONSTRAINTS[1:]
    )
    if kind in ("ORDERED", "CLUSTERED"):
        cursor.expect("BY", "(")
        column = cursor.name(f"the column by which tuples are {kind.lower()}")
        cursor.expect(")")
        return _Promise(kind.lower(), (column,))
    if kind == "UNIQUE":
        return _Promise("unique", _columns(cursor))
    own: tuple[Name, ...] = ()
    if kind == "FOREIGN":
        cursor.expect("KEY")
        own = _columns(cursor)
        cursor.expect("REFERENCES")
    target = cursor.name("the stream that is referenced")
    theirs = _columns(cursor)
    return _Promise("references", own or theirs, target, theirs)


def _columns(cursor: Cursor) -> tuple[Name, ...]:
    cursor.expect("(")
    found = cursor.several(lambda: cursor.name("a column"))
    cursor.expect(")")
    return found


def _within(cursor: Cursor, kind: str) -> Duration | None:
    """How far behind a tuple may come; what is UNIQUE is so without it."""
    if kind == "unique" and cursor.word() != "WITHIN":
        return None
    return within_clause(cursor)


def within_clause(cursor: Cursor) -> Duration:
    """WITHIN length."""
    cursor.expect("WITHIN")
    return cursor.duration(_FAR)


def _policy(cursor: Cursor) -> str:
    """What follows from a violation; the queries that rely on the constraint stop if unsaid."""
    if not cursor.accept("ON"):
        return "stop"
    cursor.expect("VIOLATION")
    return cursor.choice("STOP, COUNT or WIDEN", *POLICIES).lower()

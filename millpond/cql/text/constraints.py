"""The constraints of streams: what CREATE STREAM and ALTER STREAM say of the order of tuples."""

from millpond.cql.text.cursor import Cursor
from millpond.cql.text.syntax import ConstraintClause

CONSTRAINTS = ("CONSTRAINT", "ORDERED", "UNIQUE", "CLUSTERED", "REFERENCES")
"""The words with which a constraint begins."""

POLICIES = ("STOP", "COUNT")


def constraint_clause(cursor: Cursor) -> ConstraintClause:
    """[CONSTRAINT name] ORDERED BY (column) WITHIN length [ON VIOLATION STOP | COUNT]."""
    offset = cursor.offset
    has_name = cursor.accept("CONSTRAINT")
    name = cursor.name("the name of the constraint") if has_name else None
    if cursor.word() in CONSTRAINTS[2:]:
        raise cursor.refusal(
            f"{cursor.word()} is no constraint of a stream here; ORDERED BY (column) WITHIN 100 "
            "ROWS is"
        )
    cursor.choice("ORDERED BY", "ORDERED")
    cursor.expect("BY", "(")
    column = cursor.name("the column by which tuples are ordered")
    cursor.expect(")", "WITHIN")
    within = cursor.duration("how far behind a tuple may come, such as 100 ROWS or 10 SECONDS")
    return ConstraintClause(name, column, within, _policy(cursor), offset)


def _policy(cursor: Cursor) -> str:
    """What follows from a violation; the queries that rely on the constraint stop if unsaid."""
    if not cursor.accept("ON"):
        return "stop"
    cursor.expect("VIOLATION")
    return cursor.choice("STOP or COUNT", *POLICIES).lower()

"""Constraints of streams: ORDERED BY a column within so many rows, or so much time."""

from millpond.catalog import VIOLATES, Constraint, StreamEntry, name_complaint
from millpond.cql.check.columns import position_of
from millpond.cql.coercion import with_article
from millpond.cql.text.durations import ticks
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import ConstraintClause, Duration, Name
from millpond.schema import Type
from millpond.spelling import suggestion

MOST_ROWS = 100_000
"""Within so many rows at most: as many values of a stream are remembered."""

_ORDERED_TYPES = (Type.INT, Type.BIGINT, Type.DATE, Type.TIMESTAMP)


def constraint_of(
    clause: ConstraintClause, entry: StreamEntry, tick_microseconds: int
) -> Constraint:
    """What a clause promises of a stream."""
    column = position_of(clause.column, entry.schema)
    given = entry.schema[column].type
    if given not in _ORDERED_TYPES:
        raise StatementError(
            f'"{clause.column.text}" is {with_article(given)}; a stream is ordered by an INT, '
            "BIGINT, DATE or TIMESTAMP",
            clause.column.offset,
        )
    if any(each.name.lower() == VIOLATES for each in entry.schema.fields):
        raise StatementError(
            f'stream {entry.name} has a column "{VIOLATES}", which is the name of the constraint '
            "behind tuples that break one; call the column otherwise",
            clause.column.offset,
        )
    within, is_of_rows = _within(clause.within, tick_microseconds)
    name = _name(clause, entry)
    return Constraint(name, column, within, is_of_rows, clause.on_violation)


def _within(length: Duration, tick_microseconds: int) -> tuple[int, bool]:
    """How far behind a tuple may come, and whether that counts rows."""
    unit = None if length.unit is None else length.unit.text
    is_of_rows = unit is not None and unit.upper() in ("ROW", "ROWS")
    unit = None if is_of_rows else unit
    within = ticks(length.number, unit, 1 if is_of_rows else tick_microseconds, length.offset)
    if within < 0:
        raise StatementError("WITHIN cannot be negative", length.offset)
    if is_of_rows and within > MOST_ROWS:
        raise StatementError(
            f"WITHIN is at most {MOST_ROWS:,} ROWS, as many are remembered; write a length of time",
            length.offset,
        )
    return within, is_of_rows


def _name(clause: ConstraintClause, entry: StreamEntry) -> str:
    """The given name, or one made of the column's."""
    column = entry.schema[position_of(clause.column, entry.schema)].name
    name = f"ordered_by_{column}" if clause.name is None else clause.name.text
    complaint = name_complaint(name)
    if not complaint and entry.constraint(name) is not None:
        complaint = (
            f'stream {entry.name} has a constraint "{name}" already; DROP it first, or write '
            "CONSTRAINT another_name ORDERED BY …"
        )
    if complaint:
        raise StatementError(complaint, clause.offset)
    return name


def constraint_named(name: Name, entry: StreamEntry) -> str:
    """The name of a constraint that there is."""
    found = entry.constraint(name.text)
    if found is None:
        known = [each.name for each in entry.constraints]
        raise StatementError(
            f'stream {entry.name} has no constraint "{name.text}"{suggestion(name.text, known)}',
            name.offset,
        )
    return found.name

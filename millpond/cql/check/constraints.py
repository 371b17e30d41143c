"""Constraints of streams: what is promised of their columns, within so many rows or so much
time."""

from dataclasses import replace

from millpond.catalog import (
    MOST_ROWS,
    ORDERED_TYPES,
    Catalog,
    Constraint,
    StreamEntry,
    name_complaint,
)
from millpond.cql.check.columns import position_of, refuse_columns_aside
from millpond.cql.coercion import with_article
from millpond.cql.text.durations import ticks
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import ConstraintClause, Duration, Name
from millpond.schema import Type
from millpond.spelling import suggestion

_KEY_TYPES = (*ORDERED_TYPES, Type.STRING)

_NAMES = {
    "ordered": "ordered_by",
    "clustered": "clustered_by",
    "unique": "unique",
    "references": "references",
}


def constraint_of(clause: ConstraintClause, entry: StreamEntry, catalog: Catalog) -> Constraint:
    """What a clause promises of a stream."""
    columns = [_column(clause.kind, each, entry) for each in (clause.column, *clause.more_columns)]
    refuse_columns_aside(entry.name, entry.schema, clause.column.offset)
    within, is_of_rows = _within(clause.within, catalog.tick_microseconds)
    target, target_columns = _target(clause, entry, columns, catalog)
    return Constraint(
        _name(clause, entry),
        columns[0],
        within,
        is_of_rows,
        clause.on_violation,
        clause.kind,
        tuple(columns[1:]),
        target,
        target_columns,
    )


def _column(kind: str, name: Name, entry: StreamEntry) -> int:
    """A column of which a kind of constraint can speak."""
    column = position_of(name, entry.schema)
    given = entry.schema[column].type
    if given not in (ORDERED_TYPES if kind == "ordered" else _KEY_TYPES):
        said = {
            "ordered": "a stream is ordered by an INT, BIGINT, DATE or TIMESTAMP",
            "clustered": "a stream is clustered by an INT, BIGINT, DATE, TIMESTAMP or STRING",
        }
        other = f"{kind.upper()} is for columns of INT, BIGINT, DATE, TIMESTAMP or STRING"
        raise StatementError(
            f'"{name.text}" is {with_article(given)}; {said.get(kind, other)}', name.offset
        )
    return column


def _target(
    clause: ConstraintClause, entry: StreamEntry, columns: list[int], catalog: Catalog
) -> tuple[str, tuple[int, ...]]:
    """The stream that is referenced, with its columns; nothing for other constraints."""
    if clause.target is None:
        return "", ()
    target = catalog.get(clause.target.text)
    if not isinstance(target, StreamEntry) or target.identity == entry.identity:
        known = [s.name for s in catalog.of_kind(StreamEntry) if s.identity != entry.identity]
        raise StatementError(
            f'no other stream "{clause.target.text}"{suggestion(clause.target.text, known)}',
            clause.target.offset,
        )
    refuse_columns_aside(target.name, target.schema, clause.target.offset)
    theirs = [position_of(name, target.schema) for name in clause.target_columns]
    if len(theirs) != len(columns):
        raise StatementError(
            f"FOREIGN KEY names {len(columns)} columns, and REFERENCES {len(theirs)}; as many are "
            "needed on either side",
            clause.target.offset,
        )
    for name, own, other in zip(clause.target_columns, columns, theirs, strict=True):
        types = entry.schema[own].type, target.schema[other].type
        if types[0] is not types[1]:
            raise StatementError(
                f'"{entry.schema[own].name}" is {with_article(types[0])}, and "{name.text}" of '
                f"{target.name} {with_article(types[1])}; what references a column has its type",
                name.offset,
            )
    return target.name, tuple(theirs)


def _within(length: Duration | None, tick_microseconds: int) -> tuple[int, bool]:
    """How far behind a tuple may come, and whether that counts rows."""
    if length is None:
        return 0, True
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
    """The given name, or one made of what is promised."""
    names = clause.column, *clause.more_columns
    columns = [entry.schema[position_of(name, entry.schema)].name for name in names]
    of = columns if clause.target is None else [clause.target.text.lower()]
    own = "_".join([_NAMES[clause.kind], *of])
    name = own if clause.name is None else clause.name.text
    complaint = name_complaint(name)
    if not complaint and entry.constraint(name) is not None:
        complaint = (
            f'stream {entry.name} has a constraint "{name}" already; DROP it first, or write '
            "CONSTRAINT another_name …"
        )
    if complaint:
        raise StatementError(complaint, clause.offset)
    return name


def constraint_within(
    name: Name, length: Duration, entry: StreamEntry, tick_microseconds: int
) -> Constraint:
    """A constraint that there is, within another k."""
    known = constraint_named(name, entry)
    within, is_of_rows = _within(length, tick_microseconds)
    if is_of_rows != known.is_of_rows:
        raise StatementError(
            f"constraint {known.name} is within {'rows' if known.is_of_rows else 'a time'}, and "
            "stays so; DROP it and ADD another one",
            length.offset,
        )
    return replace(known, within=within)


def constraint_named(name: Name, entry: StreamEntry) -> Constraint:
    """The constraint of a name."""
    found = entry.constraint(name.text)
    if found is None:
        known = [each.name for each in entry.constraints]
        raise StatementError(
            f'stream {entry.name} has no constraint "{name.text}"{suggestion(name.text, known)}',
            name.offset,
        )
    return found

"""CREATE STREAM and CREATE RELATION."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millpond.catalog import Catalog, Connector, RelationEntry, StreamEntry
from millpond.cql.coercion import named_type, with_article
from millpond.cql.durations import ticks
from millpond.cql.places import StatementError
from millpond.cql.scope import suggestion
from millpond.cql.syntax import (
    ColumnDefinition,
    ConnectorCall,
    CreateRelationStatement,
    CreateStreamStatement,
    Duration,
    Name,
)
from millpond.schema import Field, Schema, Type

_TIMES = (Type.TIMESTAMP, Type.BIGINT, Type.INT)
CHANGE_COLUMNS = ("ts", "op")


def stream_entry(syntax: CreateStreamStatement, catalog: Catalog) -> StreamEntry:
    """The declared stream."""
    schema = _schema(syntax.columns)
    return StreamEntry(
        syntax.name.text,
        schema,
        None if syntax.timestamp_by is None else _time_column(syntax.timestamp_by, schema),
        0 if syntax.delay is None else _delay_ticks(syntax.delay, catalog.tick_microseconds),
        connector(syntax.source, syntax.options),
    )


def relation_entry(syntax: CreateRelationStatement) -> RelationEntry:
    """The declared relation."""
    schema = _schema(syntax.columns)
    options = dict(syntax.options)
    has_changes = _flag(options, "changes", syntax.name)
    is_static = _flag(options, "static", syntax.name)
    if has_changes and is_static:
        raise StatementError("a static relation has no changes", syntax.name.offset)
    if has_changes:
        for column in syntax.columns:
            if column.name.text.lower() in CHANGE_COLUMNS:
                raise StatementError(
                    "with changes = true, ts and op are read from the source beside the columns "
                    "listed; leave them out",
                    column.name.offset,
                )
    source = connector(syntax.source, tuple(options.items()))
    key = _key(syntax, schema)
    return RelationEntry(syntax.name.text, schema, key, source, has_changes, is_static)


def _flag(options: dict[str, Any], name: str, relation: Name) -> bool:
    value = options.pop(name, False)
    if not isinstance(value, bool):
        raise StatementError(f"{name} is true or false", relation.offset)
    return value


def connector(call: ConnectorCall | None, options: Sequence[tuple[str, Any]] = ()) -> Connector:
    """The connector as the catalog keeps it; without one, rows are pushed."""
    if call is None:
        return Connector("push", (), tuple(options))
    return Connector(call.name.text.lower(), call.arguments, (*call.options, *options))


def _schema(columns: Sequence[ColumnDefinition]) -> Schema:
    if not columns:
        raise StatementError("at least one column is needed", 0)
    seen: set[str] = set()
    for column in columns:
        if column.name.text.lower() in seen:
            raise StatementError(f'two columns are called "{column.name.text}"', column.name.offset)
        seen.add(column.name.text.lower())
    return Schema(
        tuple(Field(c.name.text, named_type(c.type_name.text, c.type_name.offset)) for c in columns)
    )


def position_of(name: Name, schema: Schema) -> int:
    """The position of a named column."""
    position = schema.position(name.text)
    if position is None:
        raise StatementError(
            f'no column "{name.text}"{suggestion(name.text, schema.names)}', name.offset
        )
    return position


def _time_column(name: Name, schema: Schema) -> int:
    position = position_of(name, schema)
    given = schema[position].type
    if given not in _TIMES:
        raise StatementError(
            f'"{name.text}" is {with_article(given)}; a time is a TIMESTAMP, or a BIGINT or INT '
            "that counts ticks",
            name.offset,
        )
    return position


def _delay_ticks(delay: Duration, tick_microseconds: int) -> int:
    unit = None if delay.unit is None else delay.unit.text
    length = ticks(delay.number, unit, tick_microseconds, delay.offset)
    if length < 0:
        raise StatementError("DELAY cannot be negative", delay.offset)
    return length


def _key(syntax: CreateRelationStatement, schema: Schema) -> tuple[int, ...]:
    own = tuple(i for i, column in enumerate(syntax.columns) if column.is_key)
    if syntax.key and own:
        raise StatementError("PRIMARY KEY is given twice", syntax.key[0].offset)
    if len(own) > 1:
        raise StatementError(
            "PRIMARY KEY is given twice; for a key of several columns write PRIMARY KEY (a, b) "
            "after the columns",
            syntax.columns[own[1]].name.offset,
        )
    positions = tuple(position_of(name, schema) for name in syntax.key) or own
    if len(set(positions)) < len(positions):
        raise StatementError("a column is in the PRIMARY KEY twice", syntax.key[0].offset)
    return positions

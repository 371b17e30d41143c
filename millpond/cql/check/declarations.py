"""CREATE STREAM and CREATE RELATION."""

from collections.abc import Sequence
from dataclasses import replace

from millpond.catalog import Catalog, Connector, RelationEntry, StreamEntry, goes_by_the_clock
from millpond.cql.check.columns import position_of
from millpond.cql.check.constraints import constraint_of
from millpond.cql.check.punctuations import carrying_column
from millpond.cql.coercion import with_article
from millpond.cql.text.durations import ticks
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import (
    AdaptiveDelay,
    ColumnDefinition,
    ConnectorCall,
    CreateRelationStatement,
    CreateStreamStatement,
    Duration,
    Name,
    Option,
)
from millpond.cql.type_names import named_type
from millpond.schema import Field, Schema, Type

_TIMES = (Type.TIMESTAMP, Type.BIGINT, Type.INT)
CHANGE_COLUMNS = ("ts", "op")
IDLE_AFTER, AHEAD = "IDLE AFTER", "AHEAD AT MOST"


def stream_entry(syntax: CreateStreamStatement, catalog: Catalog) -> StreamEntry:
    """The declared stream."""
    schema, delay, late = _schema(syntax.columns), 0, 0.0
    column = None if syntax.timestamp_by is None else _time_column(syntax.timestamp_by, schema)
    has_time = column is not None
    if syntax.delay is not None:
        delay, late = delay_of(syntax.delay, has_time, catalog.tick_microseconds)
    policy, source = syntax.on_bad_row, connector(syntax.source, syntax.options)
    if policy is not None and source.name == "push":
        raise StatementError(
            "ON BAD ROW is for what a source reads; whoever pushes a bad row gets the error",
            policy.offset,
        )
    entry = StreamEntry(
        syntax.name.text,
        schema,
        column,
        delay,
        source,
        late_percent=late,
        skips_bad_rows=policy is not None and policy.skips,
        dead_letters=None if policy is None or policy.sink is None else connector(policy.sink),
    )
    clock = schema, column, catalog.tick_microseconds
    if syntax.idle_after is not None:
        idle = clock_microseconds(IDLE_AFTER, syntax.idle_after, *clock)
        entry = replace(entry, idle_microseconds=idle)
    if syntax.ahead is not None:
        ahead = clock_microseconds(AHEAD, syntax.ahead, *clock)
        entry = replace(entry, ahead_microseconds=ahead)
    if syntax.skew is not None:
        skew = _length_of(
            "SKEW AT MOST", syntax.skew, column is not None, catalog.tick_microseconds
        )
        entry = replace(entry, skew_ticks=skew)
    if syntax.punctuated is not None:
        entry = replace(
            entry,
            punctuation_column=carrying_column(syntax.punctuated, schema, syntax.name),
            punctuations_violated=syntax.punctuated.on_violation,
        )
    for clause in syntax.constraints:
        if clause.is_measured:
            raise StatementError(
                "AS MEASURED is for ALTER STREAM … ADD: nothing was seen of a stream that is new",
                clause.offset,
            )
        added = constraint_of(clause, entry, catalog)
        entry = replace(entry, constraints=(*entry.constraints, added))
    return entry


def relation_entry(syntax: CreateRelationStatement) -> RelationEntry:
    """The declared relation."""
    has_changes = _flag(syntax.options, "changes")
    is_static = _flag(syntax.options, "static")
    if has_changes and is_static:
        raise StatementError("a static relation has no changes", syntax.name.offset)
    if has_changes:
        syntax = replace(syntax, columns=_data_columns(syntax.columns))
    schema = _schema(syntax.columns)
    rest = [option for option in syntax.options if option.key not in ("changes", "static")]
    source = connector(syntax.source, rest)
    key = _key(syntax, schema)
    said = [column.on_conflict for column in syntax.columns if column.is_key]
    policy = (said or [syntax.on_conflict])[0] if key else "ignore"
    return RelationEntry(syntax.name.text, schema, key, source, has_changes, is_static, policy)


def _data_columns(columns: Sequence[ColumnDefinition]) -> tuple[ColumnDefinition, ...]:
    """The columns without ts and op, which are read beside them and may be listed for clarity."""
    listed = [column for column in columns if column.name.text.lower() in CHANGE_COLUMNS]
    if len(listed) == 1:
        raise StatementError(
            "with changes = true, ts and op are read from the source beside the columns listed; "
            "leave both out or list both",
            listed[0].name.offset,
        )
    return tuple(column for column in columns if column not in listed)


def _flag(options: Sequence[Option], key: str) -> bool:
    for option in options:
        if option.key == key and not isinstance(option.value, bool):
            raise StatementError(f"{key} is true or false", option.offset)
    return any(option.key == key and option.value for option in options)


def connector(call: ConnectorCall | None, options: Sequence[Option] = ()) -> Connector:
    """The connector as the catalog keeps it; without one, rows are pushed."""
    given = () if call is None else call.options
    for option in options:
        if option.key in [other.key for other in given]:
            raise StatementError(f'"{option.key}" is given twice', option.offset)
    pairs = tuple((option.key, option.value) for option in (*given, *options))
    if call is None:
        return Connector("push", (), pairs)
    return Connector(call.name.text.lower(), call.arguments, pairs)


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


def delay_of(
    delay: Duration | AdaptiveDelay, has_time: bool, tick_microseconds: int
) -> tuple[int, float]:
    """How late tuples of a stream may come, and how many percent may come later if the delay
    follows how they come, else 0; ``has_time``: they hold their times themselves."""
    if isinstance(delay, AdaptiveDelay):
        most = _length_of("DELAY", delay.most, has_time, tick_microseconds)
        return most, delay.late_percent
    return _length_of("DELAY", delay, has_time, tick_microseconds), 0.0


def _length_of(clause: str, given: Duration, has_time: bool, tick_microseconds: int) -> int:
    """A length by the time of tuples, in ticks."""
    if not has_time:
        raise StatementError(
            f"{clause} needs TIMESTAMP BY: tuples timed by their arrival are never late",
            given.offset,
        )
    unit = None if given.unit is None else given.unit.text
    length = ticks(given.number, unit, tick_microseconds, given.offset)
    if length < 0:
        raise StatementError(f"{clause} cannot be negative", given.offset)
    return length


def clock_microseconds(
    clause: str, length: Duration, schema: Schema, time_column: int | None, tick_microseconds: int
) -> int:
    """A length by the wall clock that a clause of a stream gives."""
    if time_column is None:
        raise StatementError(
            f"{clause} needs TIMESTAMP BY: the time of arrival goes on by itself", length.offset
        )
    if not goes_by_the_clock(schema, time_column, tick_microseconds):
        raise StatementError(
            f'"{schema[time_column].name}" counts ticks, and a tick is a microsecond: say how long '
            "one is (SET tick = '1 second' before the first stream), or have the time in a "
            "TIMESTAMP",
            length.offset,
        )
    if length.unit is None and float(length.number):
        raise StatementError(
            f"{clause} is a time by the wall clock and needs a unit, such as 5 SECONDS",
            length.offset,
        )
    found = 0 if length.unit is None else ticks(length.number, length.unit.text, 1, length.offset)
    if found < 0:
        raise StatementError(f"{clause} cannot be negative", length.offset)
    return found


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

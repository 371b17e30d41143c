"""Messages of Kafka as rows: what they hold, and where in their topic they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import RowPosition, arrow_schema, conform
from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.bad_rows import BadRow, salvaged, told_apart
from millpond.connectors.message_values import Values, ValuesOf, texts
from millpond.connectors.sources import Declaration, SourcePage
from millpond.connectors.times import check_times
from millpond.errors import InputError
from millpond.schema import Field, Schema, Type

METADATA = {
    "kafka_key": Type.STRING,
    "kafka_partition": Type.INT,
    "kafka_offset": Type.BIGINT,
    "kafka_timestamp": Type.TIMESTAMP,
    "kafka_headers": Type.STRING,
}
"""Columns of these names hold what a message has beside its value."""


@dataclass(frozen=True)
class Position:
    """The id of a topic, empty if brokers do not tell it, and the next offset of each partition."""

    topic_id: str
    offsets: dict[int, int]
    time: int | None = None
    """Of upserts: no change before this time follows, in ticks."""
    whole_seconds: float = 0.0
    """Of upserts: what was written before this moment of our clock was read, all of it."""

    @staticmethod
    def of(said: dict[str, Any]) -> Position:
        """The position that a commit has."""
        offsets = {int(partition): offset for partition, offset in said["offsets"].items()}
        return Position(said["topic"], offsets, said.get("time"), said.get("whole", 0.0))

    def as_json(self) -> dict[str, Any]:
        """The position for a commit."""
        offsets = {str(partition): offset for partition, offset in self.offsets.items()}
        said: dict[str, Any] = {"topic": self.topic_id, "offsets": offsets}
        if self.time is None:
            return said
        return said | {"time": self.time, "whole": self.whole_seconds}

    def behind(self, messages: list[Any]) -> Position:
        """The position behind messages that follow it."""
        read = {each.partition(): each.offset() + 1 for each in messages}
        return replace(self, offsets=self.offsets | read)


class Reader:
    """Makes rows of messages."""

    def __init__(
        self, declaration: Declaration, topic: str, values: ValuesOf, keys: ValuesOf | None = None
    ) -> None:
        self.declaration, self.topic = declaration, topic
        fields = declaration.schema.fields
        for field in fields:
            wanted = METADATA.get(field.name.lower())
            if wanted is not None and field.type is not wanted:
                raise InputError(f"{declaration.name}: {field.name} is {wanted}, not {field.type}")
        of_key = [fields[each].name for each in declaration.key] if keys is not None else []
        known = {*METADATA, *map(str.lower, of_key)}
        self._of_value = Schema(tuple(each for each in fields if each.name.lower() not in known))
        self._of_key = Schema(tuple(each for each in fields if each.name in of_key))
        self._values = values(self._of_value)
        self._keys = None if keys is None else keys(self._of_key)

    def page(self, messages: list[Any], first: Position, last: Position) -> SourcePage:
        """The rows of messages between two positions, with the offsets behind each of them."""
        rows, bad, places = self._rows(messages)

        def position_after(count: int) -> dict[str, Any]:
            if count == len(places):
                return last.as_json()
            return first.behind(messages[: places[count - 1] + 1] if count else []).as_json()

        return SourcePage(rows, tuple(bad), position_after)

    def reached(self, messages: list[Any], first: Position, last: Position) -> Position:
        """The position behind messages, of which offsets are known."""
        return last

    def _rows(self, messages: list[Any]) -> tuple[pa.Table, list[BadRow], list[int]]:
        """The rows, the bad ones, and of each row the number of its message."""
        everything = range(len(messages))
        if not self.declaration.skips_bad_rows:
            return self._table(messages, everything), [], list(everything)
        found = salvaged(
            everything,
            lambda part: self._table(messages, part),
            lambda at, error: self._bad_row(messages[at], error),
        )
        return told_apart(found, arrow_schema(self.declaration.schema).empty_table())

    def _bad_row(self, message: Any, error: InputError) -> BadRow:
        return BadRow(self._place(message), str(error), message.value() or b"")

    def _place(self, message: Any) -> str:
        return f"topic {self.topic}, partition {message.partition()}, offset {message.offset()}"

    def _table(self, messages: list[Any], part: Sequence[int]) -> pa.Table:
        some = [messages[at] for at in part]

        def where(row: int) -> str:
            return self._place(some[row])

        beside = [each for each in self.declaration.schema.fields if self._is_beside(each)]
        columns = {each.name: _metadata(each, some, where) for each in beside}
        columns |= _columns(self._of_value, self._values, [each.value() for each in some], where)
        if self._keys is not None:
            columns |= _columns(self._of_key, self._keys, [each.key() for each in some], where)
        schema = arrow_schema(self.declaration.schema)
        table = pa.table([columns[name] for name in schema.names], schema=schema)
        check_times(table, self.declaration, where)
        return table

    def _is_beside(self, field: Field) -> bool:
        """Whether a column is of what a message has beside its value and its key."""
        return field.name not in (*self._of_value.names, *self._of_key.names)


def _columns(
    schema: Schema, values: Values, given: list[bytes | None], where: RowPosition
) -> dict[str, pa.ChunkedArray]:
    table = values.table(given, where)
    return {name: table.column(at) for at, name in enumerate(schema.names)}


def _metadata(field: Field, messages: list[Any], where: RowPosition) -> pa.Array:
    match field.name.lower():
        case "kafka_key":
            return texts([each.key() for each in messages], where)
        case "kafka_partition":
            found: list[Any] = [each.partition() for each in messages]
        case "kafka_offset":
            found = [each.offset() for each in messages]
        case "kafka_timestamp":
            found = [_milliseconds(each) for each in messages]
            times = pa.table({field.name: pa.array(found, pa.timestamp("ms"))})
            return conform(times, Schema((field,)), where).column(0)
        case _:
            found = [_headers(each) for each in messages]
    return pa.array(found, ARROW_TYPES[field.type])


def _milliseconds(message: Any) -> int | None:
    kind, milliseconds = message.timestamp()
    return int(milliseconds) if kind else None


def _headers(message: Any) -> str | None:
    """The headers as a JSON array of names and values; bytes that are no text are replaced."""
    found = message.headers()
    if found is None:
        return None
    pairs = [
        (name, None if value is None else value.decode(errors="replace")) for name, value in found
    ]
    return json.dumps(pairs, ensure_ascii=False)

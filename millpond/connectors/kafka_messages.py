"""Messages of Kafka as rows: what they hold, and where in their topic they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import ARROW_TYPES, RowPosition, arrow_schema, conform
from millpond.connectors.bad_rows import BadRow, salvaged, told_apart
from millpond.connectors.encoding import not_utf8
from millpond.connectors.files import Block
from millpond.connectors.json_lines import JsonLines, one_line
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

    @staticmethod
    def of(said: dict[str, Any]) -> Position:
        """The position that a commit has."""
        offsets = {int(partition): offset for partition, offset in said["offsets"].items()}
        return Position(said["topic"], offsets)

    def as_json(self) -> dict[str, Any]:
        """The position for a commit."""
        offsets = {str(partition): offset for partition, offset in self.offsets.items()}
        return {"topic": self.topic_id, "offsets": offsets}

    def behind(self, messages: list[Any]) -> Position:
        """The position behind messages that follow it."""
        read = {each.partition(): each.offset() + 1 for each in messages}
        return replace(self, offsets=self.offsets | read)


@dataclass(frozen=True)
class Reader:
    """Makes rows of messages."""

    declaration: Declaration
    topic: str
    format: str

    def __post_init__(self) -> None:
        for field in self.declaration.schema.fields:
            wanted = METADATA.get(field.name.lower())
            if wanted is not None and field.type is not wanted:
                raise InputError(
                    f"{self.declaration.name}: {field.name} is {wanted}, not {field.type}"
                )
        if self.format == "raw" and [field.type for field in self._of_value] != [Type.STRING]:
            raise InputError(
                f"{self.declaration.name}: format 'raw' has one column of type STRING for the "
                f"value, beside {', '.join(METADATA)}"
            )

    @property
    def _of_value(self) -> list[Field]:
        fields = self.declaration.schema.fields
        return [field for field in fields if field.name.lower() not in METADATA]

    def page(self, messages: list[Any], first: Position, last: Position) -> SourcePage:
        """The rows of messages between two positions, with the offsets behind each of them."""
        rows, bad, places = self._rows(messages)

        def position_after(count: int) -> dict[str, Any]:
            if count == len(places):
                return last.as_json()
            return first.behind(messages[: places[count - 1] + 1] if count else []).as_json()

        return SourcePage(rows, tuple(bad), position_after)

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

        values = self._values(some, where)
        columns = [
            values.column(field.name)
            if field.name.lower() not in METADATA
            else _metadata(field, some, where)
            for field in self.declaration.schema.fields
        ]
        table = pa.table(columns, schema=arrow_schema(self.declaration.schema))
        check_times(table, self.declaration, where)
        return table

    def _values(self, messages: list[Any], where: RowPosition) -> pa.Table:
        """The columns of the values; a message without one has NULLs."""
        schema = Schema(tuple(self._of_value))
        values = [each.value() for each in messages]
        if self.format == "raw":
            return pa.table([_text(values, where)], schema=arrow_schema(schema))
        if not len(schema):
            return pa.table({"": pa.nulls(len(values))})
        lines = [
            b"{}" if value is None else one_line(value, row, where)
            for row, value in enumerate(values)
        ]
        return JsonLines(schema).table(Block(self.topic, b"\n".join(lines), 0), where)


def _metadata(field: Field, messages: list[Any], where: RowPosition) -> pa.Array:
    match field.name.lower():
        case "kafka_key":
            return _text([each.key() for each in messages], where)
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


def _text(values: list[bytes | None], where: RowPosition) -> pa.Array:
    found: list[str | None] = []
    for row, value in enumerate(values):
        try:
            found.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            raise not_utf8(where(row), value or b"") from None
    return pa.array(found, pa.string())

"""What keys and values of messages hold: JSON, text or Avro, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from millpond.connectors.arrow import RowPosition, arrow_schema, conform
from millpond.connectors.avro import AvroColumns, AvroSchema
from millpond.connectors.encoding import not_utf8
from millpond.connectors.files import Block
from millpond.connectors.json_lines import JsonLines, one_line
from millpond.errors import InputError
from millpond.schema import Schema, Type

FORMATS = ("json", "avro", "raw")


class Values(Protocol):
    """Makes columns of bytes; what is None has NULLs."""

    def table(self, values: Sequence[bytes | None], where: RowPosition) -> pa.Table:
        """The columns, in the order in which they are declared."""


ValuesOf = Callable[[Schema], Values]
"""Knows the columns that are in the values, once those beside them are told apart."""


def values_of(owner: str, format_: str, schema: Any, registry_id: Any) -> ValuesOf:
    """How values of a format are read."""
    if format_ != "avro" and (schema or registry_id):
        raise InputError(f"{owner}: schema and registry_id are for format = 'avro'")
    if format_ == "raw":
        return lambda columns: TextValues(columns, f"{owner}: format 'raw'", "the value")
    if format_ == "json":
        return JsonValues

    def fault(said: str) -> InputError:
        return InputError(f"{owner}: {said}")

    avro = AvroSchema(schema, registry_id, fault)
    return lambda columns: AvroColumns(avro, columns, fault)


@dataclass(frozen=True)
class JsonValues:
    """Objects of JSON."""

    columns: Schema

    def table(self, values: Sequence[bytes | None], where: RowPosition) -> pa.Table:
        """The columns of the objects."""
        if not len(self.columns):
            return pa.table({"": pa.nulls(len(values))})
        lines = [
            b"{}" if value is None else one_line(value, row, where)
            for row, value in enumerate(values)
        ]
        return JsonLines(self.columns).table(Block("", b"\n".join(lines), 0), where)


@dataclass(frozen=True)
class TextValues:
    """Texts, or bytes: one column."""

    columns: Schema
    what: str
    of: str

    def __post_init__(self) -> None:
        types = [field.type for field in self.columns.fields]
        if types not in ([Type.STRING], [Type.BINARY]):
            raise InputError(f"{self.what} has one column of type STRING or BINARY for {self.of}")

    def table(self, values: Sequence[bytes | None], where: RowPosition) -> pa.Table:
        """The column of the texts."""
        if self.columns[0].type is Type.BINARY:
            return pa.table([pa.array(values, pa.binary())], schema=arrow_schema(self.columns))
        return pa.table([texts(values, where)], schema=arrow_schema(self.columns))


@dataclass(frozen=True)
class TextKeys:
    """Texts of any type, as cells of CSV are: one column, of which each row has a value."""

    columns: Schema

    def table(self, values: Sequence[bytes | None], where: RowPosition) -> pa.Table:
        """The column of the texts."""
        found = pa.table([texts(values, where)], names=self.columns.names)
        return conform(found, self.columns, where, read_text=True)


def texts(values: Sequence[bytes | None], where: RowPosition) -> pa.Array:
    """Bytes as text, which has to be UTF-8."""
    found: list[str | None] = []
    for row, value in enumerate(values):
        try:
            found.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            raise not_utf8(where(row), value or b"") from None
    return pa.array(found, pa.string())

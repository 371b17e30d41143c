"""Records of Avro, by a schema that is declared; ``fastavro`` is installed apart.

Logical types are taken out of the schema that ``fastavro`` gets and read here, column by column: so
a time is a number until Arrow has it, and no year is too far.
"""

from __future__ import annotations

import importlib
import io
import itertools
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millpond.arguments import shown_value
from millpond.connectors.arrow import RowPosition, conform
from millpond.connectors.nested import python_nested
from millpond.connectors.secrets import revealed
from millpond.errors import InputError, MillpondError
from millpond.schema import Field, Schema, Type

Fault = Callable[[str], MillpondError]

_PHYSICAL = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_TIMES = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns"),
}
_NUMBERS = ("int", "long", "float", "double", "decimal")
_MOMENTS = tuple(each for each in _TIMES if each != "date")

_READ: dict[Type, tuple[str, ...]] = {
    Type.BOOLEAN: ("boolean",),
    Type.INT: _NUMBERS,
    Type.BIGINT: _NUMBERS,
    Type.DECIMAL: _NUMBERS,
    Type.DOUBLE: _NUMBERS,
    Type.STRING: ("string", "enum"),
    Type.BINARY: ("bytes", "fixed"),
    Type.DATE: ("date",),
    Type.TIMESTAMP: ("date", *_MOMENTS),
}
"""What a column is read from; that a value fits is seen row by row."""

_WRITTEN: dict[Type, tuple[str, ...]] = {
    Type.BOOLEAN: ("boolean",),
    Type.INT: ("int", "long", "double"),
    Type.BIGINT: ("long",),
    Type.DOUBLE: ("double",),
    Type.STRING: ("string",),
    Type.BINARY: ("bytes", "fixed"),
    Type.DATE: ("date",),
    Type.TIMESTAMP: ("timestamp-micros",),
}
"""What a column is written as: nothing is lost."""

_ITEMS = {"array": "items", "map": "values"}
_NESTED = {Type.ARRAY: ("array",), Type.MAP: ("map",), Type.STRUCT: ("record",)}

_RAW = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}

_FAULTS = (
    EOFError, LookupError, OverflowError, RecursionError, TypeError, ValueError, struct.error,
)  # fmt: skip
"""What reading or writing raises of bytes or values that are not of the schema."""


@dataclass(frozen=True)
class AvroField:
    """A field of a record: its kind, and of a decimal how many digits come after the point."""

    name: str
    kind: str
    is_nullable: bool = False
    scale: int = 0
    parts: tuple[AvroField, ...] = ()
    """Of an array what its items are, of a map what its values are, of a record its fields."""


class AvroSchema:
    """The schema of a record, and how messages of it begin."""

    def __init__(self, text: Any, registry_id: Any, fault: Fault) -> None:
        self._avro = _package()
        given = _declared(revealed(text), fault)
        if not isinstance(registry_id, int) or not 0 <= registry_id < 2**31:
            raise fault(f"registry_id is the number of the schema, not {registry_id!r}")
        self._types = dict[str, Any]()
        """The named types of the schema."""
        self._prefix = struct.pack(">bI", 0, registry_id) if registry_id else b""
        try:
            self._parsed = self._avro.parse_schema(_physical(given))
            self.fields = [self._field(each) for each in given["fields"]]
        except self._avro.schema.UnknownType as error:
            raise fault(f"the schema has a type that it lacks: {error}") from None
        except (self._avro.schema.SchemaParseException, *_FAULTS) as error:
            raise fault(f"this is no schema of Avro: {error}") from None

    def _field(self, given: Mapping[str, Any]) -> AvroField:
        return self._typed(given["name"], given["type"])

    def _typed(self, name: str, given: Any) -> AvroField:
        """What a type is, and whether it may be null."""
        if isinstance(given, list):
            others = [each for each in given if each != "null"]
            if len(others) != 1:
                return AvroField(name, "a union")
            return replace(self._typed(name, others[0]), is_nullable=len(others) < len(given))
        if isinstance(given, str):
            known = given in self._types
            return self._typed(name, self._types[given]) if known else AvroField(name, given)
        if given["type"] in _ITEMS and "logicalType" not in given:
            item = self._typed(name, given[_ITEMS[given["type"]]])
            return AvroField(name, given["type"], parts=(item,))
        if "name" in given:
            self._types[given["name"]] = given
        if given["type"] == "record":
            return self._record(name, given)
        logical = str(given.get("logicalType", "")).removeprefix("local-")
        is_known = logical in ("decimal", *_TIMES)
        inner = logical if is_known else given["type"]
        if not is_known and not isinstance(inner, str):
            return self._typed(name, inner)
        scale = int(given.get("scale", 0))
        if scale < 0:
            raise ValueError(f"field {name} has {scale} digits behind the point")
        return AvroField(name, inner, scale=scale)

    def _record(self, name: str, given: Mapping[str, Any]) -> AvroField:
        """A record within another; one that has itself in it has no type of ours."""
        self._types[given["name"]] = {"type": "a record that has itself in it"}
        parts = tuple(map(self._field, given["fields"]))
        self._types[given["name"]] = given
        return AvroField(name, "record", parts=parts)

    def field_of(
        self, column: Field, known: Mapping[Type, tuple[str, ...]], fault: Fault
    ) -> AvroField:
        """The field of a column, in any case of its letters."""
        found = [each for each in self.fields if each.name.lower() == column.name.lower()]
        if len(found) != 1:
            names = ", ".join(each.name for each in self.fields)
            count = "two" if found else "no"
            raise fault(f"the schema has {count} field {column.name}; it has: {names}")
        _check_kind(found[0], column, column.type, known, fault)
        return found[0]

    def decoded(self, message: bytes, where: Callable[[], str]) -> Mapping[str, Any]:
        """The record of a message, which it fills."""
        if not message.startswith(self._prefix):
            raise InputError(
                f"{where()}: it begins with {message[:5]!r}, and not as registries have it for "
                "this schema (see registry_id)"
            )
        content = io.BytesIO(message)
        content.seek(len(self._prefix))
        try:
            record: Mapping[str, Any] = self._avro.schemaless_reader(content, self._parsed)
        except _FAULTS as error:
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise InputError(f"{where()}: no record of the schema: {said}") from None
        if content.tell() != len(message):
            more = len(message) - content.tell()
            raise InputError(f"{where()}: no record of the schema: {more} bytes follow it")
        return record

    def encoded(self, record: Mapping[str, Any]) -> bytes:
        """The message of a record; raises a ValueError if it is none of the schema."""
        content = io.BytesIO()
        content.write(self._prefix)
        try:
            self._avro.schemaless_writer(content, self._parsed, record)
        except _FAULTS as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        return content.getvalue()


class AvroColumns:
    """Makes columns of messages; what has none has NULLs."""

    def __init__(self, avro: AvroSchema, schema: Schema, fault: Fault) -> None:
        self._avro, self._schema = avro, schema
        self._fields = [avro.field_of(each, _READ, fault) for each in schema.fields]

    def table(self, messages: Sequence[bytes | None], where: RowPosition) -> pa.Table:
        """The columns of some messages."""
        records = [
            None if each is None else self._avro.decoded(each, lambda row=row: where(row))  # type: ignore[misc]
            for row, each in enumerate(messages)
        ]
        if not len(self._schema):
            return pa.table({"": pa.nulls(len(records))})
        arrays = [_column(field, records, where) for field in self._fields]
        return conform(pa.table(arrays, names=self._schema.names), self._schema, where)


class AvroResults:
    """Makes messages of results, as the fields of a schema name their columns."""

    def __init__(self, avro: AvroSchema, columns: Schema, fault: Fault) -> None:
        self._avro, self._fault = avro, fault
        lower = [name.lower() for name in columns.names]
        names = {each.name.lower() for each in avro.fields}
        for each in avro.fields:
            if each.name.lower() not in lower:
                raise fault(f"the schema has a field {each.name}; columns: {', '.join(lower)}")
        missing = [name for name in lower if name not in names and name != "ts"]
        if missing:
            raise fault(f"the schema has no field {missing[0]}; only ts may be left out")
        self._columns = [
            (avro.field_of(each, _WRITTEN, fault), position)
            for position, each in enumerate(columns.fields)
            if each.name.lower() in names
        ]

    def messages(self, table: pa.Table) -> Iterator[bytes]:
        """One message a result."""
        columns = [table.column(position) for _, position in self._columns]
        raw = [python_nested(each.cast(_raw(each.type))) for each in columns]
        for values in zip(*raw, strict=True):
            record = {
                field.name: _named(field, value)
                for (field, _), value in zip(self._columns, values, strict=True)
            }
            try:
                yield self._avro.encoded(record)
            except ValueError as error:
                raise self._fault(self._why(record, error)) from None

    def _why(self, record: Mapping[str, Any], error: ValueError) -> str:
        for field, _ in self._columns:
            if record[field.name] is None and not field.is_nullable:
                return f"{field.name} is NULL, and the schema has no null for it"
        return f"a result does not fit the schema: {error}"


def _check_kind(
    found: AvroField,
    column: Field,
    type_: Type,
    known: Mapping[Type, tuple[str, ...]],
    fault: Fault,
) -> None:
    """Refuses a column, or what is in one, for which the schema has something else."""
    kinds = _NESTED.get(type_.family) or known.get(type_.family, ())
    if found.kind not in kinds:
        raise fault(
            f"column {column.name} is {column.type}, and the schema has {found.kind} for "
            f"{type_ if type_ is not column.type else 'it'}; it can have "
            f"{' or '.join(kinds) or 'none: CAST it to STRING or DOUBLE'}"
        )
    if type_.is_map and type_.key is not Type.STRING:
        raise fault(f"column {column.name} is {column.type}, and keys of Avro's maps are STRINGs")
    if type_.is_array or type_.is_map:
        _check_kind(found.parts[0], column, type_.element, known, fault)
    for each in type_.fields:
        _check_kind(_part(found, each, column, fault), column, each.type, known, fault)
    more = [each.name for each in found.parts if type_.is_struct and not type_.field(each.name)]
    if more and known is _WRITTEN:
        raise fault(f"column {column.name} is {column.type}, which has no {more[0]} of the schema")


def _part(found: AvroField, wanted: Field, column: Field, fault: Fault) -> AvroField:
    """The field of a record that is called so, in any case."""
    parts = [each for each in found.parts if each.name.lower() == wanted.name.lower()]
    if len(parts) != 1:
        names = ", ".join(each.name for each in found.parts)
        raise fault(f"column {column.name} has {wanted}, and the schema's record has: {names}")
    return parts[0]


def _named(field: AvroField, value: Any) -> Any:
    """A value whose fields are called as those of the schema."""
    if value is None or not field.parts:
        return value
    if field.kind == "array":
        return [_named(field.parts[0], each) for each in value]
    if field.kind == "map":
        return {key: _named(field.parts[0], each) for key, each in value.items()}
    lower = {name.lower(): each for name, each in value.items()}
    return {part.name: _named(part, lower[part.name.lower()]) for part in field.parts}


def _raw(type_: pa.DataType) -> pa.DataType:
    """The type of numbers as which times are written."""
    if pa.types.is_list(type_):
        return pa.list_(_raw(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _raw(type_.item_type))
    if pa.types.is_struct(type_):
        return pa.struct([(each.name, _raw(each.type)) for each in type_])
    return _RAW.get(type_, type_)


def _package() -> Any:
    try:
        return importlib.import_module("fastavro")
    except ImportError:
        raise InputError(
            "format = 'avro' needs the package fastavro; install it with pip install "
            "'millpond[avro]'"
        ) from None


def _declared(text: Any, fault: Fault) -> dict[str, Any]:
    """The declared schema, which is one of a record."""
    if not isinstance(text, str) or not text.strip():
        raise fault(
            "format = 'avro' needs the schema of the messages, as JSON: schema = "
            """'{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'"""
        )
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise fault(f"schema is no JSON: {error}") from None
    is_record = isinstance(given, dict) and given.get("type") == "record"
    if not is_record or not isinstance(given.get("fields"), list):
        raise fault("schema is the schema of a record, with fields")
    return dict(given)


def _physical(given: Any) -> Any:
    """A schema without logical types."""
    if isinstance(given, list):
        return [_physical(each) for each in given]
    if not isinstance(given, dict):
        return given
    kept = {key: value for key, value in given.items() if key != "logicalType"}
    return {key: value if key == "default" else _physical(value) for key, value in kept.items()}


def _column(
    field: AvroField, records: Sequence[Mapping[str, Any] | None], where: RowPosition
) -> pa.Array:
    values = [None if each is None else each[field.name] for each in records]
    try:
        return _values(field, values)
    except ValueError:
        row = next(row for row, value in enumerate(values) if not _has_room(field, value))
        said = f"{shown_value(values[row])} is too large for {field.kind}"
        raise InputError(f"{where(row)}, column {field.name}: {said}") from None


def _has_room(field: AvroField, value: Any) -> bool:
    """Whether a number has no more bits, or digits, than there is room for: messages may."""
    try:
        _values(field, [value])
    except ValueError:
        return False
    return True


def _values(field: AvroField, values: list[Any]) -> pa.Array:
    if field.kind == "array":
        return _lists(field.parts[0], values)
    if field.kind == "map":
        return _maps(field.parts[0], values)
    if field.kind == "record":
        return _records(field.parts, values)
    if field.kind in _TIMES:
        kind = _TIMES[field.kind]
        return pa.array(values, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    if field.kind == "decimal":
        exact = [None if each is None else _decimal(each, field.scale) for each in values]
        return pa.array(exact, pa.decimal256(76, field.scale))
    return pa.array(values, _PHYSICAL[field.kind])


def _lists(element: AvroField, values: list[list[Any] | None]) -> pa.Array:
    items = _values(element, [item for each in values for item in each or ()])
    return pa.ListArray.from_arrays(_ends(values), items, mask=_missing(values))


def _maps(element: AvroField, values: list[dict[str, Any] | None]) -> pa.Array:
    keys = pa.array([key for each in values for key in each or ()], pa.string())
    items = _values(element, [item for each in values for item in (each or {}).values()])
    return pa.MapArray.from_arrays(_ends(values), keys, items, mask=_missing(values))


def _records(parts: Sequence[AvroField], values: list[dict[str, Any] | None]) -> pa.Array:
    arrays = [_values(part, [each and each[part.name] for each in values]) for part in parts]
    names = [part.name for part in parts]
    return pa.StructArray.from_arrays(arrays, names, mask=_missing(values))


def _ends(values: Sequence[Any]) -> pa.Array:
    ends = itertools.accumulate((len(each or ()) for each in values), initial=0)
    return pa.array(ends, pa.int32())


def _missing(values: Sequence[Any]) -> pa.Array:
    return pa.array([each is None for each in values], pa.bool_())


def _decimal(digits: bytes, scale: int) -> Decimal:
    """A decimal with all its digits.

    >>> _decimal((-125).to_bytes(2, "big", signed=True), 2)
    Decimal('-1.25')
    """
    return Decimal(f"{int.from_bytes(digits, 'big', signed=True)}E-{scale}")

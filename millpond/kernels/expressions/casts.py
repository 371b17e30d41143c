"""CAST, for each pair of types; text that cannot be read is NULL, numbers that do not fit fail."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrays import closed, opened
from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.conversions import NOT_NESTED, nested_of_text
from millpond.connectors.json_values import json_nested
from millpond.connectors.maps import closed_maps, opened_maps
from millpond.connectors.nested import inside, outside, outside_type
from millpond.connectors.python_values import python_values
from millpond.connectors.structs import closed_structs, opened_structs
from millpond.cql.expressions import Call, Column
from millpond.kernels.expressions import arithmetic, dates, decimals, reading, writing
from millpond.kernels.expressions.faults import Fault
from millpond.kernels.expressions.nested import there
from millpond.kernels.expressions.operand import Operand, Text, Value, of_array, to_array
from millpond.kernels.expressions.rows import by_row
from millpond.kernels.expressions.strict import failing, plain
from millpond.schema import Type

Cast = Callable[[Any], Value]


def cast(call: Call) -> Cast | None:
    """How the call's argument is cast; None if only Spark can."""
    source, target = call.arguments[0].type, call.type
    if source is target:
        return lambda value: value
    if source is Type.NULL:
        return lambda value: _null(value, target)
    if source.is_nested or target.is_nested:
        return _nested_cast(source, target)
    return _CASTS.get((source, target)) or decimals.cast(source, target)


def _null(value: Text, target: Type) -> Value:
    return of_array(pa.nulls(len(value.data), ARROW_TYPES[target]), target)


def _read(target: Type, reader: Callable[[str], Any]) -> Cast:
    def read(text: Text) -> Value:
        answer = of_array(pa.array(by_row(reader, text), ARROW_TYPES[target]), target)
        return Operand(answer.data, answer.valid, text.faults)

    return read


def _written(source: Type) -> Cast:
    """Whole numbers and truth values as text."""

    def write(value: Operand) -> Value:
        array = to_array(value, source, len(value.data))
        return Text(pc.cast(array, pa.string()), value.faults)

    return write


def _nested_cast(source: Type, target: Type) -> Cast | None:
    """ARRAYs, STRUCTs and MAPs as texts of JSON and back, and as those of wider values."""
    if not target.is_nested:
        return lambda value: _json_of(value, source)
    if not source.is_nested:
        return lambda text: _of_json(text, target)
    if source.is_struct:
        return _structs_cast(source, target)
    inner = _between(source.element, target.element)
    if inner is None:
        return None
    widened = _widened_maps if source.is_map else _widened_arrays
    return lambda value: widened(value, source, target, inner)


def _json_of(value: Text, source: Type) -> Value:
    values = python_values(outside(value.data, source))
    texts = [None if each is None else json_nested(each) for each in values]
    return Text(pa.array(texts, pa.string()), value.faults)


def _of_json(text: Text, target: Type) -> Value:
    def read(one: str) -> Any:
        try:
            return nested_of_text(one, target)
        except NOT_NESTED:
            return None

    found = pa.array(by_row(read, text), outside_type(target))
    return Text(inside(found), text.faults)


Inner = Callable[[pa.Array], pa.Array]


def _between(source: Type, target: Type) -> Inner | None:
    """How columns of what is in values are cast."""
    made = cast(Call("cast", (Column(0, source),), target))
    if made is None:
        return None
    return lambda column: to_array(made(of_array(column, source)), target, len(column))


def _structs_cast(source: Type, target: Type) -> Cast | None:
    pairs = zip(source.fields, target.fields, strict=True)
    inner = [_between(before.type, after.type) for before, after in pairs]
    known = [each for each in inner if each is not None]

    def widened(value: Text) -> Value:
        parts = zip(known, opened_structs(value.data, source), strict=True)
        made = closed_structs([each(column) for each, column in parts], there(value))
        return Text(made, value.faults)

    return widened if len(known) == len(inner) else None


def _widened_arrays(value: Text, source: Type, target: Type, inner: Inner) -> Value:
    lists = opened(value.data, source)
    wider = pa.ListArray.from_arrays(lists.offsets, inner(lists.values))
    return Text(closed(wider, there(value)), value.faults)


def _widened_maps(value: Text, source: Type, target: Type, inner: Inner) -> Value:
    offsets, keys, values = opened_maps(value.data, source)
    return Text(closed_maps(offsets, keys, inner(values), there(value)), value.faults)


def _as_binary(text: Text) -> Value:
    return Text(text.data.cast(pa.binary()), text.faults)


def _as_text(value: Text) -> Value:
    """Bytes that are UTF-8 as text; NULL of others."""
    try:
        return Text(value.data.cast(pa.string()), value.faults)
    except pa.ArrowInvalid:
        texts = by_row(_utf8, value)
        return Text(pa.array(texts, pa.string()), value.faults)


def _utf8(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


_CASTS: dict[tuple[Type, Type], Cast] = {
    (Type.BOOLEAN, Type.INT): plain(lambda a: a.astype(np.int32)),
    (Type.BOOLEAN, Type.BIGINT): plain(lambda a: a.astype(np.int64)),
    (Type.BOOLEAN, Type.STRING): _written(Type.BOOLEAN),
    (Type.INT, Type.BIGINT): plain(lambda a: a.astype(np.int64)),
    (Type.INT, Type.DOUBLE): plain(lambda a: a.astype(np.float64)),
    (Type.INT, Type.STRING): _written(Type.INT),
    (Type.BIGINT, Type.INT): failing(arithmetic.to_int, Fault.CAST_OVERFLOW),
    (Type.BIGINT, Type.DOUBLE): plain(lambda a: a.astype(np.float64)),
    (Type.BIGINT, Type.STRING): _written(Type.BIGINT),
    (Type.DOUBLE, Type.INT): failing(arithmetic.to_int, Fault.CAST_OVERFLOW),
    (Type.DOUBLE, Type.BIGINT): failing(arithmetic.to_bigint, Fault.CAST_OVERFLOW),
    (Type.STRING, Type.BOOLEAN): _read(Type.BOOLEAN, reading.truth),
    (Type.STRING, Type.INT): _read(Type.INT, lambda text: reading.whole(text, 32)),
    (Type.STRING, Type.BIGINT): _read(Type.BIGINT, lambda text: reading.whole(text, 64)),
    (Type.STRING, Type.DOUBLE): _read(Type.DOUBLE, reading.double),
    (Type.STRING, Type.DATE): _read(Type.DATE, reading.days),
    (Type.STRING, Type.TIMESTAMP): _read(Type.TIMESTAMP, reading.microseconds),
    (Type.STRING, Type.BINARY): _as_binary,
    (Type.BINARY, Type.STRING): _as_text,
    (Type.DATE, Type.STRING): writing.date_text,
    (Type.DATE, Type.TIMESTAMP): failing(dates.midnight, Fault.DATETIME_OVERFLOW),
    (Type.TIMESTAMP, Type.DATE): plain(dates.as_date),
    (Type.TIMESTAMP, Type.STRING): writing.time_text,
}

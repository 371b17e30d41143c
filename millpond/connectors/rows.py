"""Python rows, data frames and Arrow data as tables of a declared schema, or a clear refusal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from millpond.connectors.arrow import ARROW_TYPES, Place, arrow_schema, conform
from millpond.errors import InputError
from millpond.schema import Field, Schema, Type


def to_arrow(data: Any, schema: Schema, name: str = "rows") -> pa.Table:
    """A table of ``schema`` from dicts, tuples, a data frame or Arrow data.

    >>> to_arrow([{"a": 1}], Schema((Field("a", Type.INT),))).to_pylist()
    [{'a': 1}]
    """
    place = row_place(name)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pd.DataFrame):
        data = _from_pandas(data, place)
    if isinstance(data, pa.Table):
        _refuse_unknown(data.column_names, schema, place(0))
        return conform(data, schema, place)
    if isinstance(data, Mapping):
        raise InputError(f"{name}: give a list of rows, not one row")
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise InputError(
            f"{name}: rows are dicts, tuples, a data frame or Arrow data, not {data!r}"
        )
    return rows_to_arrow(list(data), schema, place)


def row_place(name: str, rows_before: int = 0) -> Place:
    """Names rows by their number, counted from one."""
    return lambda row: f"{name}, row {rows_before + row + 1}"


def rows_to_arrow(
    rows: Sequence[Any], schema: Schema, place: Place, *, lenient: bool = False
) -> pa.Table:
    """A table from dicts or tuples; ``lenient`` takes absent columns as NULL and skips others."""
    if not rows:
        return arrow_schema(schema).empty_table()
    names, declared = schema.names, set(schema.names)
    tuples = [
        tuple([row[name] for name in names])
        if type(row) is dict and row.keys() == declared  # as nearly all rows are
        else _as_tuple(row, schema, place, index, lenient)
        for index, row in enumerate(rows)
    ]
    columns = [
        _column(list(values), field, place)
        for values, field in zip(zip(*tuples, strict=True), schema.fields, strict=True)
    ]
    return pa.table(columns, schema=arrow_schema(schema))


def _from_pandas(frame: pd.DataFrame, place: Place) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{place(0)}: {error}") from None


def _as_tuple(row: Any, schema: Schema, place: Place, index: int, lenient: bool) -> tuple[Any, ...]:
    if isinstance(row, Mapping):
        return _from_mapping(row, schema, place, index, lenient)
    if not isinstance(row, Sequence) or isinstance(row, str | bytes):
        raise InputError(f"{place(index)}: a row is a dict or a tuple, not {row!r}")
    if len(row) != len(schema):
        raise InputError(f"{place(index)}: {len(row)} values for {len(schema)} columns {schema}")
    return tuple(row)


def _from_mapping(
    row: Mapping[str, Any], schema: Schema, place: Place, index: int, lenient: bool
) -> tuple[Any, ...]:
    row = _with_declared_names(row, schema)
    if not lenient:
        missing = [name for name in schema.names if name not in row]
        if missing:
            raise InputError(f"{place(index)}: no value for column {', '.join(missing)}")
        _refuse_unknown(row, schema, place(index))
    return tuple(row.get(name) for name in schema.names)


def _with_declared_names(row: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    declared = {name.lower(): name for name in schema.names}
    return {declared.get(str(name).lower(), name): value for name, value in row.items()}


def _refuse_unknown(names: Iterable[str], schema: Schema, where: str) -> None:
    known = {name.lower() for name in schema.names}
    extra = [str(name) for name in names if str(name).lower() not in known]
    if extra:
        declared = ", ".join(schema.names)
        raise InputError(f"{where}: column {', '.join(extra)} is not declared; columns: {declared}")


def _column(values: list[Any], field: Field, place: Place) -> pa.Array:
    kinds = set(map(type, values)) - {type(None)}
    has_zones = kinds == {datetime} and any(value and value.tzinfo for value in values)
    if has_zones or not kinds <= _PLAIN[field.type]:
        values = [_checked(value, field, place, row) for row, value in enumerate(values)]
    try:
        return pa.array(values, ARROW_TYPES[field.type])
    except (pa.ArrowInvalid, OverflowError):
        row = next(row for row, value in enumerate(values) if not _fits(value, field.type))
        raise _fault(values[row], field, place, row) from None


def _checked(value: Any, field: Field, place: Place, row: int) -> Any:
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    try:
        return _CONVERSIONS[field.type](value)
    except (TypeError, ValueError, OverflowError):
        raise _fault(value, field, place, row) from None


def _fits(value: Any, kind: Type) -> bool:
    try:
        pa.array([value], ARROW_TYPES[kind])
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _fault(value: Any, field: Field, place: Place, row: int) -> InputError:
    article = "an" if field.type is Type.INT else "a"
    return InputError(f"{place(row)}, column {field.name}: {value!r} is not {article} {field.type}")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | Decimal)
        or value != int(value)
    ):
        raise TypeError
    return int(value)


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError
    return float(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _date(value: Any) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value.strip())
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError
    return value


def _timestamp(value: Any) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    elif isinstance(value, np.datetime64 | pd.Timestamp):
        value = pd.Timestamp(value).to_pydatetime(warn=False)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, datetime.min.time())
    if not isinstance(value, datetime):
        raise TypeError
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _null(value: Any) -> None:
    if not (isinstance(value, float) and math.isnan(value)):
        raise TypeError


_PLAIN: dict[Type, set[type]] = {
    Type.BOOLEAN: {bool},
    Type.INT: {int},
    Type.BIGINT: {int},
    Type.DOUBLE: {float, int},
    Type.STRING: {str},
    Type.DATE: {date},
    Type.TIMESTAMP: {datetime},
    Type.NULL: set(),
}
"""Python types that Arrow converts as meant; all others are looked at one by one."""

_CONVERSIONS: dict[Type, Callable[[Any], Any]] = {
    Type.BOOLEAN: _boolean,
    Type.INT: _integer,
    Type.BIGINT: _integer,
    Type.DOUBLE: _double,
    Type.STRING: _string,
    Type.DATE: _date,
    Type.TIMESTAMP: _timestamp,
    Type.NULL: _null,
}

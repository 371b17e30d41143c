"""Python rows, data frames and Arrow data as tables of a declared schema, or a clear refusal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.arguments import shown_value
from millpond.connectors.arrow import (
    RowPosition,
    arrow_schema,
    conform,
    positions,
)
from millpond.connectors.conversions import converted
from millpond.connectors.nested import inside, outside_type
from millpond.connectors.pandas_there import dense, is_frame
from millpond.errors import InputError
from millpond.schema import NESTED, Field, Schema, Type

if TYPE_CHECKING:
    import pandas as pd


def to_arrow(data: Any, schema: Schema, name: str = "rows") -> pa.Table:
    """A table of ``schema`` from dicts, tuples, a data frame or Arrow data.

    >>> to_arrow([{"a": 1}], Schema((Field("a", Type.INT),))).to_pylist()
    [{'a': 1}]
    """
    where = row_position(name)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if is_frame(data):
        return _from_pandas(data, schema, where)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.Table):
        data = pa.table(data)  # as polars' frames and DuckDB's relations are handed over
    if isinstance(data, pa.Table):
        _refuse_unknown(data.column_names, schema, where, 0)
        return conform(data, schema, where)
    if isinstance(data, Mapping):
        raise InputError(f"{name}: give a list of rows, not one row")
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise InputError(
            f"{name}: rows are dicts, tuples, a data frame or Arrow data, not {shown_value(data)}"
        )
    return rows_to_arrow(list(data), schema, where)


def row_position(name: str, rows_before: int = 0) -> RowPosition:
    """Names rows by their number, counted from one."""
    return lambda row: f"{name}, row {rows_before + row + 1}"


def rows_to_arrow(
    rows: Sequence[Any], schema: Schema, where: RowPosition, *, lenient: bool = False
) -> pa.Table:
    """A table from dicts or tuples; ``lenient`` takes absent columns as NULL and skips others."""
    if not rows:
        return arrow_schema(schema).empty_table()
    names, declared, width = schema.names, set(schema.names), len(schema.names)
    tuples = [
        tuple([row[name] for name in names])
        if type(row) is dict and row.keys() == declared
        else row
        if type(row) is tuple and len(row) == width  # as nearly all rows are, the one or the other
        else _as_tuple(row, schema, where, index, lenient)
        for index, row in enumerate(rows)
    ]
    columns = [
        _column(list(values), field, where)
        for values, field in zip(zip(*tuples, strict=True), schema.fields, strict=True)
    ]
    return pa.table(columns, schema=arrow_schema(schema))


def _from_pandas(frame: pd.DataFrame, schema: Schema, where: RowPosition) -> pa.Table:
    """By Arrow where it can; else value by value, which names the one at fault."""
    names = [str(name) for name in frame.columns]
    _refuse_unknown(names, schema, where, 0)
    positions(names, schema, where)
    columns = [frame.iloc[:, position] for position in range(len(names))]
    columns = [dense(column) for column in columns]
    try:
        arrays = [pa.Array.from_pandas(column) for column in columns]
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return rows_to_arrow([dict(zip(names, row, strict=True)) for row in rows], schema, where)
    return conform(pa.table(arrays, names=names), schema, where)


def _as_tuple(
    row: Any, schema: Schema, where: RowPosition, index: int, lenient: bool
) -> tuple[Any, ...]:
    if isinstance(row, Mapping):
        return _from_mapping(row, schema, where, index, lenient)
    if not isinstance(row, Sequence) or isinstance(row, str | bytes):
        raise InputError(f"{where(index)}: a row is a dict or a tuple, not {shown_value(row)}")
    if len(row) != len(schema):
        raise InputError(f"{where(index)}: {len(row)} values for {len(schema)} columns {schema}")
    return tuple(row)


def _from_mapping(
    row: Mapping[str, Any], schema: Schema, where: RowPosition, index: int, lenient: bool
) -> tuple[Any, ...]:
    row = _with_declared_names(row, schema, where, index)
    if not lenient:
        _refuse_unknown(row, schema, where, index)
        missing = [name for name in schema.names if name not in row]
        if missing:
            raise InputError(f"{where(index)}: no value for column {', '.join(missing)}")
    return tuple(row.get(name) for name in schema.names)


def _with_declared_names(
    row: Mapping[str, Any], schema: Schema, where: RowPosition, index: int
) -> dict[str, Any]:
    declared = {name.lower(): name for name in schema.names}
    named = {declared.get(str(name).lower(), name): value for name, value in row.items()}
    if len(named) < len(row):
        columns = ", ".join(map(str, row))
        raise InputError(f"{where(index)}: two values for one column: {columns}")
    return named


def _refuse_unknown(names: Iterable[str], schema: Schema, where: RowPosition, index: int) -> None:
    known = {name.lower() for name in schema.names}
    extra = [str(name) for name in names if str(name).lower() not in known]
    if extra:
        declared = ", ".join(schema.names)
        unknown = ", ".join(extra)
        raise InputError(f"{where(index)}: column {unknown} is not declared; columns: {declared}")


def _column(values: list[Any], field: Field, where: RowPosition) -> pa.Array:
    kinds = set(map(type, values)) - {type(None)}
    has_zones = kinds == {datetime} and any(value and value.tzinfo for value in values)
    if has_zones or not kinds <= _PLAIN[field.type.family]:
        values = [_checked(value, field, where, row) for row, value in enumerate(values)]
    try:
        return inside(pa.array(values, outside_type(field.type)))
    except _REFUSALS:
        row = next(row for row, value in enumerate(values) if not _fits(value, field.type))
        raise _fault(values[row], field, where, row) from None


def _checked(value: Any, field: Field, where: RowPosition, row: int) -> Any:
    try:
        return converted(value, field.type)
    except (TypeError, ValueError, OverflowError, InvalidOperation):
        raise _fault(value, field, where, row) from None


def _fits(value: Any, kind: Type) -> bool:
    try:
        pa.array([value], outside_type(kind))
    except _REFUSALS:
        return False
    return True


def _fault(value: Any, field: Field, where: RowPosition, row: int) -> InputError:
    article = "an" if field.type is Type.INT or field.type.is_array else "a"
    half = isinstance(value, str) and field.type is Type.STRING
    why = " (it holds half of a surrogate pair)" if half else ""
    message = (
        f"{where(row)}, column {field.name}: {shown_value(value)} is not {article} {field.type}"
    )
    return InputError(message + why, field.name)


_REFUSALS = (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError)


_PLAIN: dict[Type, set[type]] = {
    Type.BOOLEAN: {bool},
    Type.INT: {int},
    Type.BIGINT: {int},
    Type.DECIMAL: {Decimal},
    Type.DOUBLE: {float, int},
    Type.STRING: {str},
    Type.BINARY: {bytes},
    Type.DATE: {date},
    Type.TIMESTAMP: {datetime},
    **{family: set() for family in NESTED},
    Type.NULL: set(),
}
"""Python types that Arrow converts as meant; all others are looked at one by one."""

"""Columns as Python values, also where Python cannot hold them: its dates end with year 9999.

Such a date or moment becomes ISO text, so that one of them never hides all other results.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.base64_texts import base64_column
from millpond.connectors.json_values import json_nested
from millpond.connectors.nested import is_nested, python_nested

if TYPE_CHECKING:
    import pandas as pd

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column.

    >>> python_values(pa.array([0, 4_000_000], pa.int32()).cast(pa.date32()))
    [datetime.date(1970, 1, 1), '12921-08-18']
    """
    try:
        values = python_nested(column)
    except (ValueError, OverflowError):
        return [_python_value(value) for value in column]
    return values


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as dicts."""
    columns = [python_values(column) for column in table.columns]
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A data frame; dates are Python's where all of them can be, else ``datetime64``."""
    try:
        return table.to_pandas()
    except (ValueError, OverflowError):
        return table.to_pandas(date_as_object=False)


def moment(ticks: int, tick_microseconds: int) -> str:
    """A time in ticks since 1970 as ISO text; far away, where no calendar helps, as a number.

    >>> moment(7, 1_000_000), moment(2**60, 1)
    ('1970-01-01T00:00:07', '38504-08-17T21:30:06.846976')
    """
    microseconds = ticks * tick_microseconds
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None).isoformat()
    except OverflowError:
        pass
    if abs(microseconds) < 2**63:
        return str(np.datetime64(microseconds, "us"))
    return f"{ticks} ticks"


def readable(table: pa.Table) -> pa.Table:
    """The table with those times, DECIMALs, BINARYs, ARRAYs, STRUCTs and MAPs as text that Arrow
    would not write out as such."""
    for position, column in enumerate(table.columns):
        if is_nested(column.type):
            name = table.field(position).name
            table = table.set_column(position, name, nested_texts(column))
            continue
        if pa.types.is_binary(column.type):
            name = table.field(position).name
            table = table.set_column(position, name, base64_column(column))
            continue
        if pa.types.is_decimal(column.type) and _has_exponents(column):
            text = decimal_texts(column)
            table = table.set_column(position, table.field(position).name, text)
        if column.type in _FAR and _reach(column) > _FAR[column.type]:
            text = [None if value is None else str(value) for value in python_values(column)]
            table = table.set_column(position, table.field(position).name, pa.array(text))
    return table


def nested_texts(column: pa.ChunkedArray) -> pa.Array:
    """ARRAYs, STRUCTs and MAPs as texts of JSON."""
    values = python_values(column)
    return pa.array([None if v is None else json_nested(v) for v in values], pa.string())


def decimal_texts(column: pa.ChunkedArray) -> pa.Array:
    """DECIMALs with all their digits; Arrow writes small ones with an exponent."""
    values = column.to_pylist()
    return pa.array([None if v is None else format(v, "f") for v in values], pa.string())


def _has_exponents(column: pa.ChunkedArray) -> bool:
    """Whether Arrow would write a number with one."""
    return bool(pc.any(pc.match_substring(column.cast(pa.string()), "E")).as_py())


_FAR = {pa.date32(): 30_000 * 365, pa.timestamp("us"): 30_000 * 365 * 86_400_000_000}
"""Some 30,000 years from 1970: beyond 32,767 Arrow writes that a value is out of range."""


def _reach(column: pa.ChunkedArray) -> float:
    raw = column.drop_null().cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return float(np.abs(np.asarray(raw).astype(np.float64)).max()) if len(raw) else 0.0


def _python_value(value: pa.Scalar) -> Any:
    if pa.types.is_list(value.type):
        return python_values(value.values) if value.is_valid else None
    if pa.types.is_map(value.type) and value.is_valid:
        return dict(zip(*map(python_values, value.values.flatten()), strict=True))
    if pa.types.is_struct(value.type) and value.is_valid:
        return {name: _python_value(each) for name, each in value.items()}
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        if pa.types.is_date32(value.type):
            return str(np.datetime64(value.value, "D"))
        return str(np.datetime64(value.value, "us"))

"""Results as JSON values: times as ISO text, and no numbers that JSON lacks."""

import math
from base64 import b64encode
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from millpond.connectors.python_values import python_values
from millpond.connectors.sinks import unique_names


def json_value(value: Any) -> Any:
    r"""A value as ``json.dumps`` takes it.

    A DECIMAL is a text: who reads a number of JSON may know no more of it than a double. A BINARY
    is in base64.

    >>> json_value(float("inf")), json_value(date(2026, 1, 2)), json_value(Decimal("1.50"))
    ('Infinity', '2026-01-02', '1.50')
    >>> json_value(b"\xca\xfe")
    'yv4='
    """
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, date):  # a datetime is a date too
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def json_results(table: pa.Table) -> Iterator[dict[str, Any]]:
    """One object a result: its ts, its weight and the row."""
    names = unique_names(table.column_names[2:])
    columns = [map(json_value, python_values(column)) for column in table.columns]
    for ts, weight, *values in zip(*columns, strict=True):
        yield {"ts": ts, "weight": weight, "row": dict(zip(names, values, strict=True))}

"""Results as objects of JSON."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from millpond.connectors.json_values import json_value
from millpond.connectors.python_values import python_values
from millpond.connectors.sinks import unique_names


def json_results(table: pa.Table) -> Iterator[dict[str, Any]]:
    """One object a result: its ts, its weight and the row."""
    names = unique_names(table.column_names[2:])
    columns = [map(json_value, python_values(column)) for column in table.columns]
    for ts, weight, *values in zip(*columns, strict=True):
        yield {"ts": ts, "weight": weight, "row": dict(zip(names, values, strict=True))}

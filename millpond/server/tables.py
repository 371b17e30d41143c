"""Tables as somebody wants to see them: only rows with a text in them, in order of a column."""

import io
import re
from datetime import UTC
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from millpond.connectors.base64_texts import base64_column
from millpond.connectors.nested import inside_table, is_nested
from millpond.connectors.python_values import decimal_texts, nested_texts, readable
from millpond.delivery.results import ResultLog
from millpond.server.faults import RequestError
from millpond.spelling import suggestion

FileFormat = Literal["csv", "parquet", "arrow"]

MEDIA_TYPES: dict[FileFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
}


def with_text(table: pa.Table, text: str, first: int = 0) -> pa.Table:
    """The rows that have a text in one of their columns, from the first one that counts on.

    >>> table = pa.table({"a": [1, 12], "b": ["X", "y"]})
    >>> with_text(table, "x").to_pylist(), with_text(table, "2", first=1).num_rows
    ([{'a': 1, 'b': 'X'}], 0)
    """
    if not text or not table.num_rows:
        return table
    found = np.zeros(table.num_rows, dtype=bool)
    for column in table.columns[first:]:
        matches = pc.match_substring(_texts(column), text, ignore_case=True)
        found |= pc.fill_null(matches, fill_value=False).to_numpy(zero_copy_only=False)
    return table.filter(pa.array(found))


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column as people read them."""
    if pa.types.is_decimal(column.type):
        return pa.chunked_array([decimal_texts(column)])
    if pa.types.is_binary(column.type):
        return pa.chunked_array([base64_column(column)])
    if is_nested(column.type):
        return pa.chunked_array([nested_texts(column)])
    texts = column.cast(pa.string())
    if pa.types.is_timestamp(column.type):
        return pc.replace_substring(texts, " ", "T")
    return texts


def in_order(table: pa.Table, column: str, descending: bool, first: int = 0) -> pa.Table:
    """The rows in order of a column; what is NULL comes last."""
    names = table.column_names[first:]
    if column not in names:
        raise RequestError(400, f'no column "{column[:100]}"{suggestion(column, names)}')
    keys = inside_table(table.select([column])).rename_columns(["key"])
    order = pc.sort_indices(keys, [("key", "descending" if descending else "ascending")])
    return table.take(order)


def as_rows(table: pa.Table, log: ResultLog) -> pa.Table:
    """Results as plain rows: each as often as it is there; those of a stream with their times."""
    weights = table.column(1).to_numpy()
    places = np.repeat(np.arange(table.num_rows), np.maximum(weights, 0))
    rows = table if (weights == 1).all() else table.take(pa.array(places))
    if not log.entry.plan.is_stream:
        return rows.select(rows.column_names[2:])
    times = rows.column(0)
    if log.in_timestamps:
        kind = pa.timestamp("us", tz=str(UTC))
        times = pc.multiply(times, log.tick_microseconds).cast(kind)
    return rows.remove_column(1).set_column(0, rows.column_names[0], times)


def written(table: pa.Table, form: FileFormat) -> bytes:
    """A table as a file."""
    buffer = io.BytesIO()
    if form == "csv":
        pyarrow.csv.write_csv(readable(table), buffer)
    elif form == "parquet":
        pyarrow.parquet.write_table(table, buffer)
    else:
        with pa.ipc.new_file(buffer, table.schema) as writer:
            writer.write_table(table)
    return buffer.getvalue()


def file_name(name: str, form: FileFormat) -> str:
    """What a file is called that has the results of a query.

    >>> file_name('a "b"/c', "csv")
    'a__b__c.csv'
    """
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:100]}.{form}"

"""Results as rows of a table of PostgreSQL: as text that COPY reads."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from millpond.connectors.changed_rows import Fault
from millpond.connectors.json_values import json_nested
from millpond.connectors.nested import is_nested
from millpond.connectors.postgres_arrays import array_text
from millpond.connectors.python_values import python_values

COPY_ROWS = 20_000
"""So many rows are made text at a time."""

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days from 1970: other years are written otherwise, or nowhere."""

DAY_MICROSECONDS = 86_400_000_000


def copied(table: pa.Table) -> Iterator[bytes]:
    """The rows as text for ``COPY … (FORMAT csv)``: a text is in quotes, NULL is nothing."""
    options = pc_csv.WriteOptions(include_header=False, quoting_style="needed")
    for first in range(0, table.num_rows, COPY_ROWS):
        text = BytesIO()
        pc_csv.write_csv(_with_hexadecimal(table.slice(first, COPY_ROWS)), text, options)
        yield text.getvalue()


def _with_hexadecimal(table: pa.Table) -> pa.Table:
    """The rows with BINARYs as PostgreSQL reads them."""
    for position, column in enumerate(table.columns):
        if pa.types.is_binary(column.type):
            values = column.to_pylist()
            texts = [None if value is None else f"\\x{value.hex()}" for value in values]
            name = table.field(position).name
            table = table.set_column(position, name, pa.array(texts, pa.string()))
    return table


def with_arrays(table: pa.Table) -> pa.Table:
    """The rows with ARRAYs as the server reads them, texts, which can be keys too; STRUCTs, MAPs
    and ARRAYs of what has values in it are JSON."""
    for position, column in enumerate(table.columns):
        if is_nested(column.type):
            is_flat = pa.types.is_list(column.type) and not is_nested(column.type.value_type)
            texts = [
                array_text(each) if is_flat or each is None else json_nested(each)
                for each in python_values(column)
            ]
            name = table.field(position).name
            table = table.set_column(position, name, pa.array(texts, pa.string()))
    return table


def checked(table: pa.Table, fault: Fault) -> pa.Table:
    """The rows, if PostgreSQL has all their values."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type):
            if pc.any(pc.match_substring(column, "\0")).as_py():
                raise fault(f"column {name}: a text holds the character NUL, which no text may")
        elif pa.types.is_date32(column.type):
            _check_years(column.cast(pa.int32()), FIRST_DAY, LAST_DAY, name, fault)
        elif pa.types.is_timestamp(column.type):
            first, last = FIRST_DAY * DAY_MICROSECONDS, (LAST_DAY + 1) * DAY_MICROSECONDS - 1
            _check_years(column.cast(pa.int64()), first, last, name, fault)
    return table


def _check_years(numbers: Any, first: int, last: int, name: str, fault: Fault) -> None:
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and (bounds["min"] < first or bounds["max"] > last):
        raise fault(f"column {name}: a time is not in the years 1 to 9999")


def without_nul(bad_rows: pa.Table) -> pa.Table:
    """Bad rows without the character NUL: bytes that hold it are in base64, as those of no text."""
    names = bad_rows.column_names
    for name in ("offset", "reason"):
        shown = pc.replace_substring(bad_rows[name], "\0", "\\x00")
        bad_rows = bad_rows.set_column(names.index(name), name, shown)
    raw = bad_rows["raw"].to_pylist()
    hidden = [None if text is None or "\0" not in text else _in_base64(text) for text in raw]
    encoded = pc.coalesce(pa.array(hidden, pa.string()), bad_rows["raw_base64"].combine_chunks())
    kept = pc.if_else(pc.is_valid(pa.array(hidden, pa.string())), None, pa.array(raw, pa.string()))
    bad_rows = bad_rows.set_column(names.index("raw"), "raw", kept)
    return bad_rows.set_column(names.index("raw_base64"), "raw_base64", encoded)


def _in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()

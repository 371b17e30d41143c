"""Results as rows of a table of PostgreSQL: as text that COPY reads, and the changes of a key."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

from millpond.errors import MillpondError

COPY_ROWS = 20_000
"""So many rows are made text at a time."""

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days from 1970: other years are written otherwise, or nowhere."""

DAY_MICROSECONDS = 86_400_000_000

GONE, CHANGED, NEW = -1, 0, 1
"""What becomes of the row of a key: the sum of its weights."""

Fault = Callable[[str], MillpondError]
"""Makes an error of what is wrong."""


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


def repeated(table: pa.Table, weights: pa.ChunkedArray) -> pa.Table:
    """Each row as often as its weight says."""
    counts = weights.to_pylist()
    if all(count == 1 for count in counts):
        return table
    return table.take(pa.array([row for row, count in enumerate(counts) for _ in range(count)]))


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


def last_of_each(rows: pa.Table, keys: list[str], fault: Fault) -> pa.Table:
    """The last row of each value of a key."""
    return rows.take(_by_key(rows, keys, fault)["place_max"].combine_chunks())


def changes_of_each(
    rows: pa.Table, weights: pa.ChunkedArray, keys: list[str], fault: Fault
) -> tuple[pa.Table, pa.Array]:
    """What the changes of a relation come to: for each key whose row is another one then the new
    row, or the last one it had; and whether it is gone, changed or new."""
    rows, sums = _sums(rows, weights)
    found = _by_key(rows, keys, fault, sums)
    lines, most = found["weight_count"].to_pylist(), found["weight_max"].to_pylist()
    totals = found["weight_sum"].to_pylist()
    chosen = found["place_max"].combine_chunks()
    shapes = {(1, GONE), (2, CHANGED), (1, NEW)}
    for place, line, total, top in zip(chosen.to_pylist(), lines, totals, most, strict=True):
        if (line, total) not in shapes or top > 1:
            row = ", ".join(f"{key} = {rows[key][place].as_py()!r}" for key in keys)
            raise fault(f"{row} has several rows at one time: it is no key of the results")
    return rows.take(chosen), found["weight_sum"].combine_chunks()


def _sums(rows: pa.Table, weights: pa.ChunkedArray) -> tuple[pa.Table, pa.Array]:
    """Equal rows in one, those that go before those that come."""
    names = rows.column_names
    whole = rows.append_column("weight", weights).rename_columns(
        [*map(str, range(len(names))), "w"]
    )
    summed = whole.group_by([*map(str, range(len(names)))]).aggregate([("w", "sum")])
    summed = summed.filter(pc.not_equal(summed["w_sum"], 0)).sort_by("w_sum")
    found = summed.select([*map(str, range(len(names)))]).rename_columns(names)
    return found, summed["w_sum"].combine_chunks()


def _by_key(
    rows: pa.Table, keys: list[str], fault: Fault, weights: pa.Array | None = None
) -> pa.Table:
    """Of each key the last place, and the number, sum and greatest of its weights."""
    for key in keys:
        if rows[key].null_count:
            raise fault(f"column {key} is NULL in a row, and so not a key of PostgreSQL's")
    places = pa.array(range(rows.num_rows), pa.int64())
    names = [f"k{number}" for number in range(len(keys))]
    weights = pa.nulls(rows.num_rows, pa.int64()) if weights is None else weights
    whole = pa.table([*(rows[key] for key in keys), places, weights], [*names, "place", "weight"])
    wanted = [("weight", each) for each in ("count", "sum", "max")]
    return whole.group_by(names).aggregate([("place", "max"), *wanted])

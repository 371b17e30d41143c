"""What results come to in a table: rows as often as they are there, or the row of each key."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from millpond.errors import MillpondError

GONE, CHANGED, NEW = -1, 0, 1
"""What becomes of the row of a key: the sum of its weights."""

Fault = Callable[[str], MillpondError]
"""Makes an error of what is wrong."""


def repeated(table: pa.Table, weights: pa.ChunkedArray) -> pa.Table:
    """Each row as often as its weight says."""
    counts = weights.to_pylist()
    if all(count == 1 for count in counts):
        return table
    return table.take(pa.array([row for row, count in enumerate(counts) for _ in range(count)]))


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
            raise fault(f"column {key} is NULL in a row, and so no key")
    places = pa.array(range(rows.num_rows), pa.int64())
    names = [f"k{number}" for number in range(len(keys))]
    weights = pa.nulls(rows.num_rows, pa.int64()) if weights is None else weights
    whole = pa.table([*(rows[key] for key in keys), places, weights], [*names, "place", "weight"])
    wanted = [("weight", each) for each in ("count", "sum", "max")]
    return whole.group_by(names).aggregate([("place", "max"), *wanted])

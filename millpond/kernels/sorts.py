"""Rows in order: by sort keys, and by a place, an integer that the first of these gives a row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.columns import is_bytes, mask_of, places_of
from millpond.kernels.groups import Ints
from millpond.kernels.ordered import LEAST, MOST

PREFIX_BYTES = 8
"""So much of a text makes its place."""


@dataclass(frozen=True)
class Sort:
    """A column of the rows by which they are in order."""

    column: str
    is_descending: bool
    nulls_first: bool


def places(rows: pa.Table, order: Sequence[Sort]) -> Ints:
    """An integer for each row, never larger than that of a row that comes after it."""
    if not order:
        return np.zeros(rows.num_rows, dtype=np.int64)
    sort = order[0]
    column = rows[sort.column]
    place = _prefix(column) if is_bytes(column.type) else places_of(column)[:-1]
    place = ~place if sort.is_descending else place
    return np.where(mask_of(column)[:-1], place, LEAST if sort.nulls_first else MOST)


def sorted_rows(rows: pa.Table, order: Sequence[Sort], others: Sequence[str] = ()) -> Ints:
    """The order of rows: by their group (``code``), as it is wished, then by other columns."""
    wished = {sort.column: (sort.is_descending, sort.nulls_first) for sort in order}
    keys = [("code", "ascending", "at_start")]
    columns = {"code": rows["code"]}
    for name in dict.fromkeys([*wished, *others]):
        descending, nulls_first = wished.get(name, (False, True))
        columns[name] = comparable(rows[name])
        direction = "descending" if descending else "ascending"
        keys.append((name, direction, "at_start" if nulls_first else "at_end"))
    found = pc.sort_indices(pa.table(columns), sort_keys=keys)
    return np.asarray(found).astype(np.int64)


def _prefix(column: pa.ChunkedArray) -> Ints:
    """The first bytes of texts and BINARYs as integers, in the order of their code points."""
    cut = [(text or b"")[:PREFIX_BYTES] for text in column.cast(pa.binary()).to_pylist()]
    joined = b"".join(each.ljust(PREFIX_BYTES, b"\0") for each in cut)
    unsigned = np.frombuffer(joined, dtype=">u8").astype(np.uint64)
    return (unsigned ^ np.uint64(2**63)).view(np.int64)


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """The column as one that Arrow sorts as CQL does: doubles as integers, NaN being the last."""
    if not pa.types.is_floating(column.type):
        return column
    return pa.array(places_of(column)[:-1], mask=~mask_of(column)[:-1])

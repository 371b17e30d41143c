"""MAPs within the engine: the bytes of ARRAYs of their keys and values, in the order of keys.

Of several values of one key the last counts.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrays import closed, opened
from millpond.connectors.cells import Bools, Ints, binaries, cells_of
from millpond.connectors.structs import closed_structs, opened_structs
from millpond.schema import Type


def closed_maps(offsets: pa.Array, keys: pa.Array, values: pa.Array, valid: Bools) -> pa.Array:
    """MAPs whose entries begin and end there, of columns as they are within the engine."""
    counts = np.diff(np.asarray(offsets).astype(np.int64)).astype(np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    picked = _in_order(rows, keys)
    ends = np.searchsorted(rows[picked], np.arange(len(counts) + 1))
    at, every = pa.array(picked), np.ones(len(picked), np.bool_)
    entries = closed_structs([keys.take(at), values.take(at)], every)
    return closed(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), entries), valid)


def _in_order(rows: Ints, keys: pa.Array) -> Ints:
    """The last entry of each key of a row, in order of keys."""
    cells = binaries(*cells_of(keys), np.ones(len(keys), np.bool_))
    table = pa.table({"row": rows, "key": cells, "at": np.arange(len(rows))})
    order = np.asarray(pc.sort_indices(table, [(n, "ascending") for n in table.column_names]))
    sorted_rows, sorted_cells = rows[order], cells.take(pa.array(order))
    is_last = np.ones(len(order), np.bool_)
    alike = np.asarray(pc.equal(sorted_cells[:-1], sorted_cells[1:])).astype(np.bool_)
    is_last[:-1] = (sorted_rows[:-1] != sorted_rows[1:]) | ~alike
    return order[is_last].astype(np.int64)


def opened_maps(column: pa.Array, type_: Type) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Where the entries of each MAP begin and end, the keys and the values; NULLs have none."""
    lists = opened(column, type_.entries)
    keys, values = opened_structs(lists.values, type_.entries.element)
    return lists.offsets, keys, values

"""ARRAYs within the engine: bytes that are the cells of their elements, one behind the other.

The bytes are the same for equal ARRAYs and for no others, and in the order of the ARRAYs: keys,
hashes, sorts and states take them as they take BINARYs.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.cells import Bools, binaries, cells_of, flat, values_of
from millpond.schema import Type


def opened_lists(lists: pa.Array) -> pa.ListArray:
    """Lists without gaps: those that are NULL are empty."""
    counts = np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), lists.flatten())


def closed(lists: pa.ListArray, valid: Bools) -> pa.Array:
    """ARRAYs of lists without gaps, whose values are as they are within the engine."""
    values = lists.values
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    starts, content = cells_of(values)
    return binaries(starts[np.asarray(lists.offsets)], content, valid)


def opened(column: pa.Array, type_: Type) -> pa.ListArray:
    """The elements of ARRAYs, as they are within the engine; those that are NULL have none."""
    offsets, content = flat(column)
    starts, values = values_of(content, ARROW_TYPES[type_.element])
    at = np.searchsorted(starts, offsets)
    return pa.ListArray.from_arrays(pa.array(at, pa.int32()), values)

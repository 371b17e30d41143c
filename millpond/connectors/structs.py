"""STRUCTs within the engine: bytes that are the cells of their fields, one behind the other."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.cells import Bools, binaries, cells_of, ends_of, flat, values_at
from millpond.schema import Type


def closed_structs(fields: Sequence[pa.Array], valid: Bools) -> pa.Array:
    """STRUCTs of columns as they are within the engine, NULL where they are not valid."""
    every = np.ones(len(valid), np.bool_)
    cells = [binaries(*cells_of(field), every) for field in fields]
    made = pc.binary_join_element_wise(*cells, b"")
    return made if valid.all() else pc.if_else(pa.array(valid), made, pa.scalar(None, pa.binary()))


def opened_structs(column: pa.Array, type_: Type) -> list[pa.Array]:
    """The columns of STRUCTs, as they are within the engine; NULLs have NULLs."""
    valid = np.asarray(column.is_valid()).astype(np.bool_)
    offsets, content = flat(column)
    ends, at, found = ends_of(content), offsets[:-1][valid], []
    rows = pa.array(np.cumsum(valid) - 1, mask=~valid)
    for field in type_.fields:
        values, at = values_at(content, ends, at, ARROW_TYPES[field.type])
        found.append(values if valid.all() else values.take(rows))
    return found

"""Arrow columns as numpy arrays and back, with NULLs as masks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.decimals import NARROW_DIGITS, column_of, is_wide, wholes
from millpond.kernels.groups import Bools, Floats, Ints, ranks


@dataclass(frozen=True)
class Values:
    """Comparable numbers with a mask, and the way back to an Arrow column."""

    data: Ints | Floats
    valid: Bools
    to_arrow: Callable[[Ints], pa.Array]

    def differs_from_previous(self) -> Bools:
        """Whether each value differs from the one before it; the first one does not."""
        same_mask = self.valid[1:] == self.valid[:-1]
        with np.errstate(invalid="ignore"):
            equal = self.data[1:] == self.data[:-1]
        if self.data.dtype.kind == "f":
            equal |= np.isnan(self.data[1:]) & np.isnan(self.data[:-1])
        return with_first(False, ~(same_mask & (equal | ~self.valid[1:])))


def of_numbers(data: Ints | Floats, valid: Bools, type_: pa.DataType) -> Values:
    """Numbers that become a numeric column."""
    return Values(data, valid, lambda at: pa.array(data[at], mask=~valid[at]).cast(type_))


def is_bytes(type_: pa.DataType) -> bool:
    """Whether values are runs of bytes: texts and BINARYs."""
    return type_.id in _BYTES


_BYTES = {pa.string().id, pa.large_string().id, pa.binary().id}


def marked(mask: npt.NDArray[Any]) -> Ints:
    """Where a mask is true, or numbers are not 0: numpy's ``flatnonzero`` without its wrappers,
    which take longer than a thousand rows."""
    return mask.nonzero()[0]


def with_first(value: Any, rest: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values with another one before them: ``numpy.append`` without its wrappers."""
    return np.concatenate(((value,), rest))


def with_last(rest: npt.NDArray[Any], value: Any) -> npt.NDArray[Any]:
    """The values with another one behind them."""
    return np.concatenate((rest, (value,)))


def mask_of(column: pa.ChunkedArray) -> Bools:
    """True where the column is not NULL, with a final False for "no row"."""
    return with_last(np.asarray(column.is_valid()).astype(np.bool_), False)


def doubles_of(column: pa.ChunkedArray) -> Floats:
    """The column as doubles, zero where NULL, with a final zero for "no row"."""
    filled = pc.fill_null(column.cast(pa.float64()), 0.0)
    return with_last(np.asarray(filled), 0.0)


def integers_of(column: pa.ChunkedArray) -> Ints:
    """The column as 64-bit integers, zero where NULL, with a final zero for "no row"."""
    filled = pc.fill_null(column.cast(pa.int64()), 0)
    return with_last(np.asarray(filled), 0).astype(np.int64)


def sortable(column: pa.ChunkedArray) -> tuple[Ints, Callable[[Ints], pa.Array]]:
    """Order-preserving integers for a column without NULLs, and the way back.

    NaN is greater than every number, as in Spark.
    """
    type_ = column.type
    if pa.types.is_floating(type_):
        return sortable_doubles(np.asarray(pc.add(column, 0.0))), doubles_back
    if is_bytes(type_) or is_wide(type_):
        return _sortable_strings(column)
    if pa.types.is_decimal(type_):
        return wholes(flat(column)).astype(np.int64), lambda units: column_of(units, type_)
    width = pa.int32() if type_.bit_width == 32 else pa.int64()
    if pa.types.is_boolean(type_):
        data = np.asarray(column.cast(pa.int8())).astype(np.int64)
        return data, lambda values: pa.array(values.astype(np.bool_))
    data = np.asarray(column.cast(width)).astype(np.int64)
    if len(data) and data.min() == _LEAST:  # its negative is no 64-bit integer
        distinct, places = np.unique(data, return_inverse=True)
        return places.astype(np.int64), lambda values: pa.array(distinct[values]).cast(type_)
    return data, lambda values: pa.array(values).cast(width).cast(type_)


_FLIP = np.int64(2**63 - 1)
_LEAST = np.int64(-(2**63))


def sortable_doubles(data: Floats) -> Ints:
    """Order-preserving integers for doubles; NaN is the greatest."""
    data = np.where(np.isnan(data), np.nan, data)
    bits = np.ascontiguousarray(data).view(np.int64)
    return np.where(bits < 0, bits ^ _FLIP, bits)


def places_of(column: pa.ChunkedArray) -> Ints:
    """Order-preserving integers, the same in every step; anything where NULL, and behind the last.

    NaN is greater than every number, as in Spark. Of wide DECIMALs those that are near each other
    may have the same.
    """
    if pa.types.is_decimal(column.type):
        units = wholes(flat(column)) // 10 ** max(column.type.precision - NARROW_DIGITS, 0)
        return np.append(np.where(mask_of(column)[:-1], units, 0), 0).astype(np.int64)
    if pa.types.is_floating(column.type):
        filled = pc.add(pc.fill_null(column, 0.0), 0.0)
        return with_last(sortable_doubles(np.asarray(filled, dtype=np.float64)), 0)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif column.type.bit_width == 32:
        column = column.cast(pa.int32())
    filled = pc.fill_null(column.cast(pa.int64()), 0)
    return with_last(np.asarray(filled), 0).astype(np.int64)


def doubles_back(values: Ints) -> pa.Array:
    """The doubles of such integers."""
    bits = np.where(values < 0, values ^ _FLIP, values)
    return pa.array(np.ascontiguousarray(bits).view(np.float64))


def _sortable_strings(column: pa.ChunkedArray) -> tuple[Ints, Callable[[Ints], pa.Array]]:
    data = ranks(column)
    example = np.zeros(int(data.max(initial=0)) + 1, dtype=np.int64)
    example[data] = np.arange(len(data))

    def back(values: Ints) -> pa.Array:
        taken = column.take(pa.array(example[values]))
        return taken.combine_chunks() if taken.num_chunks != 1 else taken.chunk(0)

    return data, back


def integers(column: pa.ChunkedArray) -> Ints:
    """A column of 64-bit integers without NULLs."""
    return np.asarray(column).astype(np.int64, copy=False)


def flat(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)

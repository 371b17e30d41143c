"""Columns while they are computed with: numbers as numpy arrays, text as Arrow arrays.

An operand has one value for each row, or a single one if it is constant: numpy repeats that by
itself. A fault belongs to a row of an operand and is no exception yet, for only the whole
expression knows which rows of which operand are needed: those of an untaken CASE branch are not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.expressions import Literal
from millpond.kernels.decimals import column_of, wholes
from millpond.kernels.expressions.faults import Faults
from millpond.kernels.groups import Bools
from millpond.schema import Type

Array = npt.NDArray[Any]

DTYPES: dict[Type, type[np.generic]] = {
    Type.BOOLEAN: np.bool_,
    Type.INT: np.int32,
    Type.BIGINT: np.int64,
    Type.DOUBLE: np.float64,
    Type.DATE: np.int32,
    Type.TIMESTAMP: np.int64,
}
"""How numpy holds values; DATE counts days and TIMESTAMP microseconds since 1970. DECIMALs are in
``kernels/decimals.py``."""


@dataclass(frozen=True, slots=True)
class Operand:
    """Values of one type but STRING, BINARY, ARRAY, STRUCT and MAP.

    What stands where ``valid`` is false means nothing; ``valid`` None means that no value is NULL,
    ``faults`` None that no row failed.
    """

    data: Array
    valid: Bools | None = None
    faults: Faults | None = None

    @property
    def true(self) -> Bools:
        """Where a truth value is true, and not NULL."""
        return self.data if self.valid is None else self.data & self.valid


@dataclass(frozen=True, slots=True)
class Text:
    """Values of type STRING, BINARY, ARRAY, STRUCT or MAP, NULLs included."""

    data: pa.Array
    faults: Faults | None = None

    @property
    def valid(self) -> Bools | None:
        """Where the text is not NULL; None if it is nowhere."""
        return _mask(self.data)

    @property
    def constant(self) -> Any:
        """The only value; meaningful for operands of one row."""
        return self.data[0].as_py()


Value = Operand | Text


def both(first: Bools | None, second: Bools | None) -> Bools | None:
    """Where both are true, None standing for everywhere."""
    if first is None or second is None:
        return second if first is None else first
    return first & second


def of_literal(literal: Literal) -> Value:
    """A constant as an operand of one row."""
    if literal.type in (Type.STRING, Type.NULL):
        return Text(pa.array([literal.value], pa.string()))
    return of_array(pa.array([literal.value], ARROW_TYPES[literal.type]), literal.type)


def of_column(column: pa.ChunkedArray | pa.Array, type_: Type) -> Value:
    """A column of a table as an operand."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else _joined(column)
    return of_array(column, type_)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def of_array(array: pa.Array, type_: Type) -> Value:
    """An Arrow array as an operand; numbers are looked at, not copied."""
    if type_ in (Type.STRING, Type.NULL):
        return Text(array if array.type == pa.string() else array.cast(pa.string()))
    if type_ is Type.BINARY or type_.is_nested:
        return Text(array)
    if type_ is Type.BOOLEAN:
        return Operand(_bits(array.buffers()[1], array), _mask(array))
    if type_.is_decimal:
        return Operand(wholes(array), _mask(array))
    dtype = np.dtype(DTYPES[type_])
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return Operand(np.empty(0, dtype))
    start = array.offset * dtype.itemsize
    return Operand(np.frombuffer(buffer, dtype, len(array), start), _mask(array))


def _mask(array: pa.Array) -> Bools | None:
    return _bits(array.buffers()[0], array) if array.null_count else None


def _bits(buffer: pa.Buffer | None, array: pa.Array) -> Bools:
    """The bits of a buffer that belong to the array, as truth values."""
    if buffer is None or len(array) == 0:
        return np.ones(len(array), np.bool_)
    first, within = divmod(array.offset, 8)
    count = within + len(array)
    packed = np.frombuffer(buffer, np.uint8, (count + 7) // 8, first)
    return np.unpackbits(packed, count=count, bitorder="little")[within:].view(np.bool_)


def to_array(value: Value, type_: Type, rows: int) -> pa.Array:
    """An operand as an Arrow array of so many rows."""
    if isinstance(value, Text):
        return value.data if len(value.data) == rows else repeated(value.data, rows)
    data = over_rows(value.data, rows)
    if type_.is_decimal:
        valid = None if value.valid is None else over_rows(value.valid, rows)
        return column_of(data, ARROW_TYPES[type_], valid)
    packed = pa.py_buffer(_packed(data) if type_ is Type.BOOLEAN else np.ascontiguousarray(data))
    validity = None
    if value.valid is not None:
        validity = pa.py_buffer(_packed(over_rows(value.valid, rows)))
    return pa.Array.from_buffers(ARROW_TYPES[type_], rows, [validity, packed])


def over_rows(data: Array, rows: int) -> Array:
    """The data with one value for each row."""
    return data if len(data) == rows else np.repeat(data, rows)


def _packed(mask: Bools) -> npt.NDArray[np.uint8]:
    return np.packbits(mask, bitorder="little")


def repeated(text: pa.Array, rows: int) -> pa.Array:
    """A constant text for so many rows."""
    return text.take(pa.array(np.zeros(rows, np.int32)))

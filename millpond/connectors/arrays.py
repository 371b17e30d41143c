"""ARRAYs, which are lists outside of the engine and bytes within it.

The bytes are the same for equal ARRAYs and for no others, and in the order of the ARRAYs: keys,
hashes, sorts and states take them as they take BINARYs. Each element is a *cell*: a byte that says
whether it is NULL, then its value, in bytes that are in the order of values. Cells of texts,
BINARYs and ARRAYs end with a zero, and a zero within them has 255 behind it; those of others have
one length.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.schema import Type

Array: TypeAlias = pa.Array | pa.ChunkedArray
Bytes: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]

_NULL, _VALUE, _END, _ZERO = b"\x01", b"\x02", b"\x00", b"\x00\xff"
_SIGN = np.uint64(2**63)


def outside_type(type_: Type) -> pa.DataType:
    """The Arrow type that values of a type have outside of the engine.

    >>> outside_type(Type.array(Type.array(Type.INT)))
    ListType(list<item: list<item: int32>>)
    """
    return pa.list_(outside_type(type_.element)) if type_.is_array else ARROW_TYPES[type_]


def inside(column: Array) -> pa.Array:
    """A column, of lists too, as it is within the engine."""
    column = _whole(column)
    if not pa.types.is_list(column.type):
        return column
    lists = opened_lists(column)
    made = pa.ListArray.from_arrays(lists.offsets, inside(lists.values))
    return closed(made, np.asarray(column.is_valid()).astype(np.bool_))


def outside(column: Array, type_: Type) -> pa.Array:
    """The same column as it is outside of the engine."""
    column = _whole(column)
    if not type_.is_array:
        return column
    lists = opened(column, type_)
    values = outside(lists.values, type_.element)
    return pa.ListArray.from_arrays(lists.offsets, values, mask=pc.is_null(column))


def inside_table(table: pa.Table) -> pa.Table:
    """A table as it is within the engine."""
    for at, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            table = table.set_column(at, field.name, inside(table.column(at)))
    return table


def outside_table(table: pa.Table, types: Sequence[Type], first: int = 0) -> pa.Table:
    """A table as it is outside, whose columns from a number on are of these types."""
    for at, type_ in enumerate(types, start=first):
        if type_.is_array:
            column = outside(table.column(at), type_)
            table = table.set_column(at, table.field(at).name, column)
    return table


def outside_row(row: Sequence[Any], types: Sequence[Type]) -> tuple[Any, ...]:
    """The values of a row within the engine as people know them, for messages."""
    return tuple(
        outside(pa.array([value], pa.binary()), type_).to_pylist()[0] if type_.is_array else value
        for value, type_ in zip(row, types, strict=True)
    )


def opened_lists(lists: pa.Array) -> pa.ListArray:
    """Lists without gaps: those that are NULL are empty."""
    counts = np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), lists.flatten())


def closed(lists: pa.ListArray, valid: Bools) -> pa.Array:
    """ARRAYs of lists without gaps, whose values are as they are within the engine."""
    values = _whole(lists.values)
    at = np.asarray(lists.offsets).astype(np.int64)
    if _has_ends(values.type):
        cells = _cells_with_ends(values)
        starts, content = np.asarray(_offsets(cells)).astype(np.int64), _content(cells)
    else:
        made = _cells(values)
        starts = np.arange(len(made) + 1) * made.shape[1]
        content = pa.py_buffer(np.ascontiguousarray(made))
    return _binaries(starts[at], content, valid)


def opened(column: pa.Array, type_: Type) -> pa.ListArray:
    """The elements of ARRAYs, as they are within the engine; those that are NULL have none."""
    filled = pc.fill_null(column, b"")
    offsets = np.asarray(_offsets(filled)).astype(np.int64)
    content = np.frombuffer(_content(filled), np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    element = ARROW_TYPES[type_.element]
    if _has_ends(element):
        starts, values = _values_with_ends(content, element)
        at = np.searchsorted(starts, offsets)
    else:
        width = 1 + _WIDTHS.get(_kind(element), 8)
        cells = content.reshape(-1, width)
        at, values = offsets // width, _values(cells, element)
    return pa.ListArray.from_arrays(pa.array(at, pa.int32()), values)


def _whole(column: Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _has_ends(element: pa.DataType) -> bool:
    return bool(pa.types.is_string(element) or pa.types.is_binary(element))


def _offsets(binaries: pa.Array) -> pa.Array:
    """Where the bytes of each begin and end."""
    buffer = binaries.buffers()[1]
    if buffer is None or len(binaries) == 0:
        return pa.array([0], pa.int32())
    return pa.Array.from_buffers(pa.int32(), len(binaries) + 1, [None, buffer], 0, binaries.offset)


def _content(binaries: pa.Array) -> pa.Buffer:
    return binaries.buffers()[2] or pa.py_buffer(b"")


def _binaries(offsets: Ints, content: pa.Buffer, valid: Bools) -> pa.Array:
    if offsets[-1] >= 2**31:
        raise pa.ArrowInvalid("ARRAYs of two gigabytes and more in one place")
    packed = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [packed, pa.py_buffer(offsets.astype(np.int32)), content]
    return pa.Array.from_buffers(pa.binary(), len(valid), buffers)


# -- cells with an end -------------------------------------------------------------------------


def _cells_with_ends(values: pa.Array) -> pa.Array:
    plain = values.cast(pa.binary())
    if _has_zeros(plain):
        plain = pc.replace_substring(plain, _END, _ZERO)
    cells = pc.binary_join_element_wise(_VALUE, plain, _END, b"")
    return pc.fill_null(cells, _NULL + _END)


def _has_zeros(binaries: pa.Array) -> bool:
    offsets = np.asarray(_offsets(binaries))
    content = np.frombuffer(_content(binaries), np.uint8)[offsets[0] : offsets[-1]]
    return bool((content == 0).any())


def _values_with_ends(content: Bytes, element: pa.DataType) -> tuple[Ints, pa.Array]:
    """Where cells begin, and what they hold."""
    follows = np.concatenate((content[1:], np.zeros(1, np.uint8)))[: len(content)]
    ends = np.flatnonzero((content == 0) & (follows != _ZERO[1]))
    starts = np.concatenate(([0], ends[:-1] + 1))[: len(ends)]
    kept = np.ones(len(content), np.bool_)
    kept[starts] = kept[ends] = False
    offsets = np.concatenate(([0], np.cumsum(ends - starts - 1)))
    plain = _binaries(offsets, pa.py_buffer(content[kept]), content[starts] == _VALUE[0])
    if _has_zeros(plain):
        plain = pc.replace_substring(plain, _ZERO, _END)
    return starts.astype(np.int64), plain.cast(element)


# -- cells of one length -----------------------------------------------------------------------


def _cells(values: pa.Array) -> Bytes:
    """A row of bytes for each value: whether it is there, and what is in the order of values."""
    valid = np.asarray(values.is_valid()).astype(np.bool_)
    body = _BODIES[_kind(values.type)](values)
    tag = np.where(valid, _VALUE[0], _NULL[0]).astype(np.uint8)
    return np.concatenate((tag[:, None], np.where(valid[:, None], body, np.uint8(0))), axis=1)


def _values(cells: Bytes, element: pa.DataType) -> pa.Array:
    missing = cells[:, 0] != _VALUE[0]
    body = np.ascontiguousarray(cells[:, 1:])
    return _READ[_kind(element)](body, missing, element)


def _kind(element: pa.DataType) -> str:
    if pa.types.is_decimal(element):
        return "decimal"
    return {pa.bool_(): "truth", pa.float64(): "double"}.get(element, "whole")


_WIDTHS = {"truth": 1, "decimal": 16}


def _filled(values: pa.Array, type_: pa.DataType) -> npt.NDArray[np.generic]:
    """Numbers, anything where they are NULL."""
    raw = values.view(pa.int32()) if values.type in (pa.date32(), pa.int32()) else values
    raw = raw.view(pa.int64()) if pa.types.is_timestamp(raw.type) else raw
    return np.asarray(pc.fill_null(raw.cast(type_), pa.scalar(0).cast(type_)))


def _bytes_of(numbers: npt.NDArray[np.uint64]) -> Bytes:
    return numbers.astype(">u8").view(np.uint8).reshape(-1, 8)


def _numbers_of(body: Bytes) -> npt.NDArray[np.uint64]:
    return body.view(">u8").astype(np.uint64)


def _truth_body(values: pa.Array) -> Bytes:
    return _filled(values, pa.int8()).astype(np.uint8)[:, None]


def _whole_body(values: pa.Array) -> Bytes:
    return _bytes_of(_filled(values, pa.int64()).view(np.uint64) ^ _SIGN)


def _double_body(values: pa.Array) -> Bytes:
    """One zero and one NaN, which is above all numbers."""
    numbers = _filled(values, pa.float64()).astype(np.float64) + 0.0
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    return _bytes_of(np.where(bits >= _SIGN, ~bits, bits ^ _SIGN))


def _decimal_body(values: pa.Array) -> Bytes:
    """The units of DECIMALs, as numbers of 128 bits."""
    halves = np.frombuffer(values.buffers()[1] or b"", np.uint64).reshape(-1, 2)
    halves = halves[values.offset : values.offset + len(values)]
    return np.concatenate((_bytes_of(halves[:, 1] ^ _SIGN), _bytes_of(halves[:, 0])), axis=1)


def _truths(body: Bytes, missing: Bools, type_: pa.DataType) -> pa.Array:
    return pa.array(body[:, 0] != 0, mask=missing)


def _wholes(body: Bytes, missing: Bools, type_: pa.DataType) -> pa.Array:
    numbers = (_numbers_of(body).reshape(-1) ^ _SIGN).view(np.int64)
    numbers = np.where(missing, 0, numbers)
    if type_ in (pa.int32(), pa.date32()):
        return pa.array(numbers.astype(np.int32), mask=missing).view(type_)
    return pa.array(numbers, mask=missing).view(type_)


def _doubles(body: Bytes, missing: Bools, type_: pa.DataType) -> pa.Array:
    bits = _numbers_of(body).reshape(-1)
    bits = np.where(bits >= _SIGN, bits ^ _SIGN, ~bits)
    return pa.array(bits.view(np.float64), mask=missing)


def _decimals(body: Bytes, missing: Bools, type_: pa.DataType) -> pa.Array:
    halves = _numbers_of(body).reshape(-1, 2)
    units = np.stack((halves[:, 1], halves[:, 0] ^ _SIGN), axis=1)
    units = np.ascontiguousarray(np.where(missing[:, None], np.uint64(0), units))
    packed = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(type_, len(body), [packed, pa.py_buffer(units)])


_BODIES: dict[str, Callable[[pa.Array], Bytes]] = {
    "truth": _truth_body,
    "whole": _whole_body,
    "double": _double_body,
    "decimal": _decimal_body,
}
_READ: dict[str, Callable[[Bytes, Bools, pa.DataType], pa.Array]] = {
    "truth": _truths,
    "whole": _wholes,
    "double": _doubles,
    "decimal": _decimals,
}

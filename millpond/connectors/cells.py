"""Cells: values as bytes that are in the order of the values, one behind the other.

A cell is a byte that says whether it is NULL, then its value. Cells of texts, BINARYs and what has
values in it end with a zero, and a zero within them has 255 behind it; those of others have one
length. So equal values have equal cells, and cells behind each other are in the order of rows.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]

_NULL, _VALUE, _END, _ZERO = b"\x01", b"\x02", b"\x00", b"\x00\xff"
_SIGN = np.uint64(2**63)


def cells_of(values: pa.Array) -> tuple[Ints, pa.Buffer]:
    """Where the cell of each value begins, and their bytes."""
    if _has_ends(values.type):
        cells = _cells_with_ends(values)
        return _offsets(cells), _content(cells)
    made = _cells(values)
    starts = np.arange(len(made) + 1) * made.shape[1]
    return starts, pa.py_buffer(np.ascontiguousarray(made))


def values_of(content: Bytes, type_: pa.DataType) -> tuple[Ints, pa.Array]:
    """Where each cell begins, of bytes that are cells of one type, and their values."""
    if not _has_ends(type_):
        cells = content.reshape(-1, _width(type_))
        return np.arange(len(cells)) * _width(type_), _values(cells, type_)
    ends = ends_of(content)
    starts = np.concatenate(([0], ends[:-1] + 1))[: len(ends)].astype(np.int64)
    return starts, _between(content, starts, ends, type_)


def values_at(
    content: Bytes, ends: Ints, starts: Ints, type_: pa.DataType
) -> tuple[pa.Array, Ints]:
    """The values of the cells at these places, and where they end; ``ends`` are all that may be."""
    if not _has_ends(type_):
        width = _width(type_)
        return _values(content[starts[:, None] + np.arange(width)], type_), starts + width
    at = ends[np.searchsorted(ends, starts)]
    return _between(content, starts, at, type_), at + 1


def ends_of(content: Bytes) -> Ints:
    """Where cells that have ends may end."""
    follows = np.concatenate((content[1:], np.zeros(1, np.uint8)))[: len(content)]
    return np.flatnonzero((content == 0) & (follows != _ZERO[1]))


def flat(binaries: pa.Array) -> tuple[Ints, Bytes]:
    """Where the bytes of each begin and end, and all of them; NULLs have none."""
    filled = pc.fill_null(binaries, b"")
    offsets = _offsets(filled)
    content = np.frombuffer(_content(filled), np.uint8)[offsets[0] : offsets[-1]]
    return offsets - offsets[0], content


def binaries(offsets: Ints, content: pa.Buffer, valid: Bools) -> pa.Array:
    """BINARYs that lie in these bytes."""
    if offsets[-1] >= 2**31:
        raise pa.ArrowInvalid("ARRAYs, STRUCTs or MAPs of two gigabytes and more in one place")
    packed = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [packed, pa.py_buffer(offsets.astype(np.int32)), content]
    return pa.Array.from_buffers(pa.binary(), len(valid), buffers)


def _has_ends(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def _offsets(column: pa.Array) -> Ints:
    """Where the bytes of each begin and end."""
    buffer = column.buffers()[1]
    if buffer is None or len(column) == 0:
        return np.zeros(1, np.int64)
    found = pa.Array.from_buffers(pa.int32(), len(column) + 1, [None, buffer], 0, column.offset)
    return np.asarray(found).astype(np.int64)


def _content(column: pa.Array) -> pa.Buffer:
    return column.buffers()[2] or pa.py_buffer(b"")


# -- cells with an end -------------------------------------------------------------------------


def _cells_with_ends(values: pa.Array) -> pa.Array:
    plain = values.cast(pa.binary())
    if _has_zeros(plain):
        plain = pc.replace_substring(plain, _END, _ZERO)
    cells = pc.binary_join_element_wise(_VALUE, plain, _END, b"")
    return pc.fill_null(cells, _NULL + _END)


def _has_zeros(column: pa.Array) -> bool:
    offsets = _offsets(column)
    content = np.frombuffer(_content(column), np.uint8)[offsets[0] : offsets[-1]]
    return bool((content == 0).any())


def _between(content: Bytes, starts: Ints, ends: Ints, type_: pa.DataType) -> pa.Array:
    """What stands in the cells from here to there."""
    sizes = ends - starts - 1
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(offsets[-1]) + np.repeat(starts + 1 - offsets[:-1], sizes)
    valid = content[starts] == _VALUE[0]
    plain = binaries(offsets, pa.py_buffer(content[places]), valid)
    if _has_zeros(plain):
        plain = pc.replace_substring(plain, _ZERO, _END)
    return plain.cast(type_)


# -- cells of one length -----------------------------------------------------------------------


def _width(type_: pa.DataType) -> int:
    return 1 + _WIDTHS.get(_kind(type_), 8)


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
    if len(values) == 0:
        return np.empty((0, 16), np.uint8)
    halves = np.frombuffer(values.buffers()[1], np.uint64).reshape(-1, 2)
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

"""Numbers for groups: equal key values get equal codes, NULLs being equal to each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.signedinteger[Any]]


MOST_PACKED = 2**62
"""Numbers of several columns are packed into one that is below."""

TABLE_SHARE, LEAST_TABLE = 4, 2**16
"""Numbers below so many times the rows, or below so many, have a place each in a table."""

FEW_SHARE = 16
"""But Arrow's hashing is as quick where so many rows have one number."""


class _Numbers(NamedTuple):
    """A number for each row, from zero up and below a bound, equal for equal values."""

    data: Ints
    bound: int
    is_dense: bool = False
    """Whether each number comes for the first time after all smaller ones have."""

    def made_dense(self) -> _Numbers:
        """The same in the order in which they come first."""
        if self.is_dense:
            return self
        size = len(self.data)
        is_some = size < FEW_SHARE * self.bound or size < LEAST_TABLE
        if is_some and self.bound <= max(TABLE_SHARE * size, LEAST_TABLE):
            return _dense(_by_place(self.data, self.bound))
        return _hashed(pa.array(self.data))

    def beside(self, other: _Numbers) -> _Numbers:
        """One number for both."""
        packed = self.data * other.bound + other.data
        return _Numbers(packed, self.bound * other.bound)


def encode(columns: Sequence[pa.ChunkedArray], rows: int) -> Ints:
    """A dense code for each row, equal for rows equal in all columns, by order of coming.

    >>> encode([pa.chunked_array([[7, 5, 7, None]]), pa.chunked_array([["a", "b", "a", "a"]])], 4)
    array([0, 1, 0, 2])
    """
    if not columns or not rows:
        return np.zeros(rows, dtype=np.int64)
    numbers = _numbers(columns[0])
    for column in columns[1:]:
        other = _numbers(column)
        if numbers.bound * other.bound > MOST_PACKED:
            numbers, other = numbers.made_dense(), other.made_dense()
        numbers = numbers.beside(other)
    return numbers.made_dense().data


def _numbers(column: pa.ChunkedArray) -> _Numbers:
    """The numbers of a column: what whole numbers are above the least, or of coming."""
    type_ = column.type
    if column.null_count or not (pa.types.is_integer(type_) or pa.types.is_temporal(type_)):
        if pa.types.is_floating(type_):
            column = pc.add(column, 0.0)  # -0.0 and 0.0 are one value
        return _hashed(column.combine_chunks())
    width = pa.int32() if type_.bit_width == 32 else pa.int64()
    data = np.asarray(column.cast(width)).astype(np.int64, copy=False)
    low, high = int(data.min()), int(data.max())
    if high - low >= MOST_PACKED:
        return _hashed(column.combine_chunks())
    return _Numbers(data - low, high - low + 1)


def _hashed(column: pa.Array) -> _Numbers:
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return _dense(np.asarray(encoded.indices).astype(np.int64))


def _dense(codes: Ints) -> _Numbers:
    return _Numbers(codes, int(codes.max()) + 1, is_dense=True)


def _by_place(numbers: Ints, bound: int) -> Ints:
    """Codes in the order in which numbers come first, by a table with a place for each number."""
    rows = np.arange(len(numbers))
    first = np.empty(bound, dtype=np.int64)
    first[numbers[::-1]] = rows[::-1]
    begins = first[numbers]
    return (np.cumsum(begins == rows) - 1)[begins]


def stable_order(keys: Ints) -> Ints:
    """The stable order of integers: by 16 bits at a time where few passes do, for numpy sorts those
    by radix, several times faster than whole integers.

    >>> stable_order(np.array([70_000, 3, 70_000, -5])).tolist()
    [3, 1, 0, 2]
    """
    low, high = int(keys.min(initial=0)), int(keys.max(initial=0))
    passes = -(-(high - low).bit_length() // 16)
    if len(keys) < 1_000 or passes > 3:
        return np.argsort(keys, kind="stable")
    rest = keys - low
    order = np.argsort(rest.astype(np.uint16), kind="stable")
    for place in range(1, passes):
        digits = (rest >> (16 * place)).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def distinct(numbers: Slots) -> Slots:
    """The different ones among integers, in order. numpy's ``unique`` puts them into a hash table
    first, which takes ten to forty times as long.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def first_rows(codes: Ints) -> Ints:
    """For each code from zero up, the first row that has it."""
    rows = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    rows[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return rows


def ranks(column: pa.ChunkedArray) -> Ints:
    """Order-preserving integers for the values of a column without NULLs."""
    return np.asarray(pc.rank(column, tiebreaker="dense")).astype(np.int64)

"""Spark's Murmur3 hash of rows: which bucket of a state a row belongs to, wherever it is asked.

The driver and ``DataFrame.repartition`` must agree on it, so that a state can be read and written
in either place. Murmur3 goes word by word, each on the result of the one before, which takes Python
long: of a long text its MD5 is hashed in its place, which hashlib and Spark have in C and in Java.
Which texts are long is part of the format of stores.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.columns import flat, is_bytes, marked
from millpond.kernels.decimals import as_bytes, is_narrow, wholes
from millpond.kernels.groups import Ints

SEED = 42
"""Spark's."""

FEW_ROWS = 24
"""So few strings are hashed one by one: numpy would take longer a word."""

LONG_BYTES = 256
"""Of a text with more bytes its digest is hashed."""

Words = npt.NDArray[np.uint32]

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_C3, _C4 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_FIVE, _ADD = np.uint32(5), np.uint32(0xE6546B64)


def buckets(columns: Sequence[pa.ChunkedArray], count: int) -> Ints:
    """The partition number of each row in ``repartition(count, *columns)``.

    >>> buckets([pa.chunked_array([[1, 2, None]], pa.int32())], 200).tolist()
    [43, 174, 42]
    """
    return murmur3(columns).view(np.int32).astype(np.int64) % count


def murmur3(columns: Sequence[pa.ChunkedArray], seed: int = SEED) -> Words:
    """The hash of each row, column after column; a NULL leaves it as it is."""
    hashes = np.full(len(columns[0]), seed, dtype=np.uint32)
    for column in columns:
        array = flat(column)
        valid = np.asarray(array.is_valid())
        hashes = np.where(valid, _hash_column(array, hashes), hashes)
    return hashes


def _hash_column(array: pa.Array, seeds: Words) -> Words:
    type_ = array.type
    if pa.types.is_null(type_):
        return seeds
    if is_bytes(type_):
        return _hash_strings(_digested(array), seeds)
    if pa.types.is_decimal(type_) and not is_narrow(type_):
        return _hash_strings(pa.array(as_bytes(array), pa.binary()), seeds)
    if not pa.types.is_floating(type_) and (pa.types.is_boolean(type_) or type_.bit_width == 32):
        return _hash_ints(np.asarray(pc.fill_null(array.cast(pa.int32()), 0)), seeds)
    return _hash_longs(bits_of(array), seeds)


def _digested(array: pa.Array) -> pa.Array:
    """Texts, with the digest in place of each that is long."""
    is_long = pc.greater(pc.binary_length(array), LONG_BYTES)
    if not pc.any(is_long).as_py():
        return array
    places = marked(np.asarray(pc.fill_null(is_long, False)))
    digests = [
        hashlib.md5(array[place].as_buffer(), usedforsecurity=False).hexdigest()
        for place in places.tolist()
    ]
    return pc.replace_with_mask(array, is_long, pa.array(digests, array.type))


def bits_of(array: pa.Array) -> Ints:
    """A number for each value but texts and wide DECIMALs: of doubles the bits, with one zero and
    one NaN."""
    if pa.types.is_decimal(array.type):
        return np.where(np.asarray(array.is_valid()), wholes(array), 0).astype(np.int64)
    if pa.types.is_floating(array.type):
        data = np.asarray(pc.fill_null(array, 0.0)) + 0.0
        data[np.isnan(data)] = np.nan
        return data.view(np.int64)
    if pa.types.is_boolean(array.type) or array.type.bit_width == 32:
        array = array.cast(pa.int32())
    return np.asarray(pc.fill_null(array.cast(pa.int64()), 0))


def _hash_ints(data: npt.NDArray[np.int32], seeds: Words) -> Words:
    words = np.ascontiguousarray(data, dtype=np.int32).view(np.uint32)
    return _finish(_mixed(seeds, _scrambled(words)), 4)


def _hash_longs(data: Ints, seeds: Words) -> Words:
    bits = np.ascontiguousarray(data, dtype=np.int64).view(np.uint64)
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (bits >> np.uint64(32)).astype(np.uint32)
    return _finish(_mixed(_mixed(seeds, _scrambled(low)), _scrambled(high)), 8)


def _hash_strings(array: pa.Array, seeds: Words) -> Words:
    """Words of four bytes, then each byte that remains as a signed integer."""
    array = pc.fill_null(array, b"" if pa.types.is_binary(array.type) else "")
    offsets = _offsets(array)
    starts, lengths = offsets[:-1], np.diff(offsets)
    buffer = array.buffers()[2]
    data = np.frombuffer(buffer if buffer is not None else b"", dtype=np.uint8)
    # a word begins at any byte: a view of overlapping words
    words = np.ndarray(max(len(data) - 3, 0), "<u4", buffer, 0, (1,)) if len(data) > 3 else None
    hashes = seeds.copy()
    rows = marked(lengths >= 4)
    place = 0
    while len(rows) > FEW_ROWS and words is not None:
        mixed = _mixed(hashes[rows], _scrambled(words[starts[rows] + 4 * place]))
        hashes[rows] = mixed
        place += 1
        rows = rows[lengths[rows] >= 4 * place + 4]
    for row in rows.tolist():
        first, last = starts[row] + 4 * place, starts[row] + lengths[row] // 4 * 4
        hashes[row] = _mixed_one_by_one(int(hashes[row]), data[first:last].view("<u4"))
    for place in range(3):
        rows = marked(lengths % 4 > place)
        byte = data[starts[rows] + lengths[rows] // 4 * 4 + place].view(np.int8)
        signed = byte.astype(np.int32).view(np.uint32)
        hashes[rows] = _mixed(hashes[rows], _scrambled(signed))
    return _finish(hashes, lengths.astype(np.uint32))


def _offsets(array: pa.Array) -> Ints:
    wide = pa.types.is_large_string(array.type)
    dtype = np.dtype(np.int64 if wide else np.int32)
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array) + 1, dtype=np.int64)
    offsets = np.frombuffer(buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)
    return offsets.astype(np.int64)


def _mixed_one_by_one(value: int, words: Words) -> int:
    for word in _scrambled(words).tolist():
        value ^= word
        value = ((value << 13 | value >> 19) * 5 + 0xE6546B64) & 0xFFFFFFFF
    return value


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _scrambled(words: Words) -> Words:
    return _rotated(words * _C1, 15) * _C2


def _mixed(hashes: Words, words: Words) -> Words:
    return _rotated(hashes ^ words, 13) * _FIVE + _ADD


def _finish(hashes: Words, length: Words | int) -> Words:
    hashes = hashes ^ np.uint32(length)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * _C3
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _C4
    return hashes ^ (hashes >> np.uint32(16))

"""Which tuples a sample keeps: by Spark's xxHash64 of their identity, the same in either place.

The hash goes from value to value, the hash of those before being the seed for the next.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.cql.algebra import DRAWS, Sample
from millpond.kernels.columns import flat, is_bytes
from millpond.kernels.decimals import as_bytes, is_narrow, wholes
from millpond.kernels.groups import Bools, Ints

Hashes = npt.NDArray[np.uint64]

SEED = 42
"""Spark's."""

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def is_sampled(sample: Sample, hashes: Hashes) -> Bools:
    """Whether tuples with these hashes are kept."""
    kept: Bools = draws_of(hashes) < sample.limit
    return kept


def draws_of(hashes: Hashes) -> Ints:
    """The draws of tuples with these hashes."""
    return (hashes & np.uint64(DRAWS - 1)).astype(np.int64)


def hash_of_stream(seed: int, queue: str) -> Hashes:
    """The hash with which all identities of a stream's tuples begin."""
    hashes = np.full(1, SEED, np.uint64)
    hashes = hash_ints(np.array([seed]), hashes) if _is_int(seed) else _long(seed, hashes)
    return hash_text(queue.encode(), hashes)


def _is_int(number: int) -> bool:
    return -(2**31) <= number < 2**31


def _long(number: int, hashes: Hashes) -> Hashes:
    return hash_longs(np.array([number], np.int64), hashes)


def hash_rows(columns: Sequence[pa.ChunkedArray], hashes: Hashes) -> Hashes:
    """The hash of each row, beginning with these hashes; a NULL leaves the hash as it is."""
    for column in columns:
        array = flat(column)
        hashes = np.broadcast_to(hashes, len(array))
        found = _hash_column(array, hashes)
        hashes = (
            np.where(np.asarray(array.is_valid()), found, hashes) if array.null_count else found
        )
    return hashes


def _hash_column(array: pa.Array, hashes: Hashes) -> Hashes:
    type_ = array.type
    if is_bytes(type_):
        texts = array.cast(pa.binary()).to_pylist()
        pairs = zip(texts, hashes, strict=True)
        found = [seed if text is None else hash_text(text, seed)[0] for text, seed in pairs]
        return np.array(found, np.uint64)
    if pa.types.is_decimal(type_):
        return _hash_decimals(array, hashes)
    if pa.types.is_floating(type_):
        return hash_longs(_double_bits(np.asarray(array.fill_null(0.0))), hashes)
    if pa.types.is_boolean(type_):
        return hash_ints(np.asarray(array.fill_null(False)).astype(np.int64), hashes)
    if type_.bit_width == 32:
        return hash_ints(np.asarray(array.view(pa.int32()).fill_null(0)).astype(np.int64), hashes)
    return hash_longs(np.asarray(array.view(pa.int64()).fill_null(0)), hashes)


def _hash_decimals(array: pa.Array, hashes: Hashes) -> Hashes:
    if is_narrow(array.type):
        return hash_longs(wholes(array).astype(np.int64), hashes)
    pairs = zip(as_bytes(array), hashes, strict=True)
    found = [seed if each is None else hash_text(each, seed)[0] for each, seed in pairs]
    return np.array(found, np.uint64)


def _double_bits(numbers: npt.NDArray[np.float64]) -> Ints:
    """The bits of doubles, of which -0.0 and 0.0 have the same and NaN one form only."""
    one_form = np.where(np.isnan(numbers), np.nan, numbers) + 0.0
    return one_form.view(np.int64)


def hash_ints(numbers: Ints, seeds: Hashes) -> Hashes:
    """The hash of 32-bit integers."""
    with np.errstate(over="ignore"):
        hashes = seeds + _P5 + np.uint64(4)
        hashes = hashes ^ ((numbers & 0xFFFFFFFF).view(np.uint64) * _P1)
        return _finished(_rotated(hashes, 23) * _P2 + _P3)


def hash_longs(numbers: Ints, seeds: Hashes) -> Hashes:
    """The hash of 64-bit integers."""
    with np.errstate(over="ignore"):
        hashes = seeds + _P5 + np.uint64(8)
        hashes = hashes ^ (_rotated(numbers.view(np.uint64) * _P2, 31) * _P1)
        return _finished(_rotated(hashes, 27) * _P1 + _P4)


def hash_text(text: bytes, seed: Hashes | np.uint64) -> Hashes:
    """The hash of one text."""
    with np.errstate(over="ignore"):
        size, at = len(text), 0
        hashes = np.atleast_1d(seed)
        if size >= 32:
            hashes, at = _blocks(text, hashes)
        else:
            hashes = hashes + _P5
        hashes = hashes + np.uint64(size)
        whole = at + (size - at) // 8 * 8
        for word in np.frombuffer(text[at:whole], "<u8"):
            hashes = hashes ^ (_rotated(word * _P2, 31) * _P1)
            hashes = _rotated(hashes, 27) * _P1 + _P4
        if size - whole >= 4:
            word = np.frombuffer(text[whole : whole + 4], "<u4").astype(np.uint64)
            hashes = _rotated(hashes ^ (word * _P1), 23) * _P2 + _P3
            whole += 4
        for byte in np.frombuffer(text[whole:], np.uint8).astype(np.uint64):
            hashes = _rotated(hashes ^ (byte * _P5), 11) * _P1
        return _finished(hashes)


def _blocks(text: bytes, seed: Hashes) -> tuple[Hashes, int]:
    """The hash of all whole blocks of 32 bytes, and where they end."""
    end = len(text) // 32 * 32
    lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
    for block in np.frombuffer(text[:end], "<u8").reshape(-1, 4):
        lanes = [
            _rotated(lane + word * _P2, 31) * _P1 for lane, word in zip(lanes, block, strict=True)
        ]
    turns = zip(lanes, (1, 7, 12, 18), strict=True)
    hashes = sum((_rotated(lane, turn) for lane, turn in turns), np.zeros(1, np.uint64))
    for lane in lanes:
        hashes = (hashes ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
    return hashes, end


def _rotated(hashes: Hashes, by: int) -> Hashes:
    return (hashes << np.uint64(by)) | (hashes >> np.uint64(64 - by))


def _finished(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))

"""Which row has a key: an open hash table in numpy, asked and changed for many keys at a time.

It knows 64-bit hashes only; whether two keys with one hash are the same is asked back. Nothing is
kept a key but two numbers, and a step's cost follows its keys, not the keys there are.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.columns import flat, is_bytes, marked
from millpond.kernels.decimals import is_wide
from millpond.kernels.groups import Bools, Ints, Slots, distinct
from millpond.kernels.hashing import bits_of, murmur3

EMPTY, GONE = -1, -2
"""What a slot without a row says: nothing was ever here, or no longer."""

Same = Callable[[Ints, Ints], Bools]
"""Whether the n-th keys asked for are those of some rows."""


_NO_SLOTS: Slots = np.empty(0, dtype=np.int32)
_SMALLEST = 64
_BLOCK_ROWS = 2**16
"""So many rows are placed at once: that takes several times their memory."""
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP, _NULL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


def hashes_of(columns: Sequence[pa.ChunkedArray]) -> Ints:
    """A hash of each row: equal for equal keys, NULLs being so to each other, and NaN to itself."""
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        array = flat(column)
        words = _words(array)
        if array.null_count:
            words = np.where(np.asarray(array.is_valid()), words, _NULL)
        hashes = _mixed((hashes ^ words) + _STEP)
    return hashes.view(np.int64)


def _words(array: pa.Array) -> npt.NDArray[np.uint64]:
    """A number for each value, the same for equal ones."""
    type_ = array.type
    if is_bytes(type_) or is_wide(type_):
        return murmur3([pa.chunked_array([array])]).astype(np.uint64)
    return bits_of(array).view(np.uint64)


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finish."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def same_keys(left: Sequence[pa.ChunkedArray], right: Sequence[pa.ChunkedArray]) -> Bools:
    """Whether the rows are equal, NULLs being so to each other, and NaN to itself."""
    equal = np.ones(len(left[0]), dtype=np.bool_)
    for one, other in zip(map(flat, left), map(flat, right), strict=True):
        same = np.asarray(pc.fill_null(pc.equal(one, other), False)).astype(np.bool_)
        if pa.types.is_floating(one.type):
            same |= np.asarray(pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
        if one.null_count and other.null_count:
            same |= np.asarray(pc.and_(one.is_null(), other.is_null()))
        equal &= same
    return equal


class HashIndex:
    """Rows by the hash of their keys."""

    def __init__(self) -> None:
        self._slots: Slots = np.full(_SMALLEST, EMPTY, dtype=np.int32)
        """Rows; of 32 bits while that is enough."""
        self._hashes = np.zeros(_SMALLEST, dtype=np.int64)
        """Of each row."""
        self._used = 0
        """Slots that are not empty."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def bytes(self) -> int:
        """The memory of the table."""
        return self._slots.nbytes + self._hashes.nbytes

    @property
    def rows(self) -> Slots:
        """All rows, in order."""
        return np.sort(self._slots[self._slots >= 0])

    def hashes_at(self, rows: Slots) -> Ints:
        """The hashes of rows that are there."""
        return self._hashes[rows]

    def find(self, hashes: Ints, same: Same) -> tuple[Ints, Ints]:
        """Slot and row of each key, or -1 and -1."""
        slots, rows = np.full(len(hashes), -1), np.full(len(hashes), -1)
        probes, at = np.arange(len(hashes)), hashes & (len(self._slots) - 1)
        while len(probes):
            self._walk(hashes[probes], at)
            row = self._slots[at]
            there = marked(row >= 0)
            probes, at, row = probes[there], at[there], row[there]
            is_same = same(probes, row) if len(probes) else row >= 0
            slots[probes[is_same]], rows[probes[is_same]] = at[is_same], row[is_same]
            probes, at = probes[~is_same], (at[~is_same] + 1) & (len(self._slots) - 1)
        return slots, rows

    def _walk(self, hashes: Ints, at: Ints) -> None:
        """Moves each place on to a row with the hash, or to an empty slot."""
        mask = len(self._slots) - 1
        moving = np.arange(len(at))
        while len(moving):
            row = self._slots[at[moving]]
            stops = (row == EMPTY) | ((row >= 0) & (self._hashes[row] == hashes[moving]))
            moving = moving[~stops]
            at[moving] = (at[moving] + 1) & mask

    def replace(self, slots: Ints, hashes: Ints, rows: Ints) -> None:
        """Other rows for keys that were found."""
        self._remember(hashes, rows)
        self._slots[slots] = rows

    def remove(self, slots: Ints) -> None:
        """Forgets keys that were found; each may be named more than once."""
        self._slots[slots] = GONE
        self._size -= len(distinct(slots))

    def add(self, hashes: Ints, rows: Ints) -> None:
        """Rows of different keys of which none is there."""
        self._remember(hashes, rows)
        if 2 * (self._used + len(rows)) > len(self._slots):
            self._rebuild(self._size + len(rows))
        self._size += len(rows)
        self._place(hashes, rows)

    def _remember(self, hashes: Ints, rows: Ints) -> None:
        most = int(rows.max(initial=-1)) + 1
        if most > np.iinfo(self._slots.dtype).max:
            self._slots = self._slots.astype(np.int64)
        if most > len(self._hashes):
            grown = np.zeros(max(len(self._hashes) * 5 // 4, most), dtype=np.int64)
            grown[: len(self._hashes)] = self._hashes
            self._hashes = grown
        self._hashes[rows] = hashes

    def _rebuild(self, size: int) -> None:
        """A table that is a quarter full at most, without what is gone."""
        rows = self.rows
        slots = max(_SMALLEST, 1 << (4 * size - 1).bit_length())
        type_, self._slots = self._slots.dtype, _NO_SLOTS  # the old goes before there is a new one
        self._slots, self._used = np.full(slots, EMPTY, dtype=type_), 0
        self._place(self._hashes[rows], rows)

    def _place(self, hashes: Ints, rows: Slots) -> None:
        """Each row goes to the first free slot."""
        for first in range(0, len(rows), _BLOCK_ROWS):
            end = first + _BLOCK_ROWS
            self._place_block(hashes[first:end], rows[first:end])

    def _place_block(self, hashes: Ints, rows: Slots) -> None:
        """Of rows that want one slot, one has it; the others look further."""
        mask = len(self._slots) - 1
        at = hashes & mask
        while len(rows):
            seen = self._slots[at]
            free = marked(seen < 0)
            self._slots[at[free]] = rows[free]
            has = self._slots[at] == rows
            self._used += int(np.count_nonzero(seen[has] == EMPTY))
            rows, at = rows[~has], (at[~has] + 1) & mask

"""Synopses: what operators remember, apart from the operators that remember it.

A window's synopsis is the retained pages of its stream (``queues``). Here is the other kind:
one row of state for each group.
"""

import numpy as np
import pyarrow as pa

from millpond.interruption import WholeLock
from millpond.kernels.columns import integers
from millpond.kernels.groups import Bools, Ints, Slots, distinct
from millpond.kernels.hash_index import HashIndex, hashes_of, same_keys
from millpond.kernels.levels import parts_to_merge

COMPACT_ROWS = 4_096
"""Replaced rows are tolerated up to this many beyond the live ones."""


LEAST_CHUNK_BYTES = 2**22
"""Chunks are not merged into larger ones than this, or than a part of all rows."""

CHUNK_SHARES = 32
"""Which part: merging takes as much memory again, for a moment."""


class GroupSynopsis:
    """Exact state of all groups: chunks of rows and an index by key.

    A step reads and writes the groups it touches and nothing else; replaced rows are dropped when
    they outnumber the live ones and chunks are merged by levels, so the cost of a step follows its
    input. The lock is for a step that was given up and still reads.
    """

    def __init__(self, schema: pa.Schema, keys: list[str]) -> None:
        self.schema = schema
        self._keys = keys
        self._chunks: list[pa.Table] = []
        self._starts: list[int] = []
        self._sizes: list[int] = []
        """The bytes of each chunk."""
        self._rows = 0
        self._index = HashIndex()
        self._lock = WholeLock()

    def query(self, keys: pa.Table) -> pa.Table:
        """The rows of those of these keys that are known."""
        with self._lock:
            if not len(self) or not keys.num_rows:
                return self.schema.empty_table()
            if not self._keys:
                return self.all()
            _, _, rows = self._found(keys)
            return self._take(distinct(rows[rows >= 0]))

    def insert(self, rows: pa.Table) -> None:
        """Replaces the rows of their keys, which are different ones.

        A row with ``_n`` = 0 says that the key is gone.
        """
        with self._lock:
            if not rows.num_rows:
                return
            if not self._keys:
                self._restart(rows.slice(rows.num_rows - 1))
                return
            hashes, slots, old = self._found(rows)
            there, known = integers(rows["_n"]) != 0, old >= 0
            self._index.remove(slots[known & ~there])
            if not there.all():
                rows = rows.filter(pa.array(there))
                hashes, slots, known = hashes[there], slots[there], known[there]
            numbers = self._rows + np.arange(rows.num_rows)
            self._index.replace(slots[known], hashes[known], numbers[known])
            self._index.add(hashes[~known], numbers[~known])
            if rows.num_rows:
                self._append(rows)
            if self._rows > 2 * len(self) + COMPACT_ROWS:
                self._compact()

    def all(self) -> pa.Table:
        """The rows of all keys."""
        with self._lock:
            if self._rows > len(self):
                self._compact()
            return pa.concat_tables([self.schema.empty_table(), *self._chunks])

    def __len__(self) -> int:
        return len(self._index) if self._keys else self._rows

    @property
    def bytes(self) -> int:
        """The memory of the rows held and of their index."""
        return sum(self._sizes) + self._index.bytes

    def _found(self, keys: pa.Table) -> tuple[Ints, Ints, Ints]:
        """Hash, slot and row of each key."""
        columns = keys.select(self._keys)
        hashes = hashes_of(columns.columns)

        def same(asked: Ints, rows: Ints) -> Bools:
            order = np.argsort(rows, kind="stable")
            known = self._take(rows[order], self._keys)
            equal = np.empty(len(rows), dtype=np.bool_)
            equal[order] = same_keys(columns.take(pa.array(asked[order])).columns, known.columns)
            return equal

        return hashes, *self._index.find(hashes, same)

    def _append(self, rows: pa.Table) -> None:
        """Adds a chunk, in one with the latest ones where these are as small."""
        merged = parts_to_merge([chunk.num_rows for chunk in self._chunks], rows.num_rows)
        most = max(LEAST_CHUNK_BYTES, sum(self._sizes) // CHUNK_SHARES)
        while merged and sum(self._sizes[-merged:]) > most:
            merged -= 1
        kept = len(self._chunks) - merged
        start = self._starts[kept] if merged else self._rows
        self._rows += rows.num_rows
        if merged:
            rows = pa.concat_tables([*self._chunks[kept:], rows]).combine_chunks()
        self._chunks[kept:] = [rows]
        self._starts[kept:] = [start]
        self._sizes[kept:] = [rows.nbytes]

    def _take(self, rows: Slots, names: list[str] | None = None) -> pa.Table:
        """Some rows, given in order; all columns or those named."""
        parts, first = [], 0
        for start, end, chunk in zip(self._starts, self._ends(rows), self._chunks, strict=True):
            if end > first:
                table = chunk if names is None else chunk.select(names)
                parts.append(table.take(pa.array(rows[first:end] - start)))
            first = end
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def _ends(self, rows: Slots) -> list[int]:
        """Where those of each chunk end among some rows, given in order."""
        ends: list[int] = np.searchsorted(rows, [*self._starts[1:], self._rows]).tolist()
        return ends

    def _compact(self) -> None:
        """Leaves out rows that were replaced; a chunk goes before the next one is looked at."""
        rows = self._index.rows
        hashes = self._index.hashes_at(rows)
        old = list(zip(self._starts, self._ends(rows), self._chunks, strict=True))[::-1]
        self._restart(self.schema.empty_table())
        first = 0
        while old:
            start, end, chunk = old.pop()
            if end > first:
                self._append(chunk.take(pa.array(rows[first:end] - start)))
            first = end
        self._index.add(hashes, np.arange(self._rows))

    def _restart(self, rows: pa.Table) -> None:
        """These rows and no others, not yet found by their keys."""
        self._index, self._rows = HashIndex(), rows.num_rows
        self._chunks, self._starts = ([rows], [0]) if rows.num_rows else ([], [])
        self._sizes = [chunk.nbytes for chunk in self._chunks]

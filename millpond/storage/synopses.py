"""Synopses: what operators remember, apart from the operators that remember it.

A window's synopsis is the retained pages of its stream (``queues``). Here is the other kind:
one row of state for each group.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from threading import RLock
from typing import Protocol

import numpy as np
import pyarrow as pa

from millpond.connectors.python_values import python_values
from millpond.kernels.columns import integers
from millpond.kernels.levels import parts_to_merge

COMPACT_ROWS = 4_096
"""Replaced rows are tolerated up to this many beyond the live ones."""


class Synopsis(Protocol):
    """The interface of the STREAM paper, section 3: any operator can be given another synopsis."""

    def change_memory(self, bytes_: int) -> None:
        """Sets how much memory the synopsis may use."""
        ...

    def insert(self, rows: pa.Table) -> None:
        """Adds rows, replacing those with the same key."""
        ...

    def delete(self, keys: pa.Table) -> None:
        """Forgets keys."""
        ...

    def query(self, keys: pa.Table) -> pa.Table:
        """The rows of these keys."""
        ...


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
        self._rows = 0
        self._index: dict[Hashable, int] = {}
        self._lock = RLock()

    def change_memory(self, bytes_: int) -> None:
        """Exact state takes the memory it takes."""

    def query(self, keys: pa.Table) -> pa.Table:
        """The rows of those of these keys that are known."""
        if not self._index:
            return self.schema.empty_table()
        different = self._tuples(keys.group_by(self._keys, use_threads=False).aggregate([]))
        with self._lock:
            found = {self._index[key] for key in different if key in self._index}
            return self._take(sorted(found))

    def insert(self, rows: pa.Table) -> None:
        """Replaces the rows of their keys; a row with ``_n`` = 0 says that the key is gone."""
        with self._lock:
            start = self._rows
            counts = integers(rows["_n"]).tolist()
            for offset, (key, count) in enumerate(zip(self._tuples(rows), counts, strict=True)):
                if count == 0 and self._keys:
                    self._index.pop(key, None)
                else:
                    self._index[key] = start + offset
            if rows.num_rows:
                self._append(rows)
            if self._rows > 2 * len(self._index) + COMPACT_ROWS:
                self._compact()

    def delete(self, keys: pa.Table) -> None:
        """Forgets keys."""
        with self._lock:
            for key in self._tuples(keys):
                self._index.pop(key, None)

    def all(self) -> pa.Table:
        """The rows of all keys."""
        with self._lock:
            if len(self._chunks) > 1 or self._rows > len(self._index):
                self._compact()
            return self._chunks[0] if self._chunks else self.schema.empty_table()

    def __len__(self) -> int:
        return len(self._index)

    @property
    def bytes(self) -> int:
        """The memory of the rows held."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def _append(self, rows: pa.Table) -> None:
        """Adds a chunk, in one with the latest ones where these are as small."""
        merged = parts_to_merge([chunk.num_rows for chunk in self._chunks], rows.num_rows)
        kept = len(self._chunks) - merged
        start = self._starts[kept] if merged else self._rows
        self._rows += rows.num_rows
        if merged:
            rows = pa.concat_tables([*self._chunks[kept:], rows]).combine_chunks()
        self._chunks[kept:] = [rows]
        self._starts[kept:] = [start]

    def _tuples(self, rows: pa.Table) -> list[Hashable]:
        if not self._keys:
            return [()] * rows.num_rows
        columns = [_hashable(rows[name]) for name in self._keys]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def _take(self, rows: list[int]) -> pa.Table:
        parts: list[pa.Table] = []
        position = 0
        while position < len(rows):
            chunk = bisect_right(self._starts, rows[position]) - 1
            start, table = self._starts[chunk], self._chunks[chunk]
            end = position
            while end < len(rows) and rows[end] < start + table.num_rows:
                end += 1
            parts.append(table.take(pa.array(np.array(rows[position:end]) - start)))
            position = end
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def _compact(self) -> None:
        keys = sorted(self._index, key=self._index.__getitem__)
        rows = self._take([self._index[key] for key in keys]).combine_chunks()
        self._chunks, self._starts, self._rows = [], [], 0
        self._index = {key: row for row, key in enumerate(keys)}
        if rows.num_rows:
            self._chunks, self._starts, self._rows = [rows], [0], rows.num_rows


def _hashable(column: pa.ChunkedArray) -> list[Hashable]:
    """The values of a key column; NaN, which is not equal to itself in Python, as a word."""
    values: list[Hashable] = python_values(column)
    if pa.types.is_floating(column.type):
        return ["NaN" if value != value else value for value in values]
    return values

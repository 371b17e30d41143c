"""Files of rows: Parquet, which Spark reads too, and Arrow's own, which is memory as it lies.

The name of a file tells which it is. A store in memory has its pages as Arrow files: whoever reads
one maps it into its own memory, and nothing is decoded or copied.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

PARQUET, ARROW = ".parquet", ".arrow"

ROW_GROUP_ROWS = 100_000
"""A file has two pieces at most, if they have so many rows: tasks share them."""

MOST_CHUNKS = 8
"""A table of more chunks is put together before it is written: readers pay for each."""

READ_BYTES = 1 << 16
"""An Arrow file of up to so many bytes is read and not mapped."""


class RowFile(Protocol):
    """A file of rows, open."""

    @property
    def names(self) -> list[str]:
        """Its columns."""

    @property
    def pieces(self) -> int:
        """In how many pieces it lies."""

    is_mapped: bool
    """Whether a part of a piece costs its part."""

    def piece_rows(self, number: int) -> int:
        """How many rows a piece has."""

    def piece(self, number: int, names: Sequence[str]) -> pa.Table:
        """Some columns of a piece."""

    def close(self) -> None:
        """Lets it go."""


class _ParquetFile:
    is_mapped = False

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path, memory_map=False)
        self.names: list[str] = self._file.schema_arrow.names
        self.pieces: int = self._file.num_row_groups

    def piece_rows(self, number: int) -> int:
        rows: int = self._file.metadata.row_group(number).num_rows
        return rows

    def piece(self, number: int, names: Sequence[str]) -> pa.Table:
        return self._file.read_row_group(number, list(names))

    def close(self) -> None:
        self._file.close()


class _ArrowFile:
    is_mapped = True

    def __init__(self, path: Path) -> None:
        self._reader = pa.ipc.open_file(contents(path))
        self.names: list[str] = self._reader.schema.names
        self.pieces: int = self._reader.num_record_batches
        self._batch = lru_cache(maxsize=None)(self._reader.get_batch)

    def piece_rows(self, number: int) -> int:
        rows: int = self._batch(number).num_rows
        return rows

    def piece(self, number: int, names: Sequence[str]) -> pa.Table:
        return pa.Table.from_batches([self._batch(number).select(list(names))])

    def close(self) -> None:
        """What was read of it keeps what it needs."""


def contents(path: Path) -> pa.Buffer:
    """What a file holds: mapped or, if that is little, read, which costs less.

    Of a buffer Arrow reads at once; of a file by threads, each of which is waited for.
    """
    with path.open("rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size <= READ_BYTES:
            return pa.py_buffer(file.read())
    with pa.memory_map(str(path)) as source:
        return source.read_buffer()


def open_rows(path: Path) -> RowFile:
    """A file of rows, whichever it is."""
    return _ArrowFile(path) if path.suffix == ARROW else _ParquetFile(path)


def read_rows(path: Path) -> pa.Table:
    """All rows of a file."""
    if path.suffix != ARROW:
        return pq.read_table(path, memory_map=False)
    return pa.ipc.open_file(contents(path)).read_all()


def write_rows(table: pa.Table, path: Path | str) -> None:
    """Writes a file, as its name says."""
    if str(path).endswith(ARROW):
        write_arrow(table, path)
    else:
        write_parquet(table, path)


def write_arrow(table: pa.Table, path: Path | str) -> None:
    """Writes an Arrow file as tasks read it fastest."""
    if table.num_columns and table.column(0).num_chunks > MOST_CHUNKS:
        table = table.combine_chunks()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=_piece_rows(table))


def write_parquet(table: pa.Table, path: Path | str) -> None:
    """Writes a Parquet file as Spark reads it fastest."""
    pq.write_table(
        table,
        path,
        row_group_size=_piece_rows(table),
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )


def _piece_rows(table: pa.Table) -> int:
    rows: int = table.num_rows
    return max(ROW_GROUP_ROWS, -(-rows // 2))

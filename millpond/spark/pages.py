"""Pages: immutable runs of tuples, in the driver's memory, on disk as Parquet, or both.

Spark reads Parquet pages at any size about as fast as it reads anything, and far faster than
tables handed over from the driver once they are large, so a page that Spark must read is written
once, by pyarrow, uncompressed, into a directory that is memory where the machine offers it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millpond.schema import FOREVER
from millpond.spark.kernels.columns import integers
from millpond.spark.kernels.groups import Ints

KEEP_IN_MEMORY_ROWS = 200_000
"""A larger page leaves the driver's memory once it is written."""

ROW_GROUP_ROWS = 100_000
"""Larger pages are written in two parts or more, which two tasks can read at once."""


class Page:
    """Rows with their times; ``first`` and ``last`` are the smallest and largest ``_ts``."""

    def __init__(self, store: PageStore, table: pa.Table, is_sorted: bool = False) -> None:
        self._store = store
        self._table: pa.Table | None = table
        self._path: Path | None = None
        self._ends: tuple[Ints, pa.Table] | None = None
        self._is_sorted = is_sorted
        self.arrived_seconds = time.monotonic()
        self.rows: int = table.num_rows
        self.bytes: int = table.nbytes
        times = pc.min_max(table["_ts"])
        self.first: int = times["min"].as_py()
        self.last: int = times["max"].as_py()
        self.last_end: int | None = _last_end(table)
        """The largest end of an element that ends, or None."""

    @property
    def table(self) -> pa.Table:
        """The rows, read back if only the file is left."""
        if self._table is not None:
            return self._table
        return pq.read_table(self._path, memory_map=False)

    @property
    def path(self) -> str:
        """The Parquet file, written now if it was not yet."""
        if self._path is None:
            self._path = self._store.write(self.table)
            if self.rows > KEEP_IN_MEMORY_ROWS:
                self._table = None
        return str(self._path)

    def cut(self, time: int) -> tuple[Page, Page]:
        """The rows at or before ``time`` and those after it; both must exist."""
        table = self.table
        times = integers(table["_ts"])
        if self._is_sorted:
            at = int(np.searchsorted(times, time, side="right"))
            parts = table.slice(0, at), table.slice(at)
        else:
            early = times <= time
            parts = table.filter(pa.array(early)), table.filter(pa.array(~early))
        before, after = (Page(self._store, part, self._is_sorted) for part in parts)
        before.arrived_seconds = after.arrived_seconds = self.arrived_seconds
        self.free()
        return before, after

    def row_time(self, row: int) -> int:
        """The time of the page's n-th row in order of time."""
        times = integers(self.table["_ts"])
        return int(times[row] if self._is_sorted else np.partition(times, row)[row])

    def ending(self, after: int, until: int) -> pa.Table:
        """The elements that end within (after, until]."""
        ends, table = self._by_end()
        low = int(np.searchsorted(ends, after, side="right"))
        high = int(np.searchsorted(ends, until, side="right"))
        return table.slice(low, high - low)

    def _by_end(self) -> tuple[Ints, pa.Table]:
        if self._ends is None:
            table = self.table
            ends = integers(table["_te"])
            known = np.flatnonzero(ends < FOREVER)
            order = known[np.argsort(ends[known], kind="stable")]
            self._ends = ends[order], table.take(pa.array(order))
        return self._ends

    def free(self) -> None:
        """Gives the file up; a step under way may still read it."""
        if self._path is not None:
            self._store.discard(self._path)
            self._path = None
        self._table = None
        self._ends = None


def _last_end(table: pa.Table) -> int | None:
    if "_te" not in table.column_names:
        return None
    ends = integers(table["_te"])
    known = ends[ends < FOREVER]
    return int(known.max()) if len(known) else None


class PageStore:
    """The directory of the pages of one engine."""

    def __init__(self, directory: Path | None = None) -> None:
        parent = directory or _memory_directory()
        self.directory = Path(tempfile.mkdtemp(prefix="millpond-", dir=parent))
        self._numbers = itertools.count()
        self._discarded: list[Path] = []

    def page(self, table: pa.Table, is_sorted: bool = False) -> Page:
        """A new page of these rows."""
        return Page(self, table, is_sorted)

    def write(self, table: pa.Table) -> Path:
        """Writes a Parquet file under a new name."""
        path = self.directory / f"{next(self._numbers)}.parquet"
        groups = max(ROW_GROUP_ROWS, -(-table.num_rows // 2))
        pq.write_table(
            table,
            path,
            row_group_size=groups,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
        )
        return path

    def discard(self, path: Path) -> None:
        """Marks a file for removal when the present step is over."""
        self._discarded.append(path)

    def sweep(self) -> None:
        """Removes the discarded files."""
        for path in self._discarded:
            path.unlink(missing_ok=True)
        self._discarded = []

    def close(self) -> None:
        """Removes everything."""
        shutil.rmtree(self.directory, ignore_errors=True)


def _memory_directory() -> str | None:
    """A directory in memory, if the machine has one with room; else the usual one."""
    shared = "/dev/shm"  # noqa: S108 (memory, for files with names of their own)
    if not os.access(shared, os.W_OK):
        return None
    room = shutil.disk_usage(shared)
    return shared if room.free > 2**30 else None


def total_rows(pages: Iterable[Page]) -> int:
    """The number of rows in all pages."""
    return sum(page.rows for page in pages)


def concatenated(pages: Sequence[Page], schema: pa.Schema) -> pa.Table:
    """All rows of the pages."""
    return pa.concat_tables([page.table for page in pages]) if pages else schema.empty_table()

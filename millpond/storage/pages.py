"""Pages: immutable runs of tuples, in the driver's memory, on disk as Parquet, or both.

Spark reads Parquet pages at any size about as fast as it reads anything, and far faster than
tables handed over from the driver once they are large, so a page that Spark must read is written
once, by pyarrow, uncompressed, into a directory that is memory where the machine offers it.
"""

from __future__ import annotations

import contextlib
import fcntl
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

from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.schema import FOREVER

KEEP_IN_MEMORY_ROWS = 200_000
"""A larger page leaves the driver's memory once it is written."""

ROW_GROUP_ROWS = 100_000
"""Larger pages are written in two parts or more, which two tasks can read at once."""


PREFIX = "millpond-pages-"
"""The names of page directories begin with this."""

UNLOCKED_SECONDS = 10
"""A directory that changed so recently may be about to be locked."""


class Page:
    """Rows with their times; ``first`` and ``last`` are the smallest and largest ``_ts``."""

    def __init__(self, store: PageStore, table: pa.Table, is_sorted: bool = False) -> None:
        self._store = store
        self._table: pa.Table | None = table
        self._path: Path | None = None
        self._ends: tuple[Ints, Ints] | None = None
        self._is_sorted = is_sorted
        self._is_free = False
        self.arrived_seconds = time.monotonic()
        self.rows: int = table.num_rows
        self.bytes: int = table.nbytes
        store.bytes += self.bytes
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
            self._path = self._store.new_path()
            self._store.write(self.table, self._path)
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

    def followed_by(self, page: Page) -> Page:
        """One page of the rows of this one and those of another; both are given up."""
        in_order = self._is_sorted and page._is_sorted and self.last <= page.first
        whole = Page(self._store, pa.concat_tables([self.table, page.table]), in_order)
        whole.arrived_seconds = self.arrived_seconds
        self.free()
        page.free()
        return whole

    def row_time(self, row: int) -> int:
        """The time of the page's n-th row in order of time."""
        times = integers(self.table["_ts"])
        return int(times[row] if self._is_sorted else np.partition(times, row)[row])

    def ending(self, after: int, until: int) -> pa.Table:
        """The elements that end within (after, until], in the order of their ends."""
        return self.table.take(pa.array(self._rows_ending(after, until)))

    def count_ending(self, after: int, until: int) -> int:
        """How many elements end within (after, until]."""
        if self.last_end is None or self.last_end <= after:
            return 0
        return len(self._rows_ending(after, until))

    def _rows_ending(self, after: int, until: int) -> Ints:
        if self._ends is None:
            ends = integers(self.table["_te"])
            known = np.flatnonzero(ends < FOREVER)
            order = known[np.argsort(ends[known], kind="stable")]
            self._ends = ends[order], order
        ends, order = self._ends
        low, high = np.searchsorted(ends, (after, until), side="right").tolist()
        return order[low:high]

    def free(self) -> None:
        """Gives the file up; a step under way reads it through a link of its own."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None
        if not self._is_free:
            self._is_free = True
            self._store.bytes -= self.bytes
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
        parent = directory or _memory_directory() or Path(tempfile.gettempdir())
        _remove_abandoned(parent)
        self.directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = _locked(self.directory)
        self._numbers = itertools.count()
        self.bytes = 0
        """The bytes of all pages that are not free."""

    def page(self, table: pa.Table, is_sorted: bool = False) -> Page:
        """A new page of these rows."""
        return Page(self, table, is_sorted)

    def new_path(self) -> Path:
        """The path of a file that is not there yet."""
        return self.directory / f"{next(self._numbers)}.parquet"

    def new_directory(self) -> Path:
        """An empty directory."""
        directory = self.directory / f"slot-{next(self._numbers)}"
        directory.mkdir()
        return directory

    def write(self, table: pa.Table, path: Path | str) -> None:
        """Writes a Parquet file as Spark reads it fastest."""
        groups = max(ROW_GROUP_ROWS, -(-table.num_rows // 2))
        pq.write_table(
            table,
            path,
            row_group_size=groups,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
        )

    def close(self) -> None:
        """Removes everything."""
        shutil.rmtree(self.directory, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(directory: Path) -> int | None:
    """The descriptor of a directory that is now ours until we close it or die; None if it is not.

    The system gives such a lock up with the process that held it, however that ended.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_abandoned(parent: Path) -> None:
    """Removes the directories of engines that were killed."""
    for directory in parent.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):  # another engine may be quicker, or another user's
            if time.time() - directory.stat().st_mtime < UNLOCKED_SECONDS:
                continue
            lock = _locked(directory)
            if lock is not None:
                shutil.rmtree(directory, ignore_errors=True)
                os.close(lock)


def _memory_directory() -> Path | None:
    """A directory in memory, if the machine has one with room; else the usual one."""
    shared = Path("/dev/shm")  # noqa: S108 (memory, for files with names of their own)
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

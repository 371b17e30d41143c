"""The streams that the benchmarks run on: in order of time, uniform keys, one file a page.

Time moves evenly, so a Range window holds ``TUPLES_PER_SECOND`` times its seconds.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TUPLES_PER_SECOND = 10_000
WINDOW_SECONDS = 10
START_MICROSECONDS = 1_700_000_000_000_000
COLUMNS = "ts TIMESTAMP, key INT, value DOUBLE"


@dataclass(frozen=True)
class Stream:
    """A generated stream; the same seed gives the same tuples however they are cut into pages."""

    name: str
    keys: int
    seed: int
    tuples_per_second: int = TUPLES_PER_SECOND

    @property
    def declaration(self) -> str:
        """The stream in CQL."""
        return f"CREATE STREAM {self.name} ({COLUMNS}) TIMESTAMP BY ts;"

    def page(self, first: int, count: int) -> pa.Table:
        """Tuples number ``first`` to ``first + count - 1``."""
        numbers = np.arange(first, first + count, dtype=np.int64)
        times = START_MICROSECONDS + numbers * 1_000_000 // self.tuples_per_second
        mixed = _mixed(numbers.astype(np.uint64), self.seed)
        return pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us")),
                "key": pa.array((mixed % np.uint64(self.keys)).astype(np.int32)),
                "value": pa.array((mixed >> np.uint64(11)) * 2.0**-53),
            }
        )

    def pages(self, page_rows: int, first: int = 0) -> Iterator[pa.Table]:
        """Page after page, without end."""
        while True:
            yield self.page(first, page_rows)
            first += page_rows

    def write(self, directory: Path, rows: int, page_rows: int) -> list[Path]:
        """Writes Parquet files, each a page, in an order that file sources keep."""
        directory.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, first in enumerate(range(0, rows, page_rows)):
            path = directory / f"{number:06d}.parquet"
            table = self.page(first, min(page_rows, rows - first))
            pq.write_table(table, path, compression="none", use_dictionary=False)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
            paths.append(path)
        return paths


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory for pages and logs, in memory where the machine offers it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the block below, which cleans up
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="millpond-benchmark-", dir=parent) as directory:
        yield Path(directory)


def _mixed(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Well-spread 64-bit values of counting numbers (SplitMix64), other ones for each seed."""
    mixed = (numbers + np.uint64(seed << 40) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))

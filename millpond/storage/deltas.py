"""Deltas as files: Arrow's own format, uncompressed, a fifth to a fiftieth of Parquet's time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from millpond.storage.faults import naming, writing
from millpond.storage.sums import Sum, sum_of


def write_delta(path: Path, rows: pa.Table) -> int:
    """Writes the rows to a file of their own; its size in bytes."""
    with writing(path):
        _write(path, rows)
        return path.stat().st_size


def _write(path: Path, rows: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())


def write_summed_delta(path: Path, rows: pa.Table) -> Sum:
    """The same; its length and checksum."""
    write_delta(path, rows)
    with naming(path):
        return sum_of(path)


def mapped_delta(path: Path) -> pa.Table:
    """The rows of a file where they lie: what is not looked at is not read."""
    with naming(path), pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def read_delta(path: Path) -> pa.Table:
    """The rows of a file, in memory: the file may go while they are used."""
    with naming(path), pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).read_all()

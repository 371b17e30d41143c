"""Deltas as files: Arrow's own format, uncompressed, a fifth to a fiftieth of Parquet's time."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from millpond.storage.faults import naming, writing
from millpond.storage.sums import Sum, sum_of

BATCH_BYTES = 2**21
"""Rows are written in batches of so much, about, so that they can be read one after another."""


def write_delta(path: Path, rows: pa.Table) -> int:
    """Writes the rows to a file of their own; its size in bytes."""
    return write_parts(path, rows.schema, (rows,))


def write_parts(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> int:
    """Writes rows that come in parts to one file; its size in bytes."""
    with writing(path):
        _write(path, schema, parts)
        return path.stat().st_size


def _write(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for rows in (batch for part in parts for batch in _batches(part)):
            writer.write_table(rows.combine_chunks())


def _batches(rows: pa.Table) -> Iterator[pa.Table]:
    count = rows.num_rows * BATCH_BYTES // max(rows.nbytes, 1) + 1
    return (rows.slice(first, count) for first in range(0, rows.num_rows, count))


def write_summed_parts(path: Path, schema: pa.Schema, parts: Iterable[pa.Table]) -> Sum:
    """The same; its length and checksum."""
    write_parts(path, schema, parts)
    with naming(path):
        return sum_of(path)


def mapped_delta(path: Path) -> Iterator[pa.Table]:
    """The rows of a file where they lie, by batches: what is not looked at is not read."""
    with naming(path), pa.memory_map(str(path)) as file:
        yield from _batches_in(file)


def read_batches(path: Path) -> Iterator[pa.Table]:
    """The rows of a file, a batch of them in memory at a time."""
    with naming(path), pa.OSFile(str(path), "rb") as file:
        yield from _batches_in(file)


def _batches_in(file: pa.NativeFile) -> Iterator[pa.Table]:
    reader = pa.ipc.open_file(file)
    for number in range(reader.num_record_batches):
        yield pa.Table.from_batches([reader.get_batch(number)])


def read_delta(path: Path) -> pa.Table:
    """The rows of a file, in memory: the file may go while they are used."""
    with naming(path), pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).read_all()

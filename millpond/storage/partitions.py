"""Rows too many for memory, in pieces: equal ones are in one piece, which is read by itself."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.kernels.hash_index import hashes_of
from millpond.storage.faults import naming

PIECE_BYTES = 2**23
"""What is to be compared is in memory in pieces of so much, about."""

MOST_PIECES = 128
"""As many files are open at once."""


def pieces_of(size: int) -> int:
    """In how many pieces so many bytes are."""
    return min(size // PIECE_BYTES + 1, MOST_PIECES)


def piece_numbers(rows: pa.Table, keys: list[str], count: int) -> npt.NDArray[np.uint16]:
    """In which of so many pieces each row is: equal keys are in the same."""
    hashes = hashes_of(rows.select(keys).columns).view(np.uint64)
    return (hashes % np.uint64(count)).astype(np.uint16)


def partitioned(
    parts: Iterable[pa.Table], schema: pa.Schema, keys: Sequence[str], folder: Path, count: int
) -> Iterator[pa.Table]:
    """One of so many pieces of the rows after another; equal keys are in one piece.

    ``folder`` is empty, and has files while this goes on.
    """
    paths = [folder / f"{number}.arrow" for number in range(count)]
    with naming(folder):
        _split(parts, schema, list(keys), paths)
    for path in paths:
        with naming(path):
            with pa.OSFile(str(path), "rb") as file:
                rows = pa.ipc.open_stream(file).read_all()
            path.unlink()
        yield rows


def _split(
    parts: Iterable[pa.Table], schema: pa.Schema, keys: list[str], paths: Sequence[Path]
) -> None:
    with ExitStack() as stack:
        files = [stack.enter_context(pa.OSFile(str(path), "wb")) for path in paths]
        writers = [stack.enter_context(pa.ipc.new_stream(file, schema)) for file in files]
        for rows in parts:
            numbers = piece_numbers(rows, keys, len(paths))
            order = np.argsort(numbers, kind="stable")
            ends = np.searchsorted(numbers[order], np.arange(len(paths)), "right").tolist()
            ordered, first = rows.take(pa.array(order)).combine_chunks(), 0
            for writer, end in zip(writers, ends, strict=True):
                if end > first:
                    writer.write_table(ordered.slice(first, end - first))
                first = end

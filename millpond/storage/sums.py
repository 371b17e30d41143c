"""Checksums of a store's files: what was written is what is read.

Whoever writes a file counts its bytes and their CRC on the way; the log keeps both beside the
file's name, and the file is held against them when it is first read after a restart.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

PIECE_BYTES = 2**20
"""So much of a file is read at once to be summed up."""


class Sum(NamedTuple):
    """How long a file is, and the CRC of all of it."""

    bytes: int
    crc: int


class SummedFile:
    """A file that sums up what Arrow writes to it."""

    def __init__(self, path: Path | str) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115 (Arrow closes it)
        self._bytes = self._crc = 0

    @property
    def sum(self) -> Sum:
        """What was written so far."""
        return Sum(self._bytes, self._crc)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be written."""
        return self._file.closed

    def write(self, data: bytes) -> int:
        """Writes and counts."""
        self._crc = zlib.crc32(data, self._crc)
        self._bytes += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        """How far it is."""
        return self._bytes

    def flush(self) -> None:
        """Hands everything to the system."""
        self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        self._file.close()


@contextmanager
def summed(path: Path | str) -> Iterator[tuple[pa.NativeFile, SummedFile]]:
    """A file for Arrow to write to, and what sums it up."""
    counted = SummedFile(path)
    try:
        with pa.PythonFile(counted, "w") as file:
            yield file, counted
    finally:
        counted.close()


def sum_of(path: Path) -> Sum:
    """The sum of a file as it is now."""
    length, crc = 0, 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            length, crc = length + len(piece), zlib.crc32(piece, crc)
    return Sum(length, crc)


def difference(path: Path, expected: Sum) -> str | None:
    """What is wrong with a file, in words; None if it is as it was written."""
    try:
        found = sum_of(path)
    except FileNotFoundError:
        return f"is missing ({expected.bytes} bytes were written)"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return length_difference(found.bytes, expected) or (
        None
        if found.crc == expected.crc
        else f"is damaged within its {expected.bytes} bytes: their checksum is {found.crc:08x}, "
        f"and {expected.crc:08x} was written"
    )


def length_difference(length: int, expected: Sum) -> str | None:
    """What is wrong with a file's length, in words; None if it is right."""
    if length < expected.bytes:
        return f"is cut off at byte {length} of {expected.bytes}"
    if length > expected.bytes:
        return f"has {length - expected.bytes} bytes behind its {expected.bytes}"
    return None

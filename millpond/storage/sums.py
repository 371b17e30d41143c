"""Checksums of a store's files: what was written is what is read.

Whoever has written a file sums it up at once, while the system has it in memory. The log keeps its
length and CRC beside its name, and it is held against them when it is first read after a restart.
"""

import zlib
from pathlib import Path
from typing import NamedTuple

PIECE_BYTES = 2**20
"""So much of a file is read at once to be summed up."""


class Sum(NamedTuple):
    """How long a file is, and the CRC of all of it."""

    bytes: int
    crc: int


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

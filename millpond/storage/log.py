"""The commit log: what is true of a store. Whatever it does not name is garbage.

A file of records, each with its length and checksum, appended in one write. The first one says the
version of the format. A record that a death cut short, at the end, was never committed; one that is
damaged in the middle is refused.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from millpond.errors import StateError

FORMAT = 4
"""Grows whenever records are written that an older reader would misread, or states lie in other
buckets: since 4 keys of more than 256 bytes do (`kernels/hashing.py`)."""

GROUP = 1_000
"""So many records are appended at once where a file begins anew."""

_HEAD = struct.Struct("<4sII")
_MAGIC = b"mlp1"

Record = dict[str, Any]


class CommitLog:
    """An append-only file of records; survives the death of the process."""

    def __init__(self, path: Path, begins: bool = False) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if begins else 0)
        self._file = os.open(path, flags, 0o644)
        if os.fstat(self._file).st_size == 0:
            self.append([{"kind": "format", "version": FORMAT}])

    def read(self) -> Iterator[Record]:
        """Every record, oldest first; what was cut short at the end is cut off."""
        content = self.path.read_bytes()
        at = 0
        while at < len(content):
            record, end = _record(content, at)
            if record is None:
                if _follows(content, at + 1):
                    raise StateError(
                        f"{self.path}: damaged at byte {at}, with records behind it; restore the "
                        "file from a copy, or give the engine another store"
                    )
                os.ftruncate(self._file, at)
                return
            if at == 0:
                self._check(record)
            else:
                yield from record["records"]
            at = end

    def _check(self, record: Record) -> None:
        version = record["records"][0].get("version")
        if version != FORMAT:
            raise StateError(
                f"{self.path}: written in format {version}, and this version of Millpond reads "
                f"{FORMAT}; open it with the version that wrote it, or give another store"
            )

    def append(self, records: list[Record]) -> None:
        """Adds records, all of them or none."""
        payload = json.dumps({"records": records}, separators=(",", ":")).encode()
        whole = _HEAD.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload
        start = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, whole)
            while written < len(whole):
                written += os.write(self._file, whole[written:])
        except OSError:
            os.ftruncate(self._file, start)
            raise

    def rewrite(self, records: list[Record]) -> None:
        """Begins anew with records that say all the file said; at once or not at all."""
        new = CommitLog(self.path.with_suffix(".new"), begins=True)
        for first in range(0, len(records), GROUP):
            new.append(records[first : first + GROUP])
        new.path.replace(self.path)
        self._file, old = new._file, self._file
        os.close(old)

    @property
    def bytes(self) -> int:
        """How long the file is."""
        return os.fstat(self._file).st_size

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


def _record(content: bytes, at: int) -> tuple[Record | None, int]:
    """The record at a place and where it ends; None if there is no whole one."""
    if at + _HEAD.size > len(content):
        return None, at
    magic, length, checksum = _HEAD.unpack_from(content, at)
    end = at + _HEAD.size + length
    payload = content[at + _HEAD.size : end]
    if magic != _MAGIC or end > len(content) or zlib.crc32(payload) != checksum:
        return None, at
    record: Record = json.loads(payload)
    return record, end


def _follows(content: bytes, start: int) -> bool:
    """Whether a whole record stands anywhere behind a place."""
    at = content.find(_MAGIC, start)
    while at >= 0:
        if _record(content, at)[0] is not None:
            return True
        at = content.find(_MAGIC, at + 1)
    return False

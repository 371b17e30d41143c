"""An object of a log: files, and the records that name them, with a checksum of all of it.

Files stand in front, so that the place of each is known before the records are written.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millpond import version
from millpond.storage.formats import FORMAT, Record

_HEAD = struct.Struct("<4sIQQQ")
_MAGIC = b"mlpo"

HEAD_BYTES = _HEAD.size

Placed = dict[str, tuple[str, int, int]]
"""Where files lie: the object, the offset in it, and the length."""


@dataclass(frozen=True)
class LogObject:
    """What one object of a log says."""

    number: int
    writer: str
    """The engine that has put it there."""
    begins: bool = False
    """Whether it says all that those before it said."""
    fences: bool = False
    """Whether an engine takes the store with it: who had it before cannot put one here."""
    voids: bool = False
    """Whether what the one before it says did not happen."""
    records: list[Record] = field(default_factory=list)
    placed: Placed = field(default_factory=dict)
    """Where files lie that were put there since."""
    kept: list[int] = field(default_factory=list)
    """Of one that begins: the fences before it, which stay."""
    format: int = FORMAT
    millpond: str = version.VERSION


def framed(said: LogObject, files: bytes = b"") -> bytes:
    """An object as it is put there."""
    facts = {name: value for name, value in vars(said).items() if name != "number"}
    text = json.dumps(facts, separators=(",", ":")).encode()
    body = files + text
    checksum = _checksum(said.number, len(files), body)
    return _HEAD.pack(_MAGIC, checksum, said.number, len(files), len(text)) + body


def read(content: bytes, number: int) -> LogObject | None:
    """What an object says that stands under a number; None if it is not as it was written."""
    if len(content) < HEAD_BYTES:
        return None
    magic, checksum, its_number, files, text = _HEAD.unpack_from(content)
    body = memoryview(content)[HEAD_BYTES:]
    if magic != _MAGIC or its_number != number or len(body) != files + text:
        return None
    if checksum != _checksum(number, files, body):
        return None
    return _of(number, json.loads(bytes(body[files:])))


def _of(number: int, facts: Mapping[str, Any]) -> LogObject:
    placed = {name: tuple(place) for name, place in facts["placed"].items()}
    return LogObject(number, **{**facts, "placed": placed})


def _checksum(number: int, files: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(b"%d %d" % (number, files)))

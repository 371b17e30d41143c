"""How far a file was read, and how it is known again whatever it is called.

A file is known by its inode and by the last bytes that were read of it, the *seam*: so one that
was truncated, or whose inode another file got, is not taken for it.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from millpond.connectors.files import Block, count_lines
from millpond.connectors.locations import Location, identity

SEAM_BYTES = 1024
PASSED = -1
"""In place of the number of lines: the file was there before, and is not read."""

_ROTATED = re.compile(r"[._-][0-9][0-9TZ.:_-]*")
"""What follows the name of a file in that of a rotated one: ``.1``, ``-20260131``."""


@dataclass(frozen=True)
class RotatedFile(Location):
    """One file, and what it was renamed to."""

    def files(self) -> list[Path]:
        """The file, where there is one, and those that it was rotated to."""
        if not self.path.parent.is_dir():
            raise FileNotFoundError(2, "No such file or directory", str(self.path.parent))
        found = [each for each in self.path.parent.iterdir() if self._is_rotated(each)]
        return sorted(found) + ([self.path] if self.path.exists() else [])

    def covers(self, file: Path) -> bool:
        """Whether a file, there or not yet, is one of these."""
        beside = identity(file.parent) == identity(self.path.parent)
        return identity(file) == identity(self.path) or (beside and self._is_rotated(file))

    def _is_rotated(self, file: Path) -> bool:
        rest = file.name.removeprefix(self.path.name)
        return rest != file.name and bool(_ROTATED.fullmatch(rest))


@dataclass(frozen=True)
class Offset:
    """How far a file was read: bytes, lines, and the digest of the bytes before."""

    name: str
    inode: int
    end: int = 0
    lines: int = 0
    seam: str = ""
    size: int = 0
    """How long the file was when it was seen last."""

    @staticmethod
    def of(said: list[Any]) -> Offset:
        """The offset that a commit has."""
        return Offset(*said)

    def as_json(self) -> list[Any]:
        """The offset for a commit."""
        return [self.name, self.inode, self.end, self.lines, self.seam, self.size]

    @property
    def seam_bytes(self) -> int:
        """So many bytes before the offset are looked at."""
        return min(self.end, SEAM_BYTES)

    def behind(self, before: bytes, content: bytes) -> Offset:
        """The offset behind content that follows ``before``, the bytes of the seam."""
        end = self.end + len(content)
        seam = (before + content)[-min(end, SEAM_BYTES) :]
        lines = self.lines + count_lines(content)
        return replace(self, end=end, lines=lines, seam=digest(seam), size=max(self.size, end))


@dataclass(frozen=True)
class Seen:
    """A file as a look has found it."""

    path: Path
    status: os.stat_result
    held: int | None = None
    """The descriptor of a file that is held open."""
    is_gone: bool = False
    """Whether it has no name here any more."""

    @property
    def signature(self) -> tuple[int, int]:
        return self.status.st_size, self.status.st_mtime_ns

    def read(self, start: int, size: int) -> bytes | None:
        """Bytes of the file; None if another one has its name by now, or none has."""
        if self.held is not None:
            return os.pread(self.held, size, start)
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            is_other = os.fstat(descriptor).st_ino != self.status.st_ino
            return None if is_other else os.pread(descriptor, size, start)
        finally:
            os.close(descriptor)

    def follows(self, offset: Offset) -> bool | None:
        """Whether it begins with what was read up to an offset, as far as the seam tells; None if
        it is not to be found any more by its name."""
        if self.status.st_size < offset.end:
            return False
        size = offset.seam_bytes
        before = self.read(offset.end - size, size)
        return None if before is None else digest(before) == offset.seam


@dataclass(frozen=True)
class Piece:
    """Whole records of a file that were not read yet."""

    offsets: tuple[Offset, ...]
    """How far each file was read before."""
    at: int
    before: bytes
    content: bytes
    seen: Seen

    @property
    def file(self) -> Offset:
        """The file, as far as it was read before."""
        return self.offsets[self.at]

    @property
    def block(self) -> Block:
        """The records as text."""
        lines = self.file.lines
        return Block(self.file.name, self.content[self._mark_bytes :], lines)

    @property
    def _mark_bytes(self) -> int:
        """How long the mark of UTF-8 is that a file may begin with."""
        is_marked = self.file.end == 0 and self.content.startswith(BOM_UTF8)
        return len(BOM_UTF8) if is_marked else 0

    def behind(self, end: int | None) -> list[Offset]:
        """How far each file is read behind the first bytes of the block; None: behind all."""
        content = self.content if end is None else self.content[: self._mark_bytes + end]
        done = list(self.offsets)
        if end != 0:
            done[self.at] = self.file.behind(self.before, content)
        return done


def digest(seam: bytes) -> str:
    """What is kept of the last bytes that were read."""
    return blake2b(seam, digest_size=8).hexdigest()

"""The commit log: what is true of a store. Whatever it does not name is garbage.

A file of records, each with its length, its number and a checksum of all of it, appended in one
write. The first one says the version of the format and the store it is of; numbers go on by one,
so that a record that was taken out, doubled or moved is found. Beside it lies its end: the number
of the last record that was appended whole. What a death cut short, behind the end, was never
committed; whatever else is not as it was written is refused.
"""

import contextlib
import errno
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millpond.errors import DamageError, StateError
from millpond.storage.faults import naming
from millpond.storage.mark import way_out

FORMAT = 5
"""Grows whenever records are written that an older reader would misread, or states lie in other
buckets: since 5 the log says what runs, and not only what was said."""

GROUP = 1_000
"""So many records are appended at once where a file begins anew."""

_HEAD = struct.Struct("<4sIIQ")
_MAGIC = b"mlp2"
_OLD_HEAD = struct.Struct("<4sII")
_OLD_MAGIC = b"mlp1"
_END = struct.Struct("<4sQI")
_END_MAGIC = b"mlpe"

Record = dict[str, Any]


@dataclass(frozen=True)
class RecordBounds:
    """Where a record stands in the file, and its number."""

    start: int
    end: int
    number: int


@dataclass(frozen=True)
class Framing:
    """A log's records as far as they are sound, and what is wrong behind them."""

    bounds: list[RecordBounds]
    length: int
    """How long the file is."""
    damage: str | None = None
    """What is wrong, and where; a record that a death cut short is nothing wrong."""

    @property
    def end(self) -> int:
        """Where what is sound ends."""
        return self.bounds[-1].end if self.bounds else 0


class CommitLog:
    """An append-only file of records; survives the death of the process."""

    def __init__(
        self, path: Path, begins: bool = False, identity: str = "", number: int = 0
    ) -> None:
        self.path = path
        self._identity = identity
        self._number = number
        """Of the next record."""
        self._torn_at: int | None = None
        """Where half a record begins that could not be cut off yet."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if begins else 0)
        with naming(path):
            self._file = os.open(path, flags, 0o644)
        if os.fstat(self._file).st_size == 0:
            self._begin()

    def _begin(self) -> None:
        """Says the version of the format; a file that cannot even say that is none."""
        try:
            self.append([{"kind": "format", "version": FORMAT, "store": self._identity}])
        except BaseException:
            self.close()
            with contextlib.suppress(OSError):
                self.path.unlink()
            raise

    def read(self, end: int | None = None) -> Iterator[Record]:
        """Every record, oldest first; what was cut short at the end is cut off.

        ``end`` is the number of the last record that was appended, where that is known. Before the
        first record is handed over all are looked at.
        """
        content = self.path.read_bytes()
        framing = framing_of(content, end)
        if framing.damage is not None:
            raise DamageError(f"{self.path}: {framing.damage}; {way_out(self.path.parent)}")
        first = records_in(content, framing.bounds[0])[0]
        check_first(self.path, first, self._identity)
        self._identity = first["store"]
        if framing.end < framing.length:
            os.ftruncate(self._file, framing.end)
        self._number = framing.bounds[-1].number + 1
        for each in framing.bounds[1:]:
            yield from records_in(content, each)

    def append(self, records: list[Record]) -> None:
        """Adds records, all of them or none."""
        payload = json.dumps({"records": records}, separators=(",", ":")).encode()
        checksum = _checksum(len(payload), self._number, payload)
        whole = _HEAD.pack(_MAGIC, len(payload), checksum, self._number) + payload
        with naming(self.path):
            self._cut_torn()
            self._refuse_gone()
            start = os.fstat(self._file).st_size
            try:
                written = os.write(self._file, whole)
                while written < len(whole):
                    written += os.write(self._file, whole[written:])
            except OSError:
                self._torn_at = start
                with contextlib.suppress(OSError):
                    self._cut_torn()
                raise
        self._number += 1

    def _refuse_gone(self) -> None:
        """What is written to a file that somebody has removed would be nowhere."""
        if os.fstat(self._file).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def _cut_torn(self) -> None:
        """Cuts off what was written by half: nothing may ever stand behind it."""
        if self._torn_at is not None:
            os.ftruncate(self._file, self._torn_at)
            self._torn_at = None

    def rewrite(self, records: list[Record]) -> None:
        """Begins anew with records that say all the file said; at once or not at all.

        Numbers go on, so that no record of before can pass for one of these.
        """
        beside = self.path.with_suffix(".new")
        new = CommitLog(beside, begins=True, identity=self._identity, number=self._number)
        try:
            for first in range(0, len(records), GROUP):
                new.append(records[first : first + GROUP])
            with naming(self.path):
                beside.replace(self.path)
        except BaseException:
            new.close()
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        self._file, old = new._file, self._file
        self._number, self._torn_at = new._number, None
        os.close(old)

    @property
    def last_number(self) -> int:
        """The number of the last record."""
        return self._number - 1

    @property
    def bytes(self) -> int:
        """How long the file is."""
        return os.fstat(self._file).st_size

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


class LogEnd:
    """The file beside a log that says which record was the last to be appended whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def write(self, number: int) -> None:
        """The record of this number is whole."""
        os.pwrite(self._file, _END.pack(_END_MAGIC, number, zlib.crc32(b"%d" % number)), 0)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    @staticmethod
    def read(path: Path) -> int:
        """The number of the last record; a file that does not say it is refused."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DamageError(f"{path}: {error.strerror}; {way_out(path.parent)}") from None
        if len(content) == _END.size:
            magic, number, checksum = _END.unpack(content)
            if magic == _END_MAGIC and checksum == zlib.crc32(b"%d" % number):
                return int(number)
        raise DamageError(
            f"{path}: damaged: {len(content)} bytes that do not say where the log ends; "
            f"{way_out(path.parent)}"
        )


def framing_of(content: bytes, end: int | None = None) -> Framing:
    """The records of a log, and what is wrong with it. ``end``: the last that was appended."""
    bounds: list[RecordBounds] = []
    at = 0
    while at < len(content):
        each = _bounds_at(content, at)
        if each is None or (bounds and each.number != bounds[-1].number + 1):
            return Framing(bounds, len(content), _damage(content, at, bounds, each, end))
        bounds.append(each)
        at = each.end
    return Framing(bounds, len(content), _damage(content, at, bounds, None, end))


def _damage(
    content: bytes, at: int, bounds: list[RecordBounds], found: RecordBounds | None, end: int | None
) -> str | None:
    """What is wrong at a place at which there is not the next record."""
    if not bounds:
        return _no_first(content)
    expected = bounds[-1].number + 1
    if found is not None:
        return f"damaged at byte {at}: record {found.number} stands where record {expected} belongs"
    if _follows(content, at + 1):
        return f"damaged at byte {at}, with records behind it: record {expected} is not whole"
    if end is not None and end >= expected:
        lost = f"record {expected}" if end == expected else f"records {expected} to {end}"
        return f"damaged at byte {at}: {lost} were appended whole and are no longer there"
    return None


def _no_first(content: bytes) -> str:
    """What there is instead of a log's first record."""
    if not content:
        return "the log is empty (0 bytes)"
    if content.startswith(_OLD_MAGIC):
        return f"written in {_old_format(content)}, and this version of Millpond reads {FORMAT}"
    if content.startswith(_MAGIC):
        return "damaged at byte 0: the first record is cut off or changed"
    return f"this is no log: it begins with {content[:8]!r}"


def _old_format(content: bytes) -> str:
    length = _OLD_HEAD.unpack_from(content)[1] if len(content) >= _OLD_HEAD.size else 0
    payload = content[_OLD_HEAD.size : _OLD_HEAD.size + length]
    try:
        return f"format {json.loads(payload)['records'][0]['version']}"
    except (ValueError, KeyError, IndexError):
        return "an earlier format"


def records_in(content: bytes, bounds: RecordBounds) -> list[Record]:
    """The records that were appended together."""
    records: list[Record] = json.loads(content[bounds.start + _HEAD.size : bounds.end])["records"]
    return records


NO_BEGINNING = "does not begin with the first record of a log"
"""What is wrong with a log whose first record is lost."""


def check_first(path: Path, record: Record, identity: str) -> None:
    """Refuses a log of another format or store."""
    version, store = record.get("version"), record.get("store", "")
    if version is None:
        raise DamageError(f"{path}: {NO_BEGINNING}; {way_out(path.parent)}")
    if version != FORMAT:
        raise StateError(
            f"{path}: written in format {version}, and this version of Millpond reads "
            f"{FORMAT}; open it with the version that wrote it, or give another store"
        )
    if identity and store != identity:
        raise DamageError(
            f"{path}: this is the log of store {store}, and the directory is store {identity}; "
            f"{way_out(path.parent)}"
        )


def _checksum(length: int, number: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(struct.pack("<IQ", length, number)))


def _bounds_at(content: bytes, at: int) -> RecordBounds | None:
    """The record at a place; None if there is no whole one."""
    if at + _HEAD.size > len(content):
        return None
    magic, length, checksum, number = _HEAD.unpack_from(content, at)
    end = at + _HEAD.size + length
    if magic != _MAGIC or end > len(content):
        return None
    payload = content[at + _HEAD.size : end]
    return RecordBounds(at, end, number) if _checksum(length, number, payload) == checksum else None


def _follows(content: bytes, start: int) -> bool:
    """Whether a whole record stands anywhere behind a place."""
    at = content.find(_MAGIC, start)
    while at >= 0:
        if _bounds_at(content, at) is not None:
            return True
        at = content.find(_MAGIC, at + 1)
    return False

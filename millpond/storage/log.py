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
import secrets
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from millpond import version
from millpond.connectors.forcing import force, force_open
from millpond.errors import DamageError, StateError, UnforcedError
from millpond.storage.faults import forcing, naming
from millpond.storage.formats import FORMAT, OLDEST, Record, converted
from millpond.storage.lease import Lease
from millpond.storage.mark import way_out

GROUP = 1_000
"""So many records are appended at once where a file begins anew."""

_HEAD = struct.Struct("<4sIIQ")
_MAGIC = b"mlp2"
_OLD_HEAD = struct.Struct("<4sII")
_OLD_MAGIC = b"mlp1"
_END = struct.Struct("<4sQI")
_END_MAGIC = b"mlpe"


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
        self.forces = False
        """Whether what is appended is forced onto the disk before it counts."""
        self.lease: Lease | None = None
        """What is appended counts while it is held, of a store that others could take."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if begins else 0)
        with naming(path):
            self._file = os.open(path, flags, 0o644)
        if os.fstat(self._file).st_size == 0:
            self._begin()

    def _begin(self) -> None:
        """Says the version of the format; a file that cannot even say that is none."""
        try:
            self.append([first_record(self._identity)])
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
        whole = _framed(records, self._number)
        with naming(self.path):
            self._check_lease()
            self._cut_torn()
            self._refuse_gone()
            start = os.fstat(self._file).st_size
            try:
                written = os.write(self._file, whole)
                while written < len(whole):
                    written += os.write(self._file, whole[written:])
                if self.forces:
                    self.force()
                self._check_lease()
            except (OSError, UnforcedError):
                self._torn_at = start
                with contextlib.suppress(OSError):
                    self._cut_torn()
                raise
        self._number += 1

    def _check_lease(self) -> None:
        if self.lease is not None:
            self.lease.check()

    def _beside(self) -> Path:
        """A file of our own beside the log: who was paused may still write to one of theirs."""
        self._check_lease()
        with naming(self.path):
            for pattern in (f"{self.path.stem}.new", f"{self.path.stem}.*.new"):
                for left in self.path.parent.glob(pattern):
                    left.unlink(missing_ok=True)  # of who died, or has lost the store
        return self.path.with_suffix(f".{secrets.token_hex(4)}.new")

    def _put_in_place(self, beside: Path) -> None:
        """Has a file be the log from now on; nobody takes the store meanwhile."""
        with (
            contextlib.nullcontext() if self.lease is None else self.lease.guarded(),
            naming(self.path),
        ):
            self._refuse_gone()
            beside.replace(self.path)

    def take_over(self, lease: Lease) -> None:
        """Has the log be another file, before it is read: what an engine appends to it that had
        the store before, and has been paused, is nowhere."""
        self.lease, beside = lease, self._beside()
        with naming(beside):
            beside.write_bytes(self.path.read_bytes())
        self._put_in_place(beside)
        with naming(self.path):
            file = os.open(self.path, os.O_RDWR | os.O_APPEND)
        os.close(self._file)
        self._file = file

    def _refuse_gone(self) -> None:
        """What is written to a file that somebody has removed would be nowhere."""
        if os.fstat(self._file).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def _cut_torn(self) -> None:
        """Cuts off what was written by half: nothing may ever stand behind it."""
        if self._torn_at is not None:
            os.ftruncate(self._file, self._torn_at)
            self._torn_at = None

    def force(self) -> None:
        """Forces what was appended onto the disk."""
        with forcing(self.path):
            force_open(self._file)

    def rewrite(self, records: list[Record]) -> None:
        """Begins anew with records that say all the file said; at once or not at all.

        Numbers go on, so that no record of before can pass for one of these.
        """
        beside = self._beside()
        new = CommitLog(beside, begins=True, identity=self._identity, number=self._number)
        try:
            for first in range(0, len(records), GROUP):
                new.append(records[first : first + GROUP])
            if self.forces:
                new.force()
            self._put_in_place(beside)
        except BaseException:
            new.close()
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        self._file, old = new._file, self._file
        self._number, self._torn_at = new._number, None
        os.close(old)
        if self.forces:
            with forcing(self.path.parent):
                force(self.path.parent)

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

    def force(self) -> None:
        """Forces it onto the disk; later it may be behind the log, and never ahead."""
        with forcing(self.path):
            force_open(self._file)

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


def first_record(identity: str) -> Record:
    """What a log begins with: its format, the version that writes it, and whose it is."""
    return {
        "kind": "format",
        "version": FORMAT,
        "store": identity,
        "millpond": version.VERSION,
    }


def in_present_format(content: bytes, framing: Framing) -> bytes:
    """A sound log of an earlier format in the present one; records keep their numbers."""
    first, *others = framing.bounds
    (said,) = records_in(content, first)
    whole = [_framed([first_record(said["store"])], first.number)]
    for each in others:
        records = [converted(record, said["version"]) for record in records_in(content, each)]
        whole.append(_framed(records, each.number))
    return b"".join(whole)


def _framed(records: list[Record], number: int) -> bytes:
    payload = json.dumps({"records": records}, separators=(",", ":")).encode()
    return (
        _HEAD.pack(_MAGIC, len(payload), _checksum(len(payload), number, payload), number) + payload
    )


@dataclass(frozen=True)
class Beginning:
    """What a log begins with: its format, and which version wrote it, if it says so."""

    format: int
    millpond: str = ""

    def __str__(self) -> str:
        return (
            f"format {self.format}, begun by Millpond {self.millpond or 'of before that is said'}"
        )


def beginning_of(path: Path) -> Beginning:
    """The format and writer of a log, whoever has it open; only its first record is read."""
    with naming(path), path.open("rb") as file:
        head = file.read(_HEAD.size)
        length = _HEAD.unpack(head)[1] if len(head) == _HEAD.size else 0
        content = head + file.read(length)
    bounds = _bounds_at(content, 0)
    if bounds is None:
        raise DamageError(f"{path}: {_no_first(content)}; {way_out(path.parent)}")
    first = records_in(content, bounds)[0]
    return Beginning(first.get("version", 0), first.get("millpond", ""))


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
        lost = (
            f"record {expected} was appended whole and is"
            if end == expected
            else f"records {expected} to {end} were appended whole and are"
        )
        return f"damaged at byte {at}: {lost} no longer there"
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


def check_first(path: Path, record: Record, identity: str, reads_older: bool = False) -> None:
    """Refuses a log of another store or format; ``reads_older``: but not one to be converted."""
    number, store = record.get("version"), record.get("store", "")
    if number is None:
        raise DamageError(f"{path}: {NO_BEGINNING}; {way_out(path.parent)}")
    if not (OLDEST if reads_older else FORMAT) <= number <= FORMAT:
        raise StateError(f"{path}: {_of_another_format(path, number, record.get('millpond'))}")
    if identity and store != identity:
        raise DamageError(
            f"{path}: this is the log of store {store}, and the directory is store {identity}; "
            f"{way_out(path.parent)}"
        )


def _of_another_format(path: Path, number: int, writer: str | None) -> str:
    """That a log was written in another format, and what to do about it."""
    by = f" by Millpond {writer}" if writer else ""
    is_ = f"written in format {number}{by}, and Millpond {version.VERSION} reads {FORMAT}"
    if number > FORMAT:
        return f"{is_}; open it with a version as new as that one"
    if number < OLDEST:
        return f"{is_}; open it with the version that wrote it, or give another store"
    return f'{is_}; "millpond store upgrade {path.parent}" converts it, and keeps a copy'


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

"""What PostgreSQL's plugin ``pgoutput`` says of transactions, in version 1 of its protocol."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

UNCHANGED = object()
"""A value out of line that an update has left as it was, and that is not sent."""

Values: TypeAlias = tuple[object, ...]
"""The values of a row: a text as PostgreSQL writes it, None, or ``UNCHANGED``."""

EPOCH_MICROSECONDS = 946_684_800_000_000
"""2000-01-01, from which PostgreSQL counts, in microseconds from 1970."""


@dataclass(frozen=True)
class Begin:
    """A transaction begins; all that follows until ``Commit`` is of it."""

    commit_lsn: int
    time_microseconds: int
    """When it was committed, from 1970."""
    xid: int


@dataclass(frozen=True)
class Commit:
    """A transaction ends; ``end_lsn`` is behind it."""

    commit_lsn: int
    end_lsn: int


@dataclass(frozen=True)
class Described:
    """A table as it was when the rows that follow were written."""

    oid: int
    name: str
    identity: str
    """``f``: the old values of rows are whole."""
    columns: tuple[tuple[str, int], ...]
    """Names, and the numbers of types."""


@dataclass(frozen=True)
class Changed:
    """A row has come (no old values), gone (no new ones) or changed."""

    oid: int
    kind: str
    """``I``, ``U`` or ``D``."""
    old: Values | None
    """Whole, or of the key alone, or absent where that did not change."""
    is_old_whole: bool
    new: Values | None


@dataclass(frozen=True)
class Truncated:
    """All rows of tables have gone."""

    oids: tuple[int, ...]


Message: TypeAlias = Begin | Commit | Described | Changed | Truncated


def decoded(data: bytes) -> Message | None:
    """A message; None for what says nothing of rows (types, origins)."""
    reader = _Reader(data)
    match reader.character():
        case "B":
            lsn, time, xid = reader.numbers(">qqI")
            return Begin(lsn, time + EPOCH_MICROSECONDS, xid)
        case "C":
            _, lsn, end, _ = reader.numbers(">bqqq")
            return Commit(lsn, end)
        case "R":
            return reader.described()
        case "I" | "U" | "D" as kind:
            return reader.changed(kind)
        case "T":
            count, _ = reader.numbers(">Ib")
            return Truncated(tuple(reader.numbers(f">{count}I")))
        case _:
            return None


class _Reader:
    """Reads a message from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def numbers(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def character(self) -> str:
        self._at += 1
        return chr(self._data[self._at - 1])

    def _text(self) -> str:
        end = self._data.index(0, self._at)
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found

    def described(self) -> Described:
        (oid,) = self.numbers(">I")
        schema, name, identity = self._text(), self._text(), self.character()
        (count,) = self.numbers(">h")
        columns = [self._column() for _ in range(count)]
        return Described(oid, f"{schema or 'pg_catalog'}.{name}", identity, tuple(columns))

    def _column(self) -> tuple[str, int]:
        self.numbers(">b")
        name = self._text()
        kind, _ = self.numbers(">Ii")
        return name, kind

    def changed(self, kind: str) -> Changed:
        (oid,) = self.numbers(">I")
        old, new, is_whole, mark = None, None, False, self.character()
        if mark in "KO":
            old, is_whole = self._values(), mark == "O"
            mark = self.character() if kind == "U" else ""
        if mark == "N":
            new = self._values()
        return Changed(oid, kind, old, is_whole, new)

    def _values(self) -> Values:
        (count,) = self.numbers(">h")
        return tuple(self._value() for _ in range(count))

    def _value(self) -> object:
        match self.character():
            case "n":
                return None
            case "u":
                return UNCHANGED
            case _:
                (size,) = self.numbers(">I")
                self._at += size
                return self._data[self._at - size : self._at].decode()


def lsn_of(text: str) -> int:
    """A place in the log of a server, of how it is written.

    >>> lsn_of("1/A")
    4294967306
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(lsn: int) -> str:
    """How a place in the log is written.

    >>> lsn_text(4294967306)
    '1/A'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"

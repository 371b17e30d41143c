"""How far a table of PostgreSQL was read: by its snapshot, then by the log of its server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millpond.connectors.pgoutput import lsn_of, lsn_text
from millpond.schema import BEGINNING


@dataclass(frozen=True)
class Chunk:
    """Rows that were read in one snapshot: those up to a key, from the chunk before it on."""

    snapshot: str
    """Which transactions it has, as PostgreSQL writes it."""
    last_key: tuple[str, ...] | None = None
    """None: up to the end."""

    def has(self, xid: int) -> bool:
        """Whether it has what a transaction did; its number is cut to 32 bits."""
        least, most, running = self.snapshot.split(":")
        whole = _whole(xid, int(most))
        if whole >= int(most):
            return False
        return whole < int(least) or str(whole) not in running.split(",")


def _whole(xid: int, near: int) -> int:
    """The number of a transaction with its upper bits, from one that is near.

    >>> _whole(5, 2**32 + 7) - 2**32, _whole(2**32 - 1, 2**32 + 7)
    (5, 4294967295)
    """
    whole = (near & ~0xFFFFFFFF) + xid
    if whole > near + 2**31:
        return whole - 2**32
    return whole + 2**32 if whole < near - 2**31 else whole


@dataclass(frozen=True)
class Part:
    """So many rows of a transaction were read, all at one time."""

    commit_lsn: int
    rows: int
    time: int


@dataclass(frozen=True)
class Form:
    """What a table is beyond the names and types of its columns, as its server counts it."""

    published: int | None = None
    """Its number in the publication: what is taken out and put back has another."""
    numbers: tuple[int, ...] = ()
    """Those of the columns: one that is dropped and added has another."""
    file: int = 0
    """Where its rows are; another if all were written anew."""
    versions: tuple[str, ...] = ()
    """Those of the columns: another if something was done to them."""


@dataclass(frozen=True)
class Place:
    """How far a table was read."""

    slot: str
    oid: int = 0
    """The number of the table: one that is made anew has another."""
    types: tuple[str, ...] = ()
    """The columns that are read, and their types."""
    form: Form = Form()
    chunks: tuple[Chunk, ...] = ()
    is_read: bool = False
    """Whether the snapshot was read to its end."""
    overlap_lsn: int = 0
    """Transactions behind it are in no chunk."""
    lsn: int = 0
    """All that was committed before it was read."""
    part: Part | None = None
    time: int = BEGINNING
    """Nothing to come is earlier."""

    @staticmethod
    def of(said: dict[str, Any]) -> Place:
        """The place that a commit has."""
        part = said["part"]
        published, numbers, file, versions = said["form"]
        return Place(
            said["slot"],
            said["oid"],
            tuple(said["types"]),
            Form(published, tuple(numbers), file, tuple(versions)),
            tuple(
                Chunk(each[0], None if each[1] is None else tuple(each[1]))
                for each in said["chunks"]
            ),
            said["is_read"],
            lsn_of(said["overlap"]),
            lsn_of(said["lsn"]),
            None if part is None else Part(lsn_of(part[0]), part[1], part[2]),
            said["time"],
        )

    def as_json(self) -> dict[str, Any]:
        """The place for a commit."""
        part, form = self.part, self.form
        return {
            "slot": self.slot,
            "oid": self.oid,
            "types": list(self.types),
            "form": [form.published, list(form.numbers), form.file, list(form.versions)],
            "chunks": [
                [each.snapshot, each.last_key and list(each.last_key)] for each in self.chunks
            ],
            "is_read": self.is_read,
            "overlap": lsn_text(self.overlap_lsn),
            "lsn": lsn_text(self.lsn),
            "part": None if part is None else [lsn_text(part.commit_lsn), part.rows, part.time],
            "time": self.time,
        }

    def behind(self, lsn: int, time: int) -> Place:
        """The place behind whole transactions; chunks that say nothing any more are forgotten."""
        done = max(self.lsn, lsn)
        chunks = () if done > self.overlap_lsn else self.chunks
        return replace(self, lsn=done, part=None, time=max(self.time, time), chunks=chunks)

"""The versions of an operator's keyed state: hash buckets, each a list of deltas in files.

A step writes the rows it touched; a version says which files hold the state at a time. Files are
never changed, so a version stays true until its files are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millpond.kernels.levels import parts_to_merge
from millpond.schema import BEGINNING, FOREVER

COMPACT_ROWS = 4_096
"""Replaced rows are tolerated up to this many beyond twice the live ones."""


@dataclass(frozen=True)
class Delta:
    """A file with the changes that the versions from ``first`` to ``last`` made to a bucket."""

    path: str
    """Within the store's directory, or absolute."""
    rows: int
    bytes: int
    first: int
    last: int
    last_end: int = FOREVER
    """The time from which on it says nothing any more."""
    crc: int | None = field(default=None, compare=False)
    """The checksum of the file, from who has just written it to a store that stays."""
    freed: int = field(default=0, compare=False)
    """How many rows were not written again, as nothing needs them any more."""
    freed_bytes: int = field(default=0, compare=False)
    """And how many bytes."""

    @property
    def is_base(self) -> bool:
        """Whether it holds the whole bucket."""
        return self.first == 0

    def to_json(self) -> list[Any]:
        """The delta as plain data."""
        return [self.path, self.rows, self.bytes, self.first, self.last, self.last_end]

    def to_line(self) -> list[Any]:
        """The same with the checksum, for who is to note it."""
        return [*self.to_json(), self.crc, self.freed, self.freed_bytes]

    @staticmethod
    def from_json(data: Sequence[Any]) -> Delta:
        """The delta that ``to_json`` or ``to_line`` gave."""
        return Delta(*data)


@dataclass(frozen=True)
class StateVersion:
    """The state of an operator at a time; the versions of one operator form one line."""

    number: int
    buckets: tuple[tuple[Delta, ...], ...]
    freed: int = 0
    """How many rows were freed up to it, before their time."""
    freed_bytes: int = 0
    """And how many bytes."""

    @staticmethod
    def empty(buckets: int) -> StateVersion:
        """The version before the first step."""
        return StateVersion(0, ((),) * buckets)

    def after(self, new: Mapping[int, Delta], until: int = BEGINNING) -> StateVersion:
        """The next version: a new delta takes the place of those whose changes it includes.

        Deltas that say nothing after the time ``until`` are left out.
        """
        buckets = (_with(d, new.get(bucket)) for bucket, d in enumerate(self.buckets))
        kept = (tuple(delta for delta in d if delta.last_end > until) for d in buckets)
        freed = self.freed + sum(delta.freed for delta in new.values())
        freed_bytes = self.freed_bytes + sum(delta.freed_bytes for delta in new.values())
        return StateVersion(self.number + 1, tuple(kept), freed, freed_bytes)

    def first_of_next(self, bucket: int, rows: int, live_rows: int) -> int:
        """From which version on the bucket's next delta, of so many rows, includes the changes.

        Zero asks for a base: all there is.
        """
        deltas = self.buckets[bucket]
        sizes = [delta.rows for delta in deltas]
        if sum(sizes) + rows > 2 * live_rows + COMPACT_ROWS:
            return 0
        merged = parts_to_merge(sizes, rows)
        if merged == len(deltas):
            return 0
        return deltas[-merged].first if merged else self.number + 1

    def rows_of_base(self, bucket: int) -> int:
        """How many rows a bucket held when all of it was last written; all, if it never was."""
        deltas = self.buckets[bucket]
        return sum(delta.rows for delta in deltas[: 1 if deltas and deltas[0].is_base else None])

    def rows_written_whole(self, bucket: int) -> int:
        """How many rows a bucket has of the time when all of it was last written."""
        return sum(delta.rows for delta in self.buckets[bucket] if delta.is_base)

    @property
    def paths(self) -> frozenset[str]:
        """The files it needs."""
        return frozenset(delta.path for deltas in self.buckets for delta in deltas)

    def to_json(self) -> dict[str, Any]:
        """The version as plain data."""
        buckets = [[delta.to_json() for delta in deltas] for deltas in self.buckets]
        freed = {"freed": self.freed, "freed_bytes": self.freed_bytes} if self.freed else {}
        return {"number": self.number, "buckets": buckets} | freed

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> StateVersion:
        """The version that ``to_json`` gave."""
        buckets = (tuple(map(Delta.from_json, deltas)) for deltas in data["buckets"])
        freed = data.get("freed", 0), data.get("freed_bytes", 0)
        return StateVersion(data["number"], tuple(buckets), *freed)


def _with(deltas: tuple[Delta, ...], new: Delta | None) -> tuple[Delta, ...]:
    if new is None:
        return deltas
    return (*(delta for delta in deltas if delta.last < new.first), new)

"""Transactions of a server as changes of one table: rows that come and go at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from millpond.connectors.pgoutput import (
    UNCHANGED,
    Begin,
    Changed,
    Commit,
    Described,
    Message,
    Truncated,
    Values,
    lsn_text,
)
from millpond.connectors.postgres_place import Part, Place
from millpond.connectors.postgres_tables import Fault

KeyChunk = Callable[[Place, tuple[Any, ...]], int]
"""In which chunk the row of a key was read, as the server compares keys."""


@dataclass(frozen=True)
class RowChange:
    """A row that comes (weight 1) or goes (-1), and the place behind it."""

    time: int
    weight: int
    row: tuple[str | None, ...]
    place: Place


@dataclass(frozen=True)
class Done:
    """A transaction has ended."""

    place: Place


@dataclass
class Transactions:
    """Reads messages of a slot, from a place on."""

    oid: int
    columns: tuple[str, ...]
    key: tuple[str, ...]
    tick_microseconds: int
    has_changes: bool
    """Whether rows may go; else they only come."""
    key_chunk: KeyChunk
    fault: Fault

    def changes(
        self, place: Place, messages: Iterable[Message | None]
    ) -> Iterator[RowChange | Done]:
        """The changes behind a place, with the end of each transaction."""
        described: _Described | None = None
        begin, count, time = Begin(0, 0, 0), 0, 0
        for message in messages:
            match message:
                case Begin() as begin:
                    part = place.part if self._is_part(place, begin) else None
                    now = begin.time_microseconds // self.tick_microseconds
                    time = max(now, place.time) if part is None else part.time
                    count = 0
                case Commit(commit, end):
                    if commit >= place.lsn:
                        place = place.behind(end, time if count else place.time)
                        yield Done(place)
                case Described() if message.oid == self.oid:
                    described = self._described(message, begin, place)
                case Truncated(oids) if self.oid in oids and begin.commit_lsn >= place.lsn:
                    self._refuse_truncated(begin, place)
                case Changed() if message.oid == self.oid and begin.commit_lsn >= place.lsn:
                    if described is None:
                        raise self.fault("internal: rows come of a table that was not described")
                    done = place.part.rows if self._is_part(place, begin) and place.part else 0
                    for weight, row in self._rows(message, described, begin, place):
                        count += 1
                        if count > done:
                            part = Part(begin.commit_lsn, count, time)
                            yield RowChange(time, weight, row, replace(place, part=part))
                case _:
                    pass

    def _is_part(self, place: Place, begin: Begin) -> bool:
        return place.part is not None and place.part.commit_lsn == begin.commit_lsn

    def _described(self, message: Described, begin: Begin, place: Place) -> _Described:
        """Where the columns are; the table is refused if it is another one by now."""
        names = [name for name, _ in message.columns]
        found = tuple(sorted(f"{n} {kind}" for n, kind in message.columns if n in self.columns))
        if begin.commit_lsn >= place.lsn:
            self.check_table(found, message.identity, place, f" at {lsn_text(begin.commit_lsn)}")
        if set(self.columns) - set(names):
            return _Described((), ())
        return _Described(
            tuple(map(names.index, self.columns)),
            tuple(names.index(each) for each in self.key if each in names),
        )

    def check_table(
        self, types: tuple[str, ...], identity: str | None, place: Place, when: str = ""
    ) -> None:
        """Refuses a table that has other columns by now, or keeps no old rows."""
        if types != tuple(sorted(place.types)):
            raise self.fault(
                f"its columns have changed{when}: they were {', '.join(place.types)}, and are "
                f"{', '.join(types) or 'gone'} (names and numbers of types); DROP it here and "
                "declare it again, which reads the table anew"
            )
        if self.has_changes and identity != "f":
            raise self.fault(
                f"it does not keep what rows were{when}, so that they cannot be taken out; "
                "ALTER TABLE … REPLICA IDENTITY FULL, then DROP it here and declare it again"
            )

    def _refuse_truncated(self, begin: Begin, place: Place) -> None:
        if place.chunks and all(chunk.has(begin.xid) for chunk in place.chunks):
            return  # before the snapshot
        raise self.fault(
            f"it was truncated at {lsn_text(begin.commit_lsn)}, which does not say what rows are "
            "gone; DROP it here and declare it again, and use DELETE FROM"
        )

    def _rows(
        self, change: Changed, described: _Described, begin: Begin, place: Place
    ) -> Iterator[tuple[int, tuple[str | None, ...]]]:
        """The rows that a change takes out and puts in, as far as no snapshot has them."""
        old, new = change.old, change.new
        if new is not None and change.kind == "U":
            new = _filled(new, old if change.is_old_whole else None)
        shows_old = change.kind != "I" and not self._is_known(old or new, described, begin, place)
        shows_new = new is not None and not self._is_known(new, described, begin, place)
        if not self.has_changes and change.kind != "I" and (shows_old or shows_new):
            raise self.fault(
                f"a row was {'changed' if change.kind == 'U' else 'deleted'} at "
                f"{lsn_text(begin.commit_lsn)}, and rows of a stream only come; declare it as "
                "CREATE RELATION … WITH (changes = true)"
            )
        if not self.has_changes and change.kind != "I":
            return
        if shows_old:
            if old is None or not change.is_old_whole:
                raise self.fault(
                    f"what a row was is not in the log at {lsn_text(begin.commit_lsn)}; "
                    "ALTER TABLE … REPLICA IDENTITY FULL, then DROP it here and declare it again"
                )
            yield -1, described.row(old)
        if shows_new and new is not None:
            yield 1, described.row(new)

    def _is_known(
        self, row: Values | None, described: _Described, begin: Begin, place: Place
    ) -> bool:
        """Whether the snapshot of a row's chunk has what a transaction did."""
        if not place.chunks or begin.commit_lsn > place.overlap_lsn or row is None:
            return False
        at = 0
        if len(place.chunks) > 1:
            at = self.key_chunk(place, tuple(row[each] for each in described.key))
        return place.chunks[at].has(begin.xid)


@dataclass(frozen=True)
class _Described:
    """Where the columns and the key are in the rows of messages."""

    columns: tuple[int, ...]
    key: tuple[int, ...]

    def row(self, values: Values) -> tuple[Any, ...]:
        return tuple(values[each] for each in self.columns)


def _filled(new: Values, old: Values | None) -> Values:
    """A new row with what an update has left as it was."""
    if old is None or UNCHANGED not in new:
        return new
    return tuple(o if n is UNCHANGED else n for n, o in zip(new, old, strict=True))

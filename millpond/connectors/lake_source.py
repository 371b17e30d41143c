"""Tables of a lake, which come in versions, as sources: what a version holds, then what each has
changed. Their histories are of their own: Delta's and Iceberg's."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.changes import changes_schema
from millpond.connectors.lake import words_of
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.errors import MillpondError
from millpond.schema import BEGINNING

logger = logging.getLogger("millpond")

LOOK_SECONDS = 0.5
"""So often it is looked for the next version, and so often time goes on while there is none."""

PASS_SECONDS = 10.0
"""So often it is noted which versions had nothing for a stream."""

MOST_FAULTS = 10
"""So often in a row a store may not answer before that is an error."""


class Piece(Protocol):
    """A file whose rows come (1) or go (-1) with a version, or say so themselves (0)."""

    @property
    def weight(self) -> int:
        """What becomes of its rows."""


@dataclass(frozen=True)
class Version:
    """A version of a table: its pieces, and when it was made, in milliseconds."""

    number: int
    pieces: tuple[Any, ...]
    is_whole: bool = False
    """Whether they have all of its rows, not only what it has changed."""
    milliseconds: int = 0
    operation: str = ""
    form: Any = None
    """What the table is from this version on, where it says so."""

    @property
    def takes_away(self) -> bool:
        """Whether it has rows go."""
        return any(each.weight != 1 for each in self.pieces)


@dataclass(frozen=True)
class LakePosition:
    """Behind so many rows of a piece of a version; ``time`` is that of its changes, in ticks."""

    table: str
    version: int
    is_whole: bool = False
    """Whether all rows of the version are read, not only what it has changed."""
    piece: int = 0
    row: int = 0
    time: int = BEGINNING
    is_behind: bool = False
    """Whether the version is read, and the one that follows it is not known yet."""


class LakeRows(Protocol):
    """Reads the rows of pieces for the columns of a declaration."""

    def tables(self, piece: Any, first: int) -> Iterator[tuple[pa.Table, pa.Array]]:
        """The rows of a piece behind the first ones, with the weight of each."""

    def read(
        self, rows: pa.Table, piece: Any, first: int
    ) -> tuple[pa.Table, list[BadRow], list[int]]:
        """Rows behind the first ones of a piece as they are declared, the bad ones among them,
        and the number of each good one."""


class History(Protocol):
    """The versions of a table, in their order."""

    @property
    def passing(self) -> tuple[type[Exception], ...]:
        """Faults after which it is asked again."""

    def present(self) -> LakePosition:
        """Before all rows of the version that is there."""

    def behind(self, position: LakePosition) -> LakePosition:
        """Where reading goes on when a version is read."""

    def next(self, position: LakePosition) -> Version | None:
        """The version at a position; None where it is not there yet."""

    def rows(self, table: str, form: Any) -> LakeRows:
        """How rows are read that have this form, of the present version if None; refused if it is
        of another table."""

    def fault(self, reason: str) -> MillpondError:
        """A fault that names the table."""


class LakeSource:
    """The rows of a table and those that come; or, of a relation, its rows and their changes."""

    def __init__(
        self,
        declaration: Declaration,
        history: History,
        *,
        has_changes: bool,
        skips_snapshot: bool = False,
        follows: bool = True,
    ) -> None:
        self.declaration, self.history, self.has_changes = declaration, history, has_changes
        self._skips_snapshot = skips_snapshot
        self.is_live, self.ends = follows, not follows
        self.is_closed = threading.Event()
        self.done = 0

    def pages(self) -> Iterator[SourcePage]:
        """What the table holds, then what changes; an empty page says first which version it is."""
        position = self.history.present()
        if self._skips_snapshot:
            position = self.history.behind(position)
        yield self.quiet(position)
        yield from _Reading(self, position).pages()

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """What follows a position."""
        yield from _Reading(self, LakePosition(**position)).pages()

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self.done, None, "rows")

    def close(self) -> None:
        """Nobody waits for a version any more."""
        self.is_closed.set()

    def quiet(self, position: LakePosition) -> SourcePage:
        """A page without rows, that says where reading goes on."""
        of = changes_schema if self.has_changes else arrow_schema
        rows = of(self.declaration.schema).empty_table()
        return SourcePage(rows, position_after=lambda _: asdict(position))


class _Reading:
    """Reads on behind a position."""

    def __init__(self, source: LakeSource, position: LakePosition) -> None:
        self._source, self._history, self._position = source, source.history, position
        self._noted, self._noted_at = position, time.monotonic()
        self._faults = 0
        self._rows = self._history.rows(position.table, None)

    def pages(self) -> Iterator[SourcePage]:
        """Pages of version after version; where there is no next one it is waited for."""
        while not self._source.is_closed.is_set():
            version = self._next()
            if version is not None:
                yield from self._of_version(version)
            elif self._source.ends:
                return
            else:
                yield from self._promised()
                self._source.is_closed.wait(LOOK_SECONDS)

    def _next(self) -> Version | None:
        if self._source.ends and not self._position.is_whole:
            return None
        try:
            version = self._history.next(self._position)
        except MillpondError:
            raise
        except self._history.passing as error:
            self._faults += 1
            if self._faults > MOST_FAULTS or self._position.is_whole:
                raise self._history.fault(words_of(error)) from None
            name, said = self._source.declaration.name, words_of(error)
            logger.warning("%s: %s; it is asked again", name, said)
            return None
        self._faults = 0
        return version

    def _of_version(self, version: Version) -> Iterator[SourcePage]:
        """The pages of a version; behind them the next one is to be read."""
        if version.takes_away and not self._source.has_changes:
            raise self._history.fault(
                f"version {version.number} ({version.operation}) takes rows away, which no stream "
                "can; declare a RELATION … WITH (changes = true), or DROP it and declare it again, "
                "which reads what is there now"
            )
        if version.form is not None:
            self._rows = self._history.rows(self._position.table, version.form)
        position = self._position
        if position.is_behind or not (version.is_whole or position.piece or position.row):
            tick = self._source.declaration.settings.tick_microseconds
            made = max(position.time, 1000 * version.milliseconds // tick)
            position = LakePosition(position.table, version.number, version.is_whole, time=made)
            self._position = position
        for piece in version.pieces[position.piece :]:
            yield from self._of_piece(piece)
            if self._source.is_closed.is_set():
                return
            self._position = replace(self._position, piece=self._position.piece + 1, row=0)
        self._position = self._history.behind(self._position)

    def _of_piece(self, piece: Piece) -> Iterator[SourcePage]:
        for rows, weights in self._rows.tables(piece, self._position.row):
            page = self._page(piece, rows, weights)
            self._position = replace(self._position, row=self._position.row + rows.num_rows)
            self._note()
            yield page

    def _page(self, piece: Piece, rows: pa.Table, weights: pa.Array) -> SourcePage:
        """Rows of a file behind the position."""
        first, source = self._position, self._source
        values, bad, numbers = self._rows.read(rows, piece, first.row)
        source.done += rows.num_rows

        def position_after(count: int) -> dict[str, Any]:
            if count == len(numbers):
                known = rows.num_rows
            else:
                known = numbers[count - 1] + 1 if count else 0
            return asdict(replace(first, row=first.row + known))

        if source.has_changes:
            times = pa.repeat(first.time, rows.num_rows)
            schema = changes_schema(source.declaration.schema)
            values = pa.table([times, weights, *values.columns], schema=schema)
        return SourcePage(values, tuple(bad), position_after)

    def _note(self) -> None:
        self._noted, self._noted_at = self._position, time.monotonic()

    def _promised(self) -> Iterator[SourcePage]:
        """An empty page, where one is due: how far the log was read, and until when nothing
        follows."""
        quiet_seconds = time.monotonic() - self._noted_at
        if self._source.has_changes and quiet_seconds >= LOOK_SECONDS:
            tick = self._source.declaration.settings.tick_microseconds
            until = time.time_ns() // 1000 // tick - 1
            if until >= self._position.time:
                self._position = replace(self._position, time=until + 1)
                self._note()
                yield replace(self._source.quiet(self._position), until=until)
        elif self._position != self._noted and quiet_seconds >= PASS_SECONDS:
            self._note()
            yield self._source.quiet(self._position)

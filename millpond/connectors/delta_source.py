"""Tables of Delta Lake as sources: what a version holds, then what each has changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.changes import changes_schema
from millpond.connectors.delta_log import DeltaLog, Piece, Version
from millpond.connectors.delta_rows import DeltaRows
from millpond.connectors.delta_table import DeltaPlace, Form, words_of
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.schema import BEGINNING

logger = logging.getLogger("millpond")

LOOK_SECONDS = 0.5
"""So often it is looked for the next version, and so often time goes on while there is none."""

PASS_SECONDS = 10.0
"""So often it is noted which versions had nothing for a stream."""

MOST_FAULTS = 10
"""So often in a row a store may not answer before that is an error."""


@dataclass(frozen=True)
class DeltaPosition:
    """Behind so many rows of a piece of a version; ``time`` is that of its changes, in ticks."""

    table: str
    version: int
    is_whole: bool = False
    """Whether all rows of the version are read, not only what it has changed."""
    piece: int = 0
    row: int = 0
    time: int = BEGINNING

    def of_next_version(self) -> DeltaPosition:
        """Where the next version begins."""
        return DeltaPosition(self.table, self.version + 1, time=self.time)


class DeltaSource:
    """The rows of a table and those that come; or, of a relation, its rows and their changes."""

    def __init__(
        self,
        declaration: Declaration,
        place: DeltaPlace,
        *,
        has_changes: bool,
        skips_snapshot: bool = False,
        follows: bool = True,
    ) -> None:
        self.declaration, self.place, self.has_changes = declaration, place, has_changes
        self._skips_snapshot = skips_snapshot
        self.is_live, self.ends = follows, not follows
        self.is_closed = threading.Event()
        self.done = 0

    def pages(self) -> Iterator[SourcePage]:
        """What the table holds, then what changes; an empty page says first which version it is."""
        table = self.place.opened()
        identity = self.place.form_of(table).identity
        position = DeltaPosition(identity, table.version(), is_whole=True)
        if self._skips_snapshot:
            position = position.of_next_version()
        yield self.quiet(position)
        yield from _Reading(self, position).pages()

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """What follows a position."""
        yield from _Reading(self, DeltaPosition(**position)).pages()

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self.done, None, "rows")

    def close(self) -> None:
        """Nobody waits for a version any more."""
        self.is_closed.set()

    def quiet(self, position: DeltaPosition) -> SourcePage:
        """A page without rows, that says where reading goes on."""
        of = changes_schema if self.has_changes else arrow_schema
        rows = of(self.declaration.schema).empty_table()
        return SourcePage(rows, position_after=lambda _: asdict(position))


class _Reading:
    """Reads on behind a position."""

    def __init__(self, source: DeltaSource, position: DeltaPosition) -> None:
        self._source, self._place, self._position = source, source.place, position
        self._log = DeltaLog(source.place)
        self._noted, self._noted_at = position, time.monotonic()
        self._faults = 0
        self._rows = self._learnt(source.place.form_of(source.place.opened()))

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

    def _learnt(self, form: Form) -> DeltaRows:
        """How rows are read now; refused if it is another table."""
        if form.identity != self._position.table:
            raise self._place.fault(
                "it was made anew since it was read; DROP it here and declare it again"
            )
        return DeltaRows(self._source.declaration, self._place, form)

    def _next(self) -> Version | None:
        if self._position.is_whole:
            return self._log.whole(self._position.version)
        if self._source.ends:
            return None
        try:
            version = self._change(self._position.version)
        except OSError as error:
            self._faults += 1
            if self._faults > MOST_FAULTS:
                raise self._place.fault(words_of(error)) from None
            name, said = self._source.declaration.name, words_of(error)
            logger.warning("%s: %s; it is asked again", name, said)
            return None
        self._faults = 0
        return version

    def _change(self, number: int) -> Version | None:
        version = self._log.change(number)
        if version is None and self._log.is_shortened_behind(number):
            version = self._log.change(number)  # it may have come just now
            if version is None:
                raise self._place.fault(
                    f"the log of version {number} is gone (delta.logRetentionDuration) before it "
                    "was read; DROP it here and declare it again, which reads what is there now"
                )
        return version

    def _of_version(self, version: Version) -> Iterator[SourcePage]:
        """The pages of a version; behind them the next one is to be read."""
        if version.takes_away and not self._source.has_changes:
            raise self._place.fault(
                f"version {version.number} ({version.operation}) takes rows away, which no stream "
                "can; declare a RELATION … WITH (changes = true), or DROP it and declare it again, "
                "which reads what is there now"
            )
        if version.form is not None:
            self._rows = self._learnt(version.form)
        position = self._position
        if not (version.is_whole or position.piece or position.row):
            tick = self._source.declaration.settings.tick_microseconds
            made = 1000 * version.milliseconds // tick
            self._position = replace(position, time=max(position.time, made))
        for piece in version.pieces[position.piece :]:
            yield from self._of_piece(piece)
            if self._source.is_closed.is_set():
                return
            self._position = replace(self._position, piece=self._position.piece + 1, row=0)
        self._position = self._position.of_next_version()

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

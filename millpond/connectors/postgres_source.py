"""Tables of PostgreSQL as sources, by logical replication: a snapshot, then all that changes."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.changes import changes_schema
from millpond.connectors.pgoutput import lsn_text
from millpond.connectors.postgres_client import Server, policies_named
from millpond.connectors.postgres_dropping import OwnedSlot
from millpond.connectors.postgres_place import Place
from millpond.connectors.postgres_publication import Publication
from millpond.connectors.postgres_slot import Look, Slot
from millpond.connectors.postgres_snapshot import Snapshot
from millpond.connectors.postgres_tables import SourceTable
from millpond.connectors.postgres_transactions import Done, RowChange, Transactions
from millpond.connectors.postgres_values import Columns, Row, TableRows
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.errors import InputError
from millpond.schema import BEGINNING

logger = logging.getLogger("millpond")

LOOK_SECONDS = 0.2
"""So often a server is asked for what is new."""

PROMISE_SECONDS = 0.5
"""So often time goes on while nothing changes."""

PASS_SECONDS = 10.0
"""So often it is noted how far the log was read while it says nothing of a stream's table."""

PREREQUISITE = "55000"
"""What a server says that cannot do what is asked as it is set up."""


@dataclass(frozen=True)
class Origin:
    """Where a table is, and how it is read."""

    server: Server
    table: str
    slot: str
    publication: str
    skips_snapshot: bool


class PostgresSource:
    """The rows of a table and their changes; or, of a stream, the rows that come."""

    ends = False
    is_live = True

    def __init__(self, declaration: Declaration, origin: Origin, has_changes: bool) -> None:
        self._declaration, self._origin, self._has_changes = declaration, origin, has_changes
        self._is_closed = threading.Event()
        self._done = 0
        self._committed = 0
        """What comes before this place in the log is in a commit."""
        self._position: dict[str, Any] | None = None
        self._slot_name = ""
        self._open: Generator[SourcePage] = self._nothing()

    # -- what the engine asks --------------------------------------------------------------

    def pages(self) -> Iterator[SourcePage]:
        """What the table holds, then what changes; an empty page says first which slot is used."""
        name = f"{self._origin.slot}_{self._declaration.name.lower()}"
        safe = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
        place = Place(f"{safe[:50]}_{secrets.token_hex(4)}")
        self._open = self._begun(place)
        return self._open

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """What follows a position."""
        place = Place.of(position)
        self._open, self._slot_name = self._waiting(place), place.slot
        return self._open

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self._done, None, "rows")

    def close(self) -> None:
        """Nobody waits for a row any more."""
        self._is_closed.set()
        self._has_ended()  # else whoever waits for a page sees that it is closed

    def committed(self, position: dict[str, Any]) -> None:
        """The server need not keep what comes before a position."""
        if position is not self._position:  # it is said after each commit, whoever's
            place, self._position = Place.of(position), position
            self._committed, self._slot_name = place.lsn, place.slot

    def forget(self) -> threading.Thread | None:
        """Drops the slot, so that the server keeps nothing for it; the process does not end before
        that."""
        if not self._slot_name or not self._declaration.lasts:
            return None
        drop, name = self._owned(self._slot_name).drop, self._declaration.name
        thread = threading.Thread(target=drop, args=(name, self._has_ended), daemon=False)
        thread.start()
        return thread

    def _owned(self, slot: str) -> OwnedSlot:
        return OwnedSlot(self._origin.server, slot, not self._origin.publication)

    def _has_ended(self) -> bool:
        """Whether nobody reads any more, who could yet make the slot."""
        try:
            self._open.close()
        except ValueError:  # a page is being read
            return False
        return True

    # -- reading ---------------------------------------------------------------------------

    def _nothing(self) -> Generator[SourcePage]:
        yield from ()

    def _begun(self, place: Place) -> Generator[SourcePage]:
        yield self._page([], place, place)
        yield from self._waiting(place)

    def _fault(self, said: str) -> InputError:
        place = f"{self._declaration.name} FROM {self._origin.server.place}"
        return InputError(f"{place}, table {self._origin.table}: {said}")

    def _waiting(self, place: Place) -> Generator[SourcePage]:
        """Reads on, and waits for a server that goes away meanwhile."""
        has_answered, self._slot_name = False, place.slot
        psycopg = self._origin.server.psycopg
        while not self._is_closed.is_set():
            try:
                for page, behind in self._connected(place):
                    if self._is_closed.is_set():
                        return
                    has_answered, place = True, behind
                    yield page
                return
            except psycopg.OperationalError as error:
                said = self._origin.server.words_of(error)
                if not has_answered or error.sqlstate == PREREQUISITE:
                    raise self._fault(_way_out(said)) from None
                logger.warning("%s: %s; it is asked again", self._declaration.name, said)
                self._is_closed.wait(5 * LOOK_SECONDS)
            except psycopg.Error as error:
                raise self._fault(_way_out(self._origin.server.words_of(error))) from None

    def _connected(self, place: Place) -> Iterator[tuple[SourcePage, Place]]:
        with self._origin.server.reading() as log, self._origin.server.reading() as rows:
            table = SourceTable.found(rows, self._origin.table, self._fault)
            reading = _Reading(self, self._declaration, table, log, rows, place)
            try:
                yield from reading.pages()
            finally:
                if not self._declaration.lasts:  # its slot ends with its connection
                    with suppress(self._origin.server.psycopg.Error):
                        self._owned(place.slot).drop_publication(rows)

    # -- pages -----------------------------------------------------------------------------

    def _page(
        self, changes: list[RowChange], first: Place, last: Place, columns: Columns | None = None
    ) -> SourcePage:
        """Rows between two places."""
        columns = columns or Columns(self._declaration.schema, (), ())
        reader = TableRows(self._declaration, columns)

        def where(row: int) -> str:
            change = changes[row].place
            lsn = change.part.commit_lsn if change.part else change.lsn
            return f"table {self._origin.table}, log {lsn_text(lsn)}, row {row + 1}"

        given: list[Row] = [each.row for each in changes]
        values, bad, numbers = reader.read(given, where) if changes else (self._empty(), [], [])
        self._done += len(changes)

        def position_after(count: int) -> dict[str, Any]:
            if count == len(numbers):
                return last.as_json()
            return (changes[numbers[count - 1]].place if count else first).as_json()

        if self._has_changes:
            values = _with_times(self._declaration, values, [changes[each] for each in numbers])
        return SourcePage(values, tuple(bad), position_after)

    def _empty(self) -> pa.Table:
        return arrow_schema(self._declaration.schema).empty_table()


class _Reading:
    """A table that is read by two connections: one for its slot, one for its rows."""

    def __init__(
        self,
        source: PostgresSource,
        declaration: Declaration,
        table: SourceTable,
        log: Any,
        rows: Any,
        place: Place,
    ) -> None:
        origin = source._origin
        self._source, self._declaration, self._rows = source, declaration, rows
        self._origin, self._fault, self._place = origin, source._fault, place
        self._has_changes = source._has_changes
        self._columns = Columns.of(declaration.schema, table.table, self._fault)
        self._columns.refuse_generated(table, self._fault)
        errors, name = origin.server.psycopg.errors, origin.publication or place.slot
        self._publication = Publication(log, errors, name, table, self._fault)
        self._slot = Slot(log, place.slot, table, self._publication, self._fault)
        self._snapshot = Snapshot(rows, table, self._columns.names, self._fault)
        self._transactions = Transactions(
            table.oid,
            self._columns.names,
            tuple(name for name, _ in table.key),
            declaration.settings.tick_microseconds,
            self._has_changes,
            self._snapshot.chunk_of,
            self._fault,
        )
        self._table = table

    def pages(self) -> Iterator[tuple[SourcePage, Place]]:
        """Pages, and the place behind each."""
        self._begin()
        if not self._place.is_read:
            yield from self._snapshot_pages()
        yield from self._log_pages()

    def _begin(self) -> None:
        place = self._place
        if place.oid not in (0, self._table.oid):
            raise self._fault(
                "it was made anew since it was read; DROP it here and declare it again"
            )
        if not place.oid:
            look = self._slot.look(self._columns.names)
            self._place = replace(place, oid=self._table.oid, types=look.types)
            self._transactions.check_table(look.types, look.identity, self._place)
            self._publication.publish()
            form = replace(look.form, published=self._publication.number())
            self._place = replace(self._place, form=form)
            self._slot.make(not self._declaration.lasts)
            self._wait_for_open_transactions()
        else:
            self._slot.check(place.lsn)
            self._check(self._slot.look(self._columns.names))

    def _wait_for_open_transactions(self) -> None:
        """Those that are open when the slot is there may be neither in its log nor in a snapshot
        until they end."""
        horizon = self._slot.horizon()
        while self._slot.oldest() < horizon and not self._source._is_closed.wait(0.01):
            pass

    def _snapshot_pages(self) -> Iterator[tuple[SourcePage, Place]]:
        if self._origin.skips_snapshot:
            self._place = self._skipped()
            yield self._source._page([], self._place, self._place), self._place
            return
        most = self._declaration.settings.page_rows
        before = self._place
        for rows, place in self._snapshot.rows(before, most):
            changes = [RowChange(BEGINNING, 1, row, _at_key(place, key)) for key, row in rows]
            page = self._source._page(changes, self._place, place, self._columns)
            self._place = place
            yield page, place
            if self._source._is_closed.is_set():
                return

    def _skipped(self) -> Place:
        """Where what comes from now on begins."""
        look = self._slot.look(self._columns.names)
        return replace(self._place, is_read=True, lsn=look.lsn)

    def _log_pages(self) -> Iterator[tuple[SourcePage, Place]]:
        most, noted, noted_at = self._usual, self._place, time.monotonic()
        while not self._source._is_closed.is_set():
            self._slot.pass_to(min(self._source._committed, self._place.lsn))
            look = self._slot.look(self._columns.names)
            self._check(look)
            before, counted = self._place, _Counted()
            for page in self._peeked(look.lsn, most, counted):
                noted, noted_at = self._place, time.monotonic()
                yield page, self._place
            if counted.count >= most:  # there may be more, and it may all be known
                most = 4 * most if self._place == before else self._usual
                continue
            most = self._usual
            self._place = self._place.behind(look.lsn, BEGINNING)
            is_due = self._has_changes or self._place != noted
            if is_due and time.monotonic() > noted_at + self._pause:
                page = self._quiet(look.now_microseconds)
                noted, noted_at = self._place, time.monotonic()
                yield page, self._place
            self._source._is_closed.wait(LOOK_SECONDS)

    @property
    def _usual(self) -> int:
        return 2 * self._declaration.settings.page_rows + 100

    @property
    def _pause(self) -> float:
        return PROMISE_SECONDS if self._has_changes else PASS_SECONDS

    def _check(self, look: Look) -> None:
        """Refuses a table that is another one by now, though nothing was written to it since."""
        self._transactions.check_table(look.types, look.identity, self._place)
        known, found = self._place.form, look.form
        why = ""
        if found.published is None:
            why = "is not in the publication any more"
        elif found.published != known.published:
            why = "was taken out of the publication and put back"
        elif found.numbers != known.numbers:
            why = "has columns that were dropped or renamed, and others of their names"
        elif found.file != known.file and found.versions != known.versions:
            why = "was written anew, with columns that were changed (ALTER TABLE … TYPE … USING)"
        if why:
            raise self._fault(
                f"it {why}: what was read is not what it holds; DROP it here and declare it again, "
                "which reads the table anew"
            )
        self._place = replace(self._place, form=found)

    def _peeked(self, until_lsn: int, most: int, counted: _Counted) -> Iterator[SourcePage]:
        """Pages of what the log has; counts its messages."""
        changes, first = list[RowChange](), self._place
        with closing(self._slot.messages(until_lsn, most)) as messages:
            for each in self._transactions.changes(self._place, counted.of(messages)):
                if isinstance(each, Done):
                    self._place = each.place
                    continue
                changes.append(each)
                if len(changes) == self._declaration.settings.page_rows:
                    self._place = each.place
                    yield self._page_of(changes, first)
                    changes, first = [], self._place
        if changes:
            yield self._page_of(changes, first)

    def _page_of(self, changes: list[RowChange], first: Place) -> SourcePage:
        return self._source._page(changes, first, self._place, self._columns)

    def _quiet(self, now_microseconds: int) -> SourcePage:
        """A page without rows: how far the log was read, and until when nothing follows."""
        page = self._source._page([], self._place, self._place)
        if not self._has_changes:
            return page
        until = now_microseconds // self._declaration.settings.tick_microseconds - 1
        if until < self._place.time:
            return page
        self._place = replace(self._place, time=until + 1)
        page = self._source._page([], self._place, self._place)
        return replace(page, until=until)


class _Counted:
    """Counts what is read."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, messages: Iterator[Any]) -> Iterator[Any]:
        for each in messages:
            self.count += 1
            yield each


def _at_key(place: Place, key: tuple[str, ...]) -> Place:
    """The place behind the row of a key, in the chunk that is read."""
    return replace(place, chunks=(*place.chunks[:-1], replace(place.chunks[-1], last_key=key)))


def _with_times(declaration: Declaration, rows: pa.Table, changes: list[RowChange]) -> pa.Table:
    """The rows as changes of a relation."""
    times = pa.array([each.time for each in changes], pa.int64())
    weights = pa.array([each.weight for each in changes], pa.int64())
    schema = changes_schema(declaration.schema)
    return pa.table([times, weights, *rows.columns], schema=schema)


def _way_out(said: str) -> str:
    """What a server says, with what is to be done about it."""
    if "wal_level" in said:
        return f"{said}; set wal_level = logical and restart the server, or read it by poll = 'key'"
    return policies_named(said)

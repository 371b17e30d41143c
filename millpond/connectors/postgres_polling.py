"""Tables of PostgreSQL that rows only come to, read by a column whose values grow."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.postgres_client import Server, policies_named
from millpond.connectors.postgres_tables import SourceTable, quoted
from millpond.connectors.postgres_values import Columns, TableRows
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.errors import InputError

logger = logging.getLogger("millpond")

LOOK_SECONDS = 0.2
"""So often a server is asked for what is new."""


class PollingSource:
    """The rows of a table in the order of a column, and those that come with larger values."""

    ends = False
    is_live = True

    def __init__(
        self, declaration: Declaration, server: Server, table: str, key: str, skips: bool
    ) -> None:
        self._declaration, self._server = declaration, server
        self._name, self._key, self._skips = table, key, skips
        self._is_closed = threading.Event()
        self._done = 0

    def pages(self) -> Iterator[SourcePage]:
        """The rows there are, or only those that come; an empty page says first where it begins."""
        return self._waiting({"key": self._key, "last": None, "is_begun": False, "begun": []})

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """The rows behind a position."""
        return self._waiting(position)

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self._done, None, "rows")

    def close(self) -> None:
        """Nobody waits for a row any more."""
        self._is_closed.set()

    def _fault(self, said: str) -> InputError:
        place = f"{self._declaration.name} FROM {self._server.place}"
        return InputError(f"{place}, table {self._name}: {said}")

    def _waiting(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """Reads on, and waits for a server that goes away meanwhile."""
        has_answered = False
        while not self._is_closed.is_set():
            try:
                for page in self._connected(position):
                    has_answered, position = True, page.position
                    yield page
                return
            except self._server.psycopg.OperationalError as error:
                said = self._server.words_of(error)
                if not has_answered:
                    raise self._fault(said) from None
                logger.warning("%s: %s; it is asked again", self._declaration.name, said)
                self._is_closed.wait(5 * LOOK_SECONDS)
            except self._server.psycopg.Error as error:
                raise self._fault(policies_named(self._server.words_of(error))) from None

    def _connected(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        with self._server.reading() as connection:
            table = SourceTable.found(connection, self._name, self._fault)
            columns = Columns.of(self._declaration.schema, table.table, self._fault)
            query = _Query(connection, table, columns, self._key_of(connection, table))
            if not position["is_begun"]:
                last, *begun = query.beginning() if self._skips else (None,)
                position = {"key": self._key, "last": last, "is_begun": True, "begun": begun}
                yield self._page([], position, columns)
            while not self._is_closed.is_set():
                most = self._declaration.settings.page_rows
                rows = query.behind(position["last"], position["begun"], most)
                if rows:
                    page = self._page(rows, position, columns)
                    position = page.position
                    yield page
                if len(rows) < most:
                    self._is_closed.wait(LOOK_SECONDS)

    def _key_of(self, connection: Any, table: SourceTable) -> tuple[str, str]:
        """The column that rows are read by, and its type; refused if rows could be passed over."""
        column = table.table.column(self._key)
        if column is None:
            known = ", ".join(each.name for each in table.table.columns)
            raise self._fault(f"no column {self._key} to poll by; columns there: {known}")
        (is_full,) = connection.execute(
            "SELECT attnotnull FROM pg_attribute WHERE attrelid = %s AND attname = %s",
            (table.oid, column.name),
        ).fetchone()
        if not is_full or frozenset([column.name]) not in table.table.keys:
            raise self._fault(
                f"column {column.name} is not UNIQUE and NOT NULL, so that rows could be passed "
                "over; poll by one that is, whose values grow"
            )
        return column.name, column.type

    def _page(
        self, rows: list[tuple[str, ...]], first: dict[str, Any], columns: Columns
    ) -> SourcePage:
        """Rows that begin with their keys, and the position behind each."""
        reader = TableRows(self._declaration, columns)
        given = [row[1:] for row in rows]
        empty: tuple[pa.Table, list[Any], list[int]]
        empty = arrow_schema(self._declaration.schema).empty_table(), [], []

        def where(row: int) -> str:
            return f"table {self._name}, {self._key} {rows[row][0]}"

        values, bad, numbers = reader.read(given, where) if rows else empty
        self._done += len(rows)

        def position_after(count: int) -> dict[str, Any]:
            if count == len(numbers):
                return first | {"last": rows[-1][0]} if rows else first
            return first | {"last": rows[numbers[count - 1]][0]} if count else first

        return SourcePage(values, tuple(bad), position_after)


class _Query:
    """What is asked of a table that is polled."""

    def __init__(
        self, connection: Any, table: SourceTable, columns: Columns, key: tuple[str, str]
    ) -> None:
        self._connection, self._table, self._columns = connection, table.table.name, columns
        self._key, self._type = quoted(key[0]), key[1]

    def beginning(self) -> tuple[str | None, str | None, str]:
        """A value behind which all comes that is not there yet, the largest one there is, and
        which transactions are over."""
        query = (
            f"WITH {_SNAPSHOT}, r AS (SELECT {self._key} AS k, {_IS_OPEN} AS is_open "  # noqa: S608
            f"FROM ONLY {self._table} t, s), o AS (SELECT min(k) AS k FROM r WHERE is_open) "
            "SELECT (SELECT max(r.k)::text FROM r, o WHERE o.k IS NULL OR r.k < o.k), "
            "(SELECT max(k)::text FROM r), (SELECT x::text FROM s)"
        )
        last, largest, snapshot = self._connection.execute(query).fetchone()
        return last, largest, snapshot

    def behind(self, last: str | None, begun: list[str], most: int) -> list[tuple[str, ...]]:
        """The next rows, each with its key before it, up to one that was written while a
        transaction was open that may yet bring rows before it; none that was there when it
        began."""
        holds, given = ["true"], list[str]()
        if last is not None:
            holds, given = [f"{self._key} > %s::{self._type}"], [last]
        if begun and begun[0] is not None:
            is_known = f"pg_visible_in_snapshot({_WRITTEN_BY}, %s::pg_snapshot)"
            holds.append(f"({self._key} > %s::{self._type} OR NOT {is_known})")
            given += begun
        query = (
            f"COPY (WITH {_SNAPSHOT} SELECT {_IS_OPEN}, {self._key}, {self._columns.listed} "  # noqa: S608
            f"FROM ONLY {self._table} t, s WHERE {' AND '.join(holds)} "
            f"ORDER BY {self._key} LIMIT {int(most)}) TO STDOUT"
        )
        rows: list[tuple[str, ...]] = []
        with self._connection.cursor() as cursor, cursor.copy(query, given) as copy:
            is_behind = False
            for is_open, *row in copy.rows():  # to its end: a COPY left before is an error
                is_behind = is_behind or is_open == "t"
                if not is_behind:
                    rows.append(tuple(row))
        return rows


_SNAPSHOT = (
    "s AS (SELECT x, pg_snapshot_xmin(x)::text::bigint AS low, "
    "pg_snapshot_xmax(x)::text::bigint AS high FROM pg_current_snapshot() x)"
)
"""Which transactions are over: those before ``low``; some from there to ``high`` may be open."""

_BEHIND_LOW = "mod(t.xmin::text::bigint - mod(s.low, 4294967296) + 4294967296, 4294967296)"
"""How far behind ``low`` the transaction is that wrote a row, in 32 bits."""

_IS_OPEN = f"{_BEHIND_LOW} < s.high - s.low"
"""Whether a row was written while a transaction was open that is open yet."""

_WRITTEN_BY = (
    f"(s.low + {_BEHIND_LOW} - CASE WHEN {_IS_OPEN} THEN 0 ELSE 4294967296 END)::text::xid8"
)
"""The transaction that wrote a row, in 64 bits."""

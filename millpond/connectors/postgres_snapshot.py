"""What a table of PostgreSQL holds when it is read first, in the order of its key.

It is read in one snapshot. Whoever is killed meanwhile goes on behind the last key in another one,
and the log's transactions count for each row as far as the snapshot it was read in lacks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from millpond.connectors.pgoutput import lsn_of
from millpond.connectors.postgres_place import Chunk, Place
from millpond.connectors.postgres_tables import Fault, SourceTable, quoted

KeyedRow = tuple[tuple[str, ...], tuple[str | None, ...]]
"""The key of a row, and the row, as texts."""


@dataclass(frozen=True)
class Snapshot:
    """Reads a table behind a place."""

    connection: Any
    table: SourceTable
    columns: tuple[str, ...]
    fault: Fault

    def rows(self, place: Place, most: int) -> Iterator[tuple[list[KeyedRow], Place]]:
        """The rows behind a place, so many at a time, each with the place behind them all."""
        after = place.chunks[-1].last_key if place.chunks else None
        if place.chunks and not after:
            raise self.fault(
                "it was not read to its end when the last run ended, and without a PRIMARY KEY "
                "nobody knows where that was; DROP it here and declare it again"
            )
        with self.connection.transaction():
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            snapshot, lsn = self.connection.execute(
                "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"
            ).fetchone()
            chunks, end = place.chunks, place
            for rows in self._read(after, most):
                chunk = Chunk(snapshot, rows[-1][0])
                end = replace(place, chunks=(*chunks, chunk))
                yield rows, end
            whole = replace(place, chunks=(*chunks, Chunk(snapshot)), is_read=True)
            yield [], replace(whole, overlap_lsn=lsn_of(lsn))

    def _read(self, after: tuple[str, ...] | None, most: int) -> Iterator[list[KeyedRow]]:
        key = [quoted(name) for name, _ in self.table.key]
        listed = ", ".join([*key, *map(quoted, self.columns)])
        query = f"SELECT {listed} FROM ONLY {self.table.table.name}"  # noqa: S608
        if after is not None:
            query += f" WHERE ({', '.join(key)}) > ({self._typed()})"
        if key:
            query += f" ORDER BY {', '.join(key)}"
        rows: list[KeyedRow] = []
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY ({query}) TO STDOUT", after) as copy,
        ):
            for row in copy.rows():
                rows.append((row[: len(key)], row[len(key) :]))
                if len(rows) == most:
                    yield rows
                    rows = []
        if rows:
            yield rows

    def _typed(self) -> str:
        return ", ".join(f"%s::{kind}" for _, kind in self.table.key)

    def chunk_of(self, place: Place, key: tuple[Any, ...]) -> int:
        """In which chunk the row of a key was read."""
        names = ", ".join(f"%s::{kind}" for _, kind in self.table.key)
        bounds = [each.last_key for each in place.chunks if each.last_key is not None]
        asked = ", ".join([f"({names}) <= ({names})"] * len(bounds))
        values = [value for bound in bounds for value in (*key, *bound)]
        found = self.connection.execute(f"SELECT {asked}", values).fetchone()
        return next((at for at, is_before in enumerate(found) if is_before), len(bounds))

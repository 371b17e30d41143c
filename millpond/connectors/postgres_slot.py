"""A slot of PostgreSQL's: has a server keep its log for us until we say what we have of it.

The log is read by SQL, peeked at, and passed only behind what is in a commit of ours.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from millpond.connectors.pgoutput import Message, decoded, lsn_of, lsn_text
from millpond.connectors.postgres_place import Form
from millpond.connectors.postgres_publication import Publication
from millpond.connectors.postgres_tables import Fault, SourceTable, quoted


@dataclass(frozen=True)
class Look:
    """A server at a moment."""

    now_microseconds: int
    lsn: int
    """All that is committed is before it."""
    identity: str | None
    """What the table has the log keep of old rows; None: the table is gone."""
    types: tuple[str, ...]
    form: Form


class Slot:
    """A slot of a table that is published."""

    def __init__(
        self,
        connection: Any,
        name: str,
        table: SourceTable,
        publication: Publication,
        fault: Fault,
    ) -> None:
        self._connection, self._name = connection, name
        self._table, self._publication, self._fault = table, publication, fault
        self._confirmed = 0

    # -- making and dropping ---------------------------------------------------------------

    def make(self, is_temporary: bool) -> None:
        """Makes the slot, unless it is there."""
        if self.state() is None:
            self._connection.execute(
                "SELECT pg_create_logical_replication_slot(%s, 'pgoutput', %s)",
                (self._name, is_temporary),
            )

    def horizon(self) -> int:
        """The transaction that would begin next."""
        return int(self._one("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))

    def oldest(self) -> int:
        """The oldest transaction that is open."""
        return int(self._one("SELECT pg_snapshot_xmin(pg_current_snapshot())::text"))

    def _one(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]

    def state(self) -> tuple[int, str] | None:
        """How far the slot is, and whether the log is there that it needs; None: no slot."""
        found = self._connection.execute(
            "SELECT confirmed_flush_lsn::text, wal_status FROM pg_replication_slots "
            "WHERE slot_name = %s AND database = current_database()",
            (self._name,),
        ).fetchone()
        return None if found is None else (lsn_of(found[0] or "0/0"), found[1] or "")

    def check(self, lsn: int) -> None:
        """Refuses a slot that has not all behind a place (0: it was not passed yet)."""
        found = self.state()
        why = ""
        if found is None:
            why = "is not there any more"
        elif found[1] == "lost":
            why = "has lost its log (see max_slot_wal_keep_size)"
        elif lsn and found[0] > lsn:
            why = "has passed what was not read"
        if found is None or why:
            raise self._fault(
                f"replication slot {self._name} {why}: changes are lost; DROP it here and declare "
                "it again, which reads the table anew"
            )
        self._confirmed = found[0]

    # -- reading ---------------------------------------------------------------------------

    def look(self, columns: tuple[str, ...]) -> Look:
        """What time it is at the server, how far its log is, and whether the table is the same."""
        now, lsn = self._connection.execute(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, "
            "pg_current_wal_flush_lsn()::text"
        ).fetchone()
        given = list(columns), self._table.oid
        found = self._connection.execute(_TABLE, given).fetchone()
        identity, file, types, numbers, versions = found or (None, 0, (), (), ())
        form = Form(self._publication.number(), tuple(numbers), file, tuple(versions))
        return Look(now, lsn_of(lsn), identity, tuple(sorted(types)), form)

    def messages(self, until_lsn: int, most: int) -> Generator[Message | None]:
        """What transactions did, whole ones, up to a place or some more than ``most`` messages."""
        query = (
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s::int, "
            "'proto_version', '1', 'publication_names', %s)"
        )
        given = self._name, lsn_text(until_lsn), most, quoted(self._publication.name)
        with (
            self._connection.cursor(binary=True) as cursor,
            closing(cursor.stream(query, given)) as found,
        ):
            for (data,) in found:
                yield decoded(bytes(data))

    def pass_to(self, lsn: int) -> None:
        """The server need not keep what was committed before a place."""
        if lsn > self._confirmed:
            self._connection.execute(
                "SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (self._name, lsn_text(lsn))
            )
            self._confirmed = lsn


def drop_slot(connection: Any, name: str) -> None:
    """Has a server keep nothing for a slot, once nobody reads it."""
    connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
        (name,),
    )


_TABLE = """
SELECT relreplident::text, relfilenode::bigint, array_remove(array_agg(attname || ' ' || atttypid),
NULL), array_remove(array_agg(attnum ORDER BY attname), NULL),
array_remove(array_agg(a.xmin::text ORDER BY attname), NULL)
FROM pg_class c LEFT JOIN pg_attribute a ON attrelid = c.oid AND attname = ANY(%s)
AND NOT attisdropped WHERE c.oid = %s GROUP BY c.oid, relreplident, relfilenode
"""

"""The publication of PostgreSQL's that has the changes of a table be in the log's messages.

One that is named is somebody's; else each slot has its own, made and dropped with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millpond.connectors.postgres_tables import Fault, SourceTable, quoted


@dataclass(frozen=True)
class Publication:
    """A publication, and the table that is read by it."""

    connection: Any
    errors: Any
    name: str
    table: SourceTable
    fault: Fault

    def publish(self) -> None:
        """Has changes of the table be in the log's messages, unless they are."""
        if self.number() is not None:
            return
        self._refuse_without_identity()
        table = self.table.table.name
        statement = f"CREATE PUBLICATION {quoted(self.name)} FOR TABLE ONLY {table}"
        try:
            self.connection.execute(statement)
        except (self.errors.DuplicateObject, self.errors.UniqueViolation):
            raise self.fault(
                f"publication {self.name} is there and has not all changes of the table: of all "
                "kinds, rows and columns; DROP PUBLICATION it, or have it FOR TABLE ONLY "
                f"{table} or FOR ALL TABLES, or name another by publication = '…'"
            ) from None
        except self.errors.InsufficientPrivilege as error:
            said = str(error).splitlines()[0]
            raise self.fault(
                f"{said}; have somebody who may do it CREATE PUBLICATION p FOR TABLE ONLY {table}, "
                "and name it by publication = 'p'"
            ) from None

    def number(self) -> int | None:
        """The number of the table in it; None: it has not all changes of it."""
        found = self.connection.execute(_NUMBER, (self.table.oid, self.name)).fetchone()
        if found is None:
            return None
        number, is_by_root = found
        if is_by_root:
            raise self.fault(
                f"publication {self.name} has what changes in partitions as changes of the whole; "
                "ALTER PUBLICATION … SET (publish_via_partition_root = false), or name another by "
                "publication = '…'"
            )
        return int(number)

    def _refuse_without_identity(self) -> None:
        """In a publication such a table would refuse what others update and delete."""
        (has_identity,) = self.connection.execute(_HAS_IDENTITY, (self.table.oid,)).fetchone()
        if not has_identity:
            raise self.fault(
                "it has no replica identity, so that PostgreSQL would refuse each UPDATE and "
                "DELETE of it while it is published; give it a PRIMARY KEY or ALTER TABLE … "
                "REPLICA IDENTITY FULL, or read it by poll = 'key'"
            )


def drop_publication(connection: Any, name: str) -> None:
    """Has changes of a table not be published for a slot any more."""
    connection.execute(f"DROP PUBLICATION IF EXISTS {quoted(name)}")


_NUMBER = """
SELECT coalesce(r.oid, p.oid)::bigint, coalesce((to_jsonb(p)->>'pubviaroot')::boolean, false)
FROM pg_publication p JOIN pg_class c ON c.oid = %s
LEFT JOIN pg_publication_rel r ON prpubid = p.oid AND prrelid = c.oid
WHERE pubname = %s AND pubinsert AND pubupdate AND pubdelete AND pubtruncate
AND (r.oid IS NOT NULL OR puballtables AND relpersistence = 'p')
AND to_jsonb(r)->>'prqual' IS NULL AND to_jsonb(r)->>'prattrs' IS NULL
"""
"""Finds a table whose changes of all rows and columns are published; earlier servers know of no
conditions and no roots."""

_HAS_IDENTITY = """
SELECT relreplident = 'f' OR EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisvalid
AND CASE relreplident WHEN 'd' THEN indisprimary AND indimmediate
WHEN 'i' THEN indisreplident ELSE false END)
FROM pg_class c WHERE c.oid = %s
"""

"""The statements that give each key of a table of PostgreSQL the row that it has now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millpond.connectors.changed_rows import CHANGED, GONE, NEW
from millpond.connectors.postgres_tables import listed, quoted

STAGE = "pg_temp.millpond_stage"
"""A table of the connection's own, with the rows of keys of a page."""

KIND = "millpond_change"
"""Its column that says what becomes of the row."""


@dataclass(frozen=True)
class Merge:
    """What brings the rows of ``STAGE`` into a table."""

    table: str
    names: Sequence[str]
    keys: Sequence[str]
    replaces: bool
    """Whether a new row takes the place of one that is there, as those of streams do."""

    @property
    def stage(self) -> str:
        """Makes the table of the connection's own; a transaction leaves it empty."""
        return (
            f"CREATE TEMP TABLE {STAGE.removeprefix('pg_temp.')} ON COMMIT DELETE ROWS AS "  # noqa: S608
            f"SELECT {listed(self.names)}, 0 AS {KIND} FROM {self.table} WITH NO DATA"
        )

    def change(self, kind: int) -> str:
        """Does what is to be done of a kind."""
        if kind == GONE:
            return f"DELETE FROM {self.table} t USING {STAGE} s WHERE {self._same}{GONE}"  # noqa: S608
        if kind == CHANGED:
            rows = ", ".join(f"{quoted(each)} = s.{quoted(each)}" for each in self._others)
            return f"UPDATE {self.table} t SET {rows} FROM {STAGE} s WHERE {self._same}{CHANGED}"  # noqa: S608
        insert = (
            f"INSERT INTO {self.table} ({listed(self.names)}) "  # noqa: S608
            f"SELECT {listed(self.names)} FROM {STAGE} WHERE {KIND} = {NEW}"
        )
        return f"{insert} {self._conflict}" if self.replaces else insert

    @property
    def _others(self) -> list[str]:
        return [each for each in self.names if each not in self.keys]

    @property
    def _same(self) -> str:
        equal = " AND ".join(f"t.{quoted(each)} = s.{quoted(each)}" for each in self.keys)
        return f"{equal} AND s.{KIND} = "

    @property
    def _conflict(self) -> str:
        rows = ", ".join(f"{quoted(each)} = EXCLUDED.{quoted(each)}" for each in self._others)
        what = f"UPDATE SET {rows}" if rows else "NOTHING"
        return f"ON CONFLICT ({listed(self.keys)}) DO {what}"

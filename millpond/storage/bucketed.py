"""The keyed state of one operator: its present version in the store, in hash buckets.

A step reads the version it was prepared with and writes the rows it changes; they count when the
step is committed and the next version names them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from millpond.kernels.hashing import buckets
from millpond.storage.forms import Keyed
from millpond.storage.state import Delta, StateVersion
from millpond.storage.state_cache import BucketName, StateCache
from millpond.storage.store import Store
from millpond.storage.synopses import GroupSynopsis


class BucketedState:
    """One row a key, in buckets by the hash of ``columns``; without columns there is one bucket."""

    def __init__(
        self,
        store: Store,
        cache: StateCache,
        operator: str,
        form: Keyed,
        columns: list[str],
        count: int,
    ) -> None:
        self.form = form
        self.columns = columns
        self.version = StateVersion.empty(count if columns else 1)
        self._store = store
        self._cache = cache
        self._operator = operator

    # -- a step ----------------------------------------------------------------------------

    def known(self, rows: pa.Table) -> pa.Table:
        """The state of the keys that occur in some rows; all there is, without columns."""
        if not self.columns:
            return self.everything()
        parts = [self._at(bucket).query(part) for bucket, part in self._split(rows).items()]
        return pa.concat_tables(parts) if parts else self.form.schema.empty_table()

    def everything(self) -> pa.Table:
        """The whole state."""
        return pa.concat_tables(
            [self._at(bucket).all() for bucket in range(len(self.version.buckets))]
        )

    def changed(self, changes: pa.Table, until: int) -> StateVersion:
        """Writes the rows that a step changes; the version in which they count."""
        return self.version.after(
            {
                bucket: self._write(bucket, part, until)
                for bucket, part in self._split(changes).items()
            }
        )

    def _write(self, bucket: int, rows: pa.Table, until: int) -> Delta:
        name = self._store.new_name("state")
        return self._cache.write(self._name(bucket), self.form, self.version, rows, name, until)

    def _at(self, bucket: int) -> GroupSynopsis:
        return self._cache.state_at(self._name(bucket), self.form, self.version)

    def _name(self, bucket: int) -> BucketName:
        return BucketName(str(self._store.directory), self._operator, bucket)

    def _split(self, rows: pa.Table) -> dict[int, pa.Table]:
        count = len(self.version.buckets)
        if rows.num_rows == 0:
            return {}
        if count == 1:
            return {0: rows}
        numbers = buckets([rows[name] for name in self.columns], count)
        parts = ((bucket, rows.filter(pa.array(numbers == bucket))) for bucket in range(count))
        return {bucket: part for bucket, part in parts if part.num_rows}

    # -- versions --------------------------------------------------------------------------

    def take(self, version: StateVersion) -> None:
        """From now on this version is the state; what only the one before needed goes."""
        gone = self.version.paths - version.paths
        self.version = version
        self._store.remove(tuple(gone))

    def give_up(self, version: StateVersion) -> None:
        """A version that never came to count goes."""
        self._store.remove(tuple(version.paths - self.version.paths))

    def restore(self, reference: dict[str, Any]) -> None:
        """Takes the version that the log speaks of."""
        self.take(StateVersion.from_json(reference))

    def close(self) -> None:
        """Gives everything up."""
        self._store.remove(tuple(self.version.paths))
        self._cache.forget(str(self._store.directory), self._operator)

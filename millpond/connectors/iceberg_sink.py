"""Tables of Iceberg as sinks: a page is a commit, with its number as a property of the table.

The package would repeat a commit on top of what somebody else has written meanwhile, also if that
was the same page; it is kept from that, and the number is looked up again before each commit. It
may look once whether a commit that was refused is there nevertheless, as after an answer that got
lost: else it would delete the files of that.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.changed_rows import CHANGED, NEW
from millpond.connectors.iceberg_table import IcebergPlace, ancestors, plain_schema
from millpond.connectors.lake_sink import KIND, LakeSink, LakeTarget
from millpond.schema import Type

_LOOKS_ONCE = {"commit.retry.num-retries": "1", "commit.retry.min-wait-ms": "0"}


class IcebergSink(LakeSink):
    """Results as rows of a table of Iceberg."""

    def __init__(self, target: LakeTarget, place: IcebergPlace) -> None:
        super().__init__(target)
        types = dict(
            zip(
                map(str.lower, target.results.schema.names),
                target.results.schema.types,
                strict=True,
            )
        )
        for each in target.key:
            if types[each.lower()] is Type.DOUBLE:
                raise place.fault(f"column {each} is DOUBLE, and so no key of a table there")
        self._place, self._property = place, f"millpond.{self._run}"

    def _found(self) -> Any:
        return self._place.found()

    def _made(self, columns: pa.Schema) -> Any:
        catalog, name = self._place.opened_catalog, self._place.name
        catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        return catalog.create_table_if_not_exists(name, columns)

    def _columns(self, table: Any) -> pa.Schema:
        return plain_schema(table.schema().as_arrow())

    def _last_page(self, table: Any) -> int | None:
        kept = {each.snapshot_id for each in ancestors(table.metadata)}
        for each in table.metadata.snapshots:
            said = {} if each.summary is None else each.summary.additional_properties
            if self._property in said and each.snapshot_id not in kept:
                raise self._place.fault(
                    f"page {said[self._property]} of results was written, and is not in it: it was "
                    "put back to an earlier snapshot; DROP the query and CREATE it again for an "
                    "empty table"
                )
        last = table.properties.get(self._property)
        return None if last is None else int(last)

    def _is_conflict(self, error: Exception) -> bool:
        return isinstance(error, self._place.part("exceptions").CommitFailedException)

    def _commit(self, results: pa.Table, number: int) -> None:
        self._table.refresh()  # what others have written is no conflict
        last = self._last_page(self._table)
        if last is None or last < number:
            self._write_page(results, {self._property: str(number)})

    def _write_page(self, results: pa.Table, said: dict[str, str]) -> None:
        # as this process sees the table; the catalog has its properties from where it keeps them
        self._table.metadata.properties.update(_LOOKS_ONCE)
        with self._table.transaction() as transaction:
            transaction._rebuild_snapshot_updates = self._refuse_to_repeat
            if self._form.keys:
                rows = self._replaced(transaction, self._form.changes(results), said)
            else:
                rows = self._form.rows(results)
            if rows.num_rows:
                transaction.append(rows, snapshot_properties=said)
            transaction.set_properties(said)

    def _refuse_to_repeat(self) -> None:
        raise self._place.part("exceptions").CommitFailedException("somebody has written meanwhile")

    def _replaced(self, transaction: Any, changes: pa.Table, said: dict[str, str]) -> pa.Table:
        """Takes out the rows of keys; the rows that these have now."""
        which = self._match(changes)
        there = self._table.scan(which, selected_fields=self._form.keys).to_arrow()
        if not self._target.results.is_stream:
            self._check(changes, there)
        if there.num_rows:
            transaction.delete(which, snapshot_properties=said)
        now = changes.filter(pc.greater_equal(changes[KIND], CHANGED))
        return self._form.filled(now)

    def _match(self, changes: pa.Table) -> Any:
        """What holds of the rows of these keys."""
        keys = changes.select(list(self._form.keys))
        return self._place.part("table.upsert_util").create_match_filter(keys, keys.column_names)

    def _check(self, changes: pa.Table, there: pa.Table) -> None:
        """Refuses a table without the rows that results take out or change, or with others."""
        known = changes.filter(pc.less(changes[KIND], NEW))
        wanted, found = self._keys(known), self._keys(there)
        if wanted != found:
            key = next(iter((wanted - found) + (found - wanted)))
            row = ", ".join(f"{n} = {v!r}" for n, v in zip(self._form.keys, key, strict=True))
            raise self._place.fault(
                f"{row} was to be there {wanted[key]} times, and is {found[key]}: somebody else "
                "has changed the table; DROP the query and CREATE it again for an empty table"
            )

    def _keys(self, rows: pa.Table) -> Counter[tuple[Any, ...]]:
        return Counter(zip(*(rows[key].to_pylist() for key in self._form.keys), strict=True))

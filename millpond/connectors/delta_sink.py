"""Tables of Delta Lake as sinks: a page is a version that has its number, as ``txn``."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from millpond.connectors.changed_rows import CHANGED, GONE, NEW
from millpond.connectors.delta_table import DeltaPlace
from millpond.connectors.lake_sink import KIND, LakeSink, LakeTarget

_DONE = {GONE: "deleted", CHANGED: "updated", NEW: "inserted"}


class DeltaSink(LakeSink):
    """Results as rows of a table of Delta Lake."""

    def __init__(self, target: LakeTarget, place: DeltaPlace) -> None:
        super().__init__(target)
        self._place = place

    def _found(self) -> Any:
        return self._place.opened() if self._place.is_there else None

    def _made(self, columns: pa.Schema) -> Any:
        place = self._place
        place.package.DeltaTable.create(place.uri, columns, storage_options=place.storage)
        return place.opened()

    def _columns(self, table: Any) -> pa.Schema:
        return pa.schema(table.schema().to_arrow())

    def _last_page(self, table: Any) -> int | None:
        last: int | None = table.transaction_version(self._run)
        return last

    def _is_conflict(self, error: Exception) -> bool:
        return isinstance(error, self._place.exceptions.CommitFailedError)

    def _commit(self, results: pa.Table, number: int) -> None:
        package = self._place.package
        properties = package.CommitProperties(
            app_transactions=[package.Transaction(self._run, number)]
        )
        if self._form.keys:
            self._table.update_incremental()  # what others have written is no conflict
            self._merge(self._form.changes(results), properties)
        else:
            rows = self._form.rows(results)
            package.write_deltalake(self._table, rows, mode="append", commit_properties=properties)

    def _merge(self, changes: pa.Table, properties: Any) -> None:
        """Has each key the row that it has now."""
        keys, own = self._form.keys, self._form.own
        others = [each for each in own if each not in keys]
        merger = self._table.merge(
            changes,
            predicate=" AND ".join(f"t.{_quoted(each)} = s.{_quoted(each)}" for each in keys),
            source_alias="s",
            target_alias="t",
            commit_properties=properties,
        ).when_matched_delete(f"s.{KIND} = {GONE}")
        if others:
            merger = merger.when_matched_update(_from_source(others), f"s.{KIND} >= {CHANGED}")
        changed = f"s.{KIND} >= {CHANGED}"
        done = merger.when_not_matched_insert(_from_source(own), changed).execute()
        if not self._target.results.is_stream:
            self._check(changes[KIND].to_pylist(), done)

    def _check(self, kinds: list[int], done: dict[str, int]) -> None:
        """Refuses a table that did not have the rows that results have taken out or changed."""
        for kind, name in _DONE.items():
            if done[f"num_target_rows_{name}"] != kinds.count(kind):
                raise self._target.place.fault(
                    f"{kinds.count(kind)} rows were to be {name}, and "
                    f"{done[f'num_target_rows_{name}']} were: somebody else has changed the table; "
                    "DROP the query and CREATE it again for an empty table"
                )


def _from_source(names: Sequence[str]) -> dict[str, str]:
    return {_quoted(each): f"s.{_quoted(each)}" for each in names}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

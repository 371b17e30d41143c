"""Tables of Delta Lake as sinks: the rows of a page and its number are one version.

The number is the version of a transaction of the table's own (``txn``), under a name that each
declaration has for itself. A page whose number is there is passed over, and of two processes that
write one page at once one is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import pyarrow as pa

from millpond.connectors.arrays import inside_table, outside_table, outside_type
from millpond.connectors.changed_rows import (
    CHANGED,
    GONE,
    NEW,
    changes_of_each,
    last_of_each,
    repeated,
)
from millpond.connectors.delta_table import DeltaPlace, words_of
from millpond.connectors.sinks import Results
from millpond.errors import MillpondError
from millpond.schema import Type

TIME, WEIGHT = "millpond_ts", "millpond_weight"
"""Columns of these names get the time of a result in ticks, and its weight."""

KIND = "millpond_change"
"""Says beside a row of a key what becomes of it."""

TRIES = 5
"""So often a page is written while others write the table at the same moment."""

_DONE = {GONE: "deleted", CHANGED: "updated", NEW: "inserted"}
_UTC = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class DeltaTarget:
    """The table that results go to, and the columns that they have there."""

    results: Results
    place: DeltaPlace
    key: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [name.lower() for name in self.results.schema.names]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise self.place.fault(f"the query has two columns {twice[0]}; give one another name")
        for each in self.key:
            if each.lower() not in names:
                known = ", ".join(self.results.schema.names)
                raise self.place.fault(f"no column {each} for the key; columns: {known}")
            if self.results.schema.types[names.index(each.lower())].is_array:
                raise self.place.fault(f"column {each} is an ARRAY, and so no key of a table there")

    @cached_property
    def usual(self) -> pa.Schema:
        """The columns of a table that is made for the results."""
        fields = []
        for each in self.results.schema.fields:
            if each.type is Type.NULL:
                raise self.place.fault(f"column {each.name} is NULL always; CAST it in the query")
            is_time = each.type is Type.TIMESTAMP
            fields.append(pa.field(each.name, _UTC if is_time else outside_type(each.type)))
        if not (self.key or self.results.is_stream):
            fields += [pa.field(TIME, pa.int64()), pa.field(WEIGHT, pa.int64())]
        return pa.schema(fields)

    def form(self, there: pa.Schema) -> DeltaForm:
        """How results come into a table with these columns; refused if they cannot."""
        at = {name.lower(): name for name in reversed(there.names)}
        for field in self.usual:
            name = at.get(field.name.lower())
            if name is None and field.name == WEIGHT:
                raise self.place.fault(
                    "the answer is a relation, whose rows come and go: name its key by "
                    f"key = 'column, …', or have a column {WEIGHT} BIGINT that says which of both"
                )
            if name is None and field.name != TIME:
                known = ", ".join(there.names)
                raise self.place.fault(
                    f"no column {field.name}; columns there: {known}; add it, or rename it by AS"
                )
            if name is not None and not _takes(there.field(name).type, field.type):
                raise self.place.fault(
                    f"column {name} is {there.field(name).type} there, and {field.type} in the "
                    "query; CAST it in the query"
                )
        keys = tuple(at[each.lower()] for each in self.key)
        return DeltaForm(self, there, keys)


@dataclass(frozen=True)
class DeltaForm:
    """Makes rows of a table of results."""

    target: DeltaTarget
    there: pa.Schema
    keys: tuple[str, ...]

    @cached_property
    def _own(self) -> list[str]:
        """The columns of the table for those of the query."""
        at = {name.lower(): name for name in reversed(self.there.names)}
        return [at[name.lower()] for name in self.target.results.schema.names]

    def rows(self, results: pa.Table) -> pa.Table:
        """The rows to add."""
        own = dict(zip(self._own, results.columns[2:], strict=True))
        beside = {TIME: results.column(0), WEIGHT: results.column(1)}
        rows = self._all({**beside, **own}, results.num_rows)
        if WEIGHT in self.there.names and WEIGHT not in own:
            return rows
        return repeated(rows, results.column(1))

    def _all(self, columns: dict[str, Any], count: int) -> pa.Table:
        """All columns of the table; those that nobody gives are NULL."""
        arrays = [
            columns[each.name].cast(each.type)
            if each.name in columns
            else pa.nulls(count, each.type)
            for each in self.there
        ]
        return pa.table(arrays, schema=self.there)

    def changes(self, results: pa.Table) -> pa.Table:
        """The rows of keys, and beside each what becomes of it."""
        keys, fault = list(self.keys), self.target.place.fault
        own = inside_table(pa.table(results.columns[2:], self._own))  # which can be told apart
        if self.target.results.is_stream:
            rows = last_of_each(own, keys, fault)
            kinds = pa.repeat(CHANGED, rows.num_rows)
        else:
            rows, kinds = changes_of_each(own, results.column(1), keys, fault)
        rows = outside_table(rows, self.target.results.schema.types)
        cast = [rows[name].cast(self.there.field(name).type) for name in self._own]
        return pa.table([*cast, kinds], [*self._own, KIND])

    def merge(self, table: Any, changes: pa.Table, properties: Any) -> None:
        """Has each key the row that it has now."""
        others = [each for each in self._own if each not in self.keys]
        merger = table.merge(
            changes,
            predicate=" AND ".join(f"t.{_quoted(each)} = s.{_quoted(each)}" for each in self.keys),
            source_alias="s",
            target_alias="t",
            commit_properties=properties,
        ).when_matched_delete(f"s.{KIND} = {GONE}")
        if others:
            merger = merger.when_matched_update(_from_source(others), f"s.{KIND} >= {CHANGED}")
        changed = f"s.{KIND} >= {CHANGED}"
        done = merger.when_not_matched_insert(_from_source(self._own), changed).execute()
        if not self.target.results.is_stream:
            self._check(changes[KIND].to_pylist(), done)

    def _check(self, kinds: list[int], done: dict[str, int]) -> None:
        """Refuses a table that did not have the rows that results have taken out or changed."""
        for kind, name in _DONE.items():
            if done[f"num_target_rows_{name}"] != kinds.count(kind):
                raise self.target.place.fault(
                    f"{kinds.count(kind)} rows were to be {name}, and "
                    f"{done[f'num_target_rows_{name}']} were: somebody else has changed the table; "
                    "DROP the query and CREATE it again for an empty table"
                )


class DeltaSink:
    """Results as rows of a table, which is made if there is none.

    After each fault the table is opened anew: then its log says whether the page is there.
    """

    def __init__(self, target: DeltaTarget) -> None:
        self._target, self._place = target, target.place
        run, pages = target.results.resume or (uuid4().hex, 0)
        self._run, self._next = str(run), int(pages)
        self._table: Any = None

    def mark(self) -> list[str | int]:
        """What tells this declaration from others, and the number of the next page."""
        return [self._run, self._next]

    def write(self, table: pa.Table) -> None:
        """Adds results as the next page."""
        self.write_numbered(table, self._next)

    def write_numbered(self, table: pa.Table, number: int) -> None:
        """Adds the results of a page, unless they are there."""
        tries = 0
        while number >= self._next:
            try:
                self._write(table, number)
            except MillpondError:
                self._table = None
                raise
            except Exception as error:
                self._table, tries = None, tries + 1
                is_conflict = isinstance(error, self._place.exceptions.CommitFailedError)
                if not is_conflict or tries == TRIES:
                    raise self._place.fault(
                        f"{words_of(error)}; see that it can be written, then "
                        f"ALTER QUERY {self._target.results.query} ACTIVATE"
                    ) from error

    def _write(self, table: pa.Table, number: int) -> None:
        if self._table is None:
            self._table = self._opened()
        if number >= self._next:
            self._commit(table, number)
            self._next = number + 1

    def _opened(self) -> Any:
        """The table with its rows, and the number of the first page that is not there."""
        place = self._place
        if not place.is_there:
            if self._next:
                raise place.fault("it is gone, and had results; DROP the query and CREATE it again")
            place.package.DeltaTable.create(
                place.uri, self._target.usual, storage_options=place.storage
            )
        table = place.opened()
        self._form = self._target.form(pa.schema(table.schema().to_arrow()))
        last = table.transaction_version(self._run)
        pages = 0 if last is None else last + 1
        if pages < self._next:
            raise place.fault(
                f"{self._next} pages of results were written, and its log has {pages} of them: it "
                "was put back to an earlier version, or made anew; DROP the query and CREATE it "
                "again for an empty table"
            )
        self._next = pages
        return table

    def _commit(self, results: pa.Table, number: int) -> None:
        package = self._place.package
        properties = package.CommitProperties(
            app_transactions=[package.Transaction(self._run, number)]
        )
        if self._form.keys:
            self._table.update_incremental()  # what others have written is no conflict
            self._form.merge(self._table, self._form.changes(results), properties)
        else:
            rows = self._form.rows(results)
            package.write_deltalake(self._table, rows, mode="append", commit_properties=properties)

    def close(self) -> None:
        """All that was written is there."""
        self._table = None


def _takes(there: pa.DataType, given: pa.DataType) -> bool:
    """Whether a column of the table has all values of one of the query."""
    if pa.types.is_decimal(there) and pa.types.is_decimal(given):
        return bool(there.scale == given.scale and there.precision >= given.precision)
    if pa.types.is_timestamp(there) and pa.types.is_timestamp(given):
        return True
    return bool(there == given or (there == pa.int64() and given == pa.int32()))


def _from_source(names: Sequence[str]) -> dict[str, str]:
    return {_quoted(each): f"s.{_quoted(each)}" for each in names}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

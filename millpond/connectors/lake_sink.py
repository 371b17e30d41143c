"""Tables of a lake as sinks: the rows of a page and its number are one version.

The number is there under a name that each declaration has for itself. A page whose number is there
is passed over, and of two processes that write one page at once one is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import pyarrow as pa

from millpond.connectors.changed_rows import (
    CHANGED,
    changes_of_each,
    last_of_each,
    repeated,
)
from millpond.connectors.lake import LakePlace, words_of
from millpond.connectors.nested import inside_table, outside_table, outside_type
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results
from millpond.errors import MillpondError
from millpond.schema import Type

TIME, WEIGHT = "millpond_ts", "millpond_weight"
"""Columns of these names get the time of a result in ticks, and its weight."""

KIND = "millpond_change"
"""Says beside a row of a key what becomes of it."""

TRIES = 5
"""So often a page is written while others write the table at the same moment."""

_UTC = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class LakeTarget:
    """The table that results go to, and the columns that they have there."""

    results: Results
    place: LakePlace
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
            type_ = self.results.schema.types[names.index(each.lower())]
            if type_.is_nested:
                raise self.place.fault(f"column {each} is {type_}, and so no key of a table there")

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

    def form(self, there: pa.Schema) -> LakeForm:
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
        return LakeForm(self, there, keys)


@dataclass(frozen=True)
class LakeForm:
    """Makes rows of a table of results."""

    target: LakeTarget
    there: pa.Schema
    keys: tuple[str, ...]

    @cached_property
    def own(self) -> list[str]:
        """The columns of the table for those of the query."""
        at = {name.lower(): name for name in reversed(self.there.names)}
        return [at[name.lower()] for name in self.target.results.schema.names]

    def rows(self, results: pa.Table) -> pa.Table:
        """The rows to add."""
        own = dict(zip(self.own, results.columns[2:], strict=True))
        beside = {TIME: results.column(0), WEIGHT: results.column(1)}
        rows = self._all({**beside, **own}, results.num_rows)
        if WEIGHT in self.there.names and WEIGHT not in own:
            return rows
        return repeated(rows, results.column(1))

    def filled(self, rows: pa.Table) -> pa.Table:
        """Rows with all columns of the table."""
        return self._all({name: rows[name] for name in self.own}, rows.num_rows)

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
        own = inside_table(pa.table(results.columns[2:], self.own))  # which can be told apart
        if self.target.results.is_stream:
            rows = last_of_each(own, keys, fault)
            kinds = pa.repeat(CHANGED, rows.num_rows)
        else:
            rows, kinds = changes_of_each(own, results.column(1), keys, fault)
        rows = outside_table(rows, self.target.results.schema.types)
        cast = [rows[name].cast(self.there.field(name).type) for name in self.own]
        return pa.table([*cast, kinds], [*self.own, KIND])


class LakeSink(ABC):
    """Results as rows of a table, which is made if there is none.

    After each fault the table is opened anew: then it says whether the page is there.
    """

    is_remote = True

    def __init__(self, target: LakeTarget) -> None:
        self._target = target
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
                if not self._is_conflict(error) or tries == TRIES:
                    raise self._target.place.fault(
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
        place = self._target.place
        table = self._found()
        if table is None:
            if self._next:
                raise place.fault("it is gone, and had results; DROP the query and CREATE it again")
            table = self._made(self._target.usual)
        self._form = self._target.form(self._columns(table))
        last = self._last_page(table)
        pages = 0 if last is None else last + 1
        if pages < self._next:
            raise place.fault(
                f"{self._next} pages of results were written, and its log has {pages} of them: it "
                "was put back to an earlier version, or made anew; DROP the query and CREATE it "
                "again for an empty table"
            )
        self._next = pages
        return table

    def close(self) -> None:
        """All that was written is there."""
        self._table = None

    @abstractmethod
    def _found(self) -> Any:
        """The table, if it is there."""

    @abstractmethod
    def _made(self, columns: pa.Schema) -> Any:
        """The table, which has been made."""

    @abstractmethod
    def _columns(self, table: Any) -> pa.Schema:
        """The columns of the table."""

    @abstractmethod
    def _last_page(self, table: Any) -> int | None:
        """The number of the last page that is there."""

    @abstractmethod
    def _commit(self, results: pa.Table, number: int) -> None:
        """Adds the results of a page and its number, at once."""

    @abstractmethod
    def _is_conflict(self, error: Exception) -> bool:
        """Whether somebody else has written the table at the same moment."""


def named_columns(given: str | Secret) -> tuple[str, ...]:
    """The columns of a key."""
    return tuple(each.strip() for each in str(revealed(given)).split(",")) if given else ()


def _takes(there: pa.DataType, given: pa.DataType) -> bool:
    """Whether a column of the table has all values of one of the query."""
    if pa.types.is_decimal(there) and pa.types.is_decimal(given):
        return bool(there.scale == given.scale and there.precision >= given.precision)
    if pa.types.is_timestamp(there) and pa.types.is_timestamp(given):
        return True
    return bool(there == given or (there == pa.int64() and given == pa.int32()))

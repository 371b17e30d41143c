"""The queries of a group: the constants of each, as steps see them.

Whoever executes a step takes what there is at that moment, whole; a query that comes or goes makes
another table for the steps to come.
"""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.expressions import Literal
from millpond.kernels.columns import integers
from millpond.kernels.matching import QUERY, Constants, Matcher, Matching, since_column
from millpond.planning.nodes import Constant, InList
from millpond.storage.store import Store

OLD_FILES = 16
"""So many files of earlier moments are kept, for tasks that are still to read them."""


class Members:
    """The constants of some queries, by the queries' numbers."""

    def __init__(self, like: Sequence[Constant], streams: Sequence[str]) -> None:
        """Members with constants like these."""
        fields = [pa.field(QUERY, pa.int64())]
        fields += [pa.field(f"k{i}", _arrow_type(each)) for i, each in enumerate(like)]
        fields += [pa.field(since_column(stream), pa.int64()) for stream in streams]
        self._schema = pa.schema(fields)
        self._streams = tuple(streams)
        self.like = tuple(like)
        self._table = self._schema.empty_table()
        self._coming: list[dict[str, object]] = []
        self._going: list[int] = []
        self._constants = Constants(self._table)
        self._matchers: dict[Matching, Matcher] = {}
        self._file: str | None = None
        self._old_files: deque[str] = deque()
        self._guard = threading.Lock()

    def add(self, number: int, constants: Sequence[Constant], since: Mapping[str, int]) -> None:
        """A query, and after which times it sees the streams of a late group."""
        row: dict[str, object] = {QUERY: number}
        row |= {f"k{i}": _value(each) for i, each in enumerate(constants)}
        row |= {since_column(stream): since[stream] for stream in self._streams}
        with self._guard:
            self._coming.append(row)

    def remove(self, number: int) -> None:
        """A query is no more."""
        with self._guard:
            self._going.append(number)

    def told(self, number: int) -> str:
        """The constants of a query, as people read them."""
        with self._guard:
            table = self._now().table
        (row,) = table.filter(pc.equal(table[QUERY], number)).to_pylist()
        del row[QUERY]
        columns = [*(f"?{i + 1} =" for i in range(len(row) - len(self._streams)))]
        columns += [f"{stream} after" for stream in self._streams]
        pairs = zip(columns, row.values(), strict=True)
        return ", ".join(f"{name} {_told(value)}" for name, value in pairs)

    def constants(self) -> dict[int, tuple[Constant, ...]]:
        """The constants of each query."""
        with self._guard:
            table = self._now().table
        columns = [table[f"k{place}"].to_pylist() for place in range(len(self.like))]
        rows = zip(*columns, strict=True) if columns else ((),) * table.num_rows
        numbers = table[QUERY].to_pylist()
        return {n: self._row(values) for n, values in zip(numbers, rows, strict=True)}

    def _row(self, values: Sequence[Any]) -> tuple[Constant, ...]:
        return tuple(
            InList(tuple(value), like.type)
            if isinstance(like, InList)
            else Literal(value, like.type)
            for value, like in zip(values, self.like, strict=True)
        )

    def matcher(self, matching: Matching) -> Matcher:
        """A matching with the constants of this moment."""
        with self._guard:
            constants = self._now()
            if matching not in self._matchers:
                self._matchers[matching] = Matcher(matching, constants)
            return self._matchers[matching]

    def file(self, store: Store) -> str:
        """The file with the constants of this moment, for steps on the executors."""
        with self._guard:
            constants = self._now()
            if self._file is None:
                name = store.new_name("slots", ".constants.parquet")
                store.write(constants.table, name)
                self._file = name
                self._old_files.append(name)
                while len(self._old_files) > OLD_FILES:
                    store.remove((self._old_files.popleft(),))
            return self._file

    def close(self, store: Store) -> None:
        """Nobody needs the constants any more."""
        store.remove(tuple(self._old_files))

    def _now(self) -> Constants:
        if not self._coming and not self._going:
            return self._constants
        if self._coming:
            coming = pa.Table.from_pylist(self._coming, self._schema)
            self._table = pa.concat_tables([self._table, coming]).sort_by(QUERY)
        if self._going:
            stays = ~np.isin(integers(self._table[QUERY]), self._going)
            self._table = self._table.filter(pa.array(stays)).combine_chunks()
        self._coming, self._going = [], []
        self._constants = Constants(self._table)
        self._matchers, self._file = {}, None
        return self._constants


def _arrow_type(constant: Constant) -> pa.DataType:
    type_ = ARROW_TYPES[constant.type]
    return pa.list_(type_) if isinstance(constant, InList) else type_


def _value(constant: Constant) -> object:
    return list(constant.values) if isinstance(constant, InList) else constant.value


def _told(value: object) -> str:
    """A constant as people read it, and of several each."""
    if not isinstance(value, list):
        return str(value)
    told = ", ".join(map(str, value))
    return told if len(value) == 1 else f"({told})"

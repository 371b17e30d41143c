"""PRIMARY KEY of relations: at the end of an instant there is one row for each key.

Changes come in any order within an instant; who is there twice in between is no matter. Where a
key says ON CONFLICT REPLACE, a row takes the place of the one that has its key, and a change of
weight 0 takes away whatever has its key.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.catalog import RelationEntry
from millpond.connectors import arrow_schema
from millpond.connectors.nested import outside_table
from millpond.connectors.python_values import python_values
from millpond.errors import InputError
from millpond.kernels.groups import Ints
from millpond.schema import BEGINNING

Row: TypeAlias = tuple[Any, ...]
Bags: TypeAlias = Mapping[Hashable, tuple[Row, ...]]
"""The rows that have a key, by the key."""

NAN = float("nan")
"""All that is no number is one value here."""

_RAW = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}
"""Types that Python holds only in part, and what they are made of."""


@dataclass(frozen=True)
class Changes:
    """Rows that come (weight 1) or go (weight -1) at times; keys of which all goes (weight 0)."""

    rows: pa.Table
    times: Ints
    weights: Ints


class KeyedRows:
    """The rows of a relation by their keys, after all changes so far."""

    def __init__(self, entry: RelationEntry) -> None:
        self._entry, self._schema = entry, arrow_schema(entry.schema)
        self._rows: dict[Hashable, tuple[Row, ...]] = {}
        self._crowded: dict[Hashable, None] = {}
        """The keys of several rows; there are some only while an instant goes on."""

    def put(self, bags: Bags) -> None:
        """These are the rows of some keys from now on."""
        for key, rows in bags.items():
            if rows:
                self._rows[key] = rows
            else:
                self._rows.pop(key, None)
            if len(rows) > 1:
                self._crowded[key] = None
            else:
                self._crowded.pop(key, None)

    def fill(self, rows: pa.Table, weights: Sequence[int]) -> None:
        """Has what a relation holds, of which nothing is known yet."""
        found: dict[Hashable, list[Row]] = {}
        for row, weight in zip(_rows(rows), weights, strict=True):
            found.setdefault(self._key(row), []).extend([row] * weight)
        self.put({key: tuple(each) for key, each in found.items()})

    def refuse_crowded(self, time: int) -> None:
        """Refuses that an instant ends in which a key has several rows."""
        for key in self._crowded:
            raise self._conflict(self._rows[key], time)

    def changed(self, changes: Changes, last: int, is_over: bool) -> tuple[Changes, Bags]:
        """What becomes of changes that come after ``last``, and the rows of the keys they touch;
        ``is_over``: the last instant ends with them."""
        doing = _Doing(self._rows, self._crowded, last, self._entry.on_conflict == "replace")
        try:
            for row, time, weight in self._in_order(changes):
                doing.change(self._key(row), row, time, weight)
            if is_over:
                doing.end()
        except _ConflictError as conflict:
            raise self._conflict(conflict.rows, conflict.time) from None
        except _MissingError as missing:
            raise InputError(
                f"relation {self._entry.name}: {_at(missing.time)} a row is removed that is not "
                f"there: {self._told(missing.row)}"
            ) from None
        return (self._table(doing.done) if doing.is_other else changes), doing.bags

    def _in_order(self, changes: Changes) -> Iterator[tuple[Row, int, int]]:
        """The changes in order of time, those of an instant as they came."""
        order = np.argsort(changes.times, kind="stable")
        rows, times, weights = _rows(changes.rows), changes.times, changes.weights
        for at in order.tolist():
            yield rows[at], int(times[at]), int(weights[at])

    def _key(self, row: Row) -> Hashable:
        key = self._entry.key
        return row[key[0]] if len(key) == 1 else tuple(row[position] for position in key)

    def _table(self, done: Sequence[tuple[Row, int, int]]) -> Changes:
        rows, times, weights = zip(*done, strict=True) if done else ((), (), ())
        return Changes(
            table_of(rows, self._schema), np.array(times, np.int64), np.array(weights, np.int64)
        )

    def _told(self, row: Row) -> Row:
        """A row as people read it."""
        table = outside_table(table_of([row], self._schema), self._entry.schema.types)
        return tuple(python_values(c)[0] for c in table.columns)

    def _conflict(self, rows: Sequence[Row], time: int) -> InputError:
        return conflict(self._entry, [self._told(row) for row in rows[:2]], time)


def table_of(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """The table of some rows."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [
        pa.array(column, _RAW.get(field.type, field.type)).cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _rows(table: pa.Table) -> list[Row]:
    """The rows of a table as tuples that are equal if they are the same row."""
    columns = [_values(column) for column in table.columns]
    return list(zip(*columns, strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.cast(_RAW.get(column.type, column.type)).to_pylist()
    if pa.types.is_floating(column.type):
        return [NAN if value != value else value for value in values]
    return values


def conflict(entry: RelationEntry, rows: Sequence[Row], time: int) -> InputError:
    """The error of two rows with one key."""
    key = ", ".join(f"{entry.schema[p].name} = {rows[0][p]!r}" for p in entry.key)
    first, second = rows
    return InputError(
        f"relation {entry.name}: {_at(time)} there are two rows with the key {key}: {first} and "
        f"{second}; remove one at that time, or declare the PRIMARY KEY with ON CONFLICT REPLACE "
        "(the later row stays) or NOT ENFORCED (both do)"
    )


def _at(time: int) -> str:
    return "at the beginning" if time <= BEGINNING else f"at {time}"


class _ConflictError(Exception):
    """An instant ends in which a key has several rows."""

    def __init__(self, rows: Sequence[Row], time: int) -> None:
        self.rows, self.time = rows, time


class _MissingError(Exception):
    """A row goes that is not there."""

    def __init__(self, row: Row, time: int) -> None:
        self.row, self.time = row, time


class _Doing:
    """Does changes one after the other, beside what is held."""

    def __init__(
        self, held: Bags, crowded: Mapping[Hashable, None], now: int, replaces: bool
    ) -> None:
        self._held, self._now, self._replaces = held, now, replaces
        self._crowded = dict(crowded)
        self.bags: dict[Hashable, tuple[Row, ...]] = {}
        self.done: list[tuple[Row, int, int]] = []
        self.is_other = False
        """Whether something else was done than what was said."""

    def change(self, key: Hashable, row: Row, time: int, weight: int) -> None:
        """A row comes or goes."""
        if time != self._now:
            self.end()
            self._now = time
        bag = self.bags[key] if key in self.bags else self._held.get(key, ())
        if weight == 0:
            bag = self._emptied(bag)
        elif weight < 0:
            bag = self._removed(bag, row)
        elif self._replaces:
            bag = self._replaced(bag, row)
        else:
            bag = (*bag, row)
            self.done.append((row, time, 1))
        self._keep(key, bag)

    def end(self) -> None:
        """The instant is over."""
        for key in self._crowded:
            raise _ConflictError(self.bags.get(key) or self._held[key], self._now)

    def _removed(self, bag: tuple[Row, ...], row: Row) -> tuple[Row, ...]:
        if row not in bag:
            raise _MissingError(row, self._now)
        self.done.append((row, self._now, -1))
        at = bag.index(row)
        return bag[:at] + bag[at + 1 :]

    def _emptied(self, bag: tuple[Row, ...]) -> tuple[Row, ...]:
        """What is there goes, if anything is."""
        self.is_other = True
        self.done += [(old, self._now, -1) for old in bag]
        return ()

    def _replaced(self, bag: tuple[Row, ...], row: Row) -> tuple[Row, ...]:
        """A row takes the place of what is there; one that is there stays."""
        if bag:
            self.is_other = True
        if bag != (row,):
            self.done += [(old, self._now, -1) for old in bag]
            self.done.append((row, self._now, 1))
        return (row,)

    def _keep(self, key: Hashable, bag: tuple[Row, ...]) -> None:
        self.bags[key] = bag
        if len(bag) > 1:
            self._crowded[key] = None
        else:
            self._crowded.pop(key, None)


# -- the first rows of a relation ------------------------------------------------------------


def can_be_first(entry: RelationEntry) -> bool:
    """Whether the first rows of a relation are told apart without being held one by one: numbers
    that are equal and written otherwise (0.0 and -0.0) are not."""
    types = [arrow_schema(entry.schema).field(position).type for position in entry.key]
    return not entry.has_changes and not any(map(pa.types.is_floating, types))


def first_rows(entry: RelationEntry, rows: pa.Table, time: int) -> pa.Table:
    """The first rows of a relation, one for each key: the last one, where that replaces others."""
    names = [f"k{place}" for place in range(len(entry.key))]
    columns = [rows.column(position) for position in entry.key]
    numbers = pa.array(np.arange(rows.num_rows))
    keys = pa.table([*columns, numbers], names=[*names, "n"])
    groups = keys.group_by(names, use_threads=False).aggregate([("n", "min"), ("n", "max")])
    if groups.num_rows == rows.num_rows:
        return rows
    if entry.on_conflict == "replace":
        return rows.take(pa.array(np.sort(np.asarray(groups["n_max"]))))
    several = groups.filter(pc.not_equal(groups["n_min"], groups["n_max"]))
    first = several.take([pc.index(several["n_min"], pc.min(several["n_min"])).as_py()])
    pair = rows.take([first["n_min"][0].as_py(), first["n_max"][0].as_py()])
    told = [python_values(column) for column in pair.columns]
    raise conflict(entry, list(zip(*told, strict=True)), time)

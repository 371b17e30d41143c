"""Which rows of a state can go, as nothing that is still to come can reach them.

A stream says of the values of a column which of them are *over*: none that begins later has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.columns import integers, is_bytes
from millpond.kernels.groups import Bools, Ints
from millpond.kernels.runs import Run
from millpond.storage.closed import ClosedKeys


@dataclass(frozen=True)
class Over:
    """Which values of a column are over: those below ``least`` (None: all), unless they are not
    above ``above``."""

    least: int | None
    above: int | None = None

    def of(self, values: pa.ChunkedArray) -> Bools:
        """Which of some values are over; nothing is known of a NULL."""
        known = np.asarray(values.is_valid()).astype(np.bool_)
        numbers = values.cast(pa.int32()) if values.type == pa.date32() else values
        filled = integers(pc.fill_null(numbers.cast(pa.int64()), 0))
        if self.least is not None:
            known &= filled < self.least
        return known if self.above is None else known & (filled > self.above)


@dataclass(frozen=True, eq=False)
class Closed:
    """Values that are over, one by one; dates and times as numbers."""

    listed: pa.Array

    def of(self, values: pa.ChunkedArray) -> Bools:
        """Which of some values are over; nothing is known of a NULL."""
        if is_bytes(values.type):
            return np.asarray(pc.is_in(values, value_set=self.listed)).astype(np.bool_)
        known = np.asarray(values.is_valid()).astype(np.bool_)
        numbers = values.cast(pa.int32()) if values.type == pa.date32() else values
        wanted = integers(pc.fill_null(numbers.cast(pa.int64()), 0))
        at = np.minimum(self._in_order.searchsorted(wanted), len(self._in_order) - 1)
        return np.asarray(known & (self._in_order[at] == wanted))

    @cached_property
    def _in_order(self) -> Ints:
        """Numbers in order: of a step's buckets each looks for them."""
        return np.sort(np.asarray(self.listed, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Free:
    """Rows whose value of a column is over in all streams that it may come from; of each one or
    another thing may be known."""

    column: str
    overs: tuple[tuple[Over | Closed, ...], ...]

    @property
    def sweeps(self) -> bool:
        """Whether all rows of a state are to be looked at now, as this is soon forgotten."""
        return any(isinstance(each, Closed) for known in self.overs for each in known)

    def of(self, rows: pa.Table) -> Bools:
        """Which rows can go."""
        gone = np.ones(rows.num_rows, dtype=np.bool_)
        for known in self.overs:
            gone &= np.logical_or.reduce([each.of(rows[self.column]) for each in known])
        return gone


@dataclass(frozen=True, eq=False)
class Met:
    """Rows of a side of a join that have met the only row of the other side they can meet: one of
    some ``runs`` has their keys, and its time is over."""

    runs: tuple[Run, ...]
    keys: tuple[str, ...]
    over: Over

    def of(self, rows: pa.Table) -> Bools:
        """Which rows can go."""
        own = Run.of(rows)
        found = np.zeros(rows.num_rows, dtype=np.bool_)
        for run in self.runs:
            found |= self._found_in(run, own)
        return found

    def _found_in(self, run: Run, own: Run) -> Bools:
        met = np.zeros(len(own.hashes), dtype=np.bool_)
        is_over = self.over.of(pa.chunked_array([pa.array(run.start)]))
        first = np.searchsorted(run.hashes, own.hashes, "left")
        end = np.searchsorted(run.hashes, own.hashes, "right")
        looking = np.flatnonzero(first < end)
        while len(looking):
            at = first[looking]
            same = is_over[at] & _same(own.table, looking, run.table, at, self.keys)
            met[looking[same]] = True
            first[looking] += 1
            looking = looking[~same & (first[looking] < end[looking])]
        return met


def _same(
    one: pa.Table,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    other: pa.Table,
    others: np.ndarray[tuple[int], np.dtype[np.int64]],
    keys: Sequence[str],
) -> Bools:
    """Whether rows of two tables have the same keys."""
    equal = np.ones(len(rows), dtype=np.bool_)
    for key in keys:
        pairs = one[key].take(pa.array(rows)), other[key].take(pa.array(others))
        equal &= np.asarray(pc.fill_null(pc.equal(*pairs), False)).astype(np.bool_)
    return equal


Frees: TypeAlias = tuple[Free | Met | ClosedKeys, ...]
"""Rows go that one of these says can."""


def sweeps(frees: Frees) -> bool:
    """Whether all rows of a state are to be looked at now."""
    return any(isinstance(each, Free) and each.sweeps for each in frees)


def in_columns(frees: Frees, names: Mapping[str, str]) -> Frees:
    """The same of rows that have the values in other columns."""
    return tuple(
        replace(each, column=names[each.column]) if isinstance(each, Free) else each.renamed(names)
        for each in frees
        if not isinstance(each, Met)
    )


def needed(rows: pa.Table, frees: Frees) -> pa.Table:
    """The rows that are still needed."""
    if not frees or rows.num_rows == 0:
        return rows
    gone = np.logical_or.reduce([each.of(rows) for each in frees])
    return rows.filter(pa.array(~gone)) if gone.any() else rows

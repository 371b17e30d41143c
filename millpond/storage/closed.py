"""Keys that are closed: by punctuations nothing that is still to come has them.

What is new comes by one of several *ways*, each from a stream; a key is closed if on every one of
them a pattern of the stream matches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.cql.patterns import Values
from millpond.kernels.columns import integers_of, mask_of
from millpond.kernels.groups import Bools, Ints

KeyPattern: TypeAlias = tuple[tuple[str, Values], ...]
"""The values of some key columns; with none, all keys match."""


@dataclass(frozen=True)
class ClosedKeys:
    """For each way the patterns of keys that do not come by it any more."""

    ways: tuple[tuple[KeyPattern, ...], ...]

    def renamed(self, names: Mapping[str, str]) -> ClosedKeys:
        """The same of rows that have the keys in other columns."""
        return ClosedKeys(
            tuple(
                tuple(tuple((names[key], v) for key, v in pattern) for pattern in patterns)
                for patterns in self.ways
            )
        )

    def of(self, rows: pa.Table) -> Bools:
        """Which rows have keys that are closed."""
        found = (_matches_any(rows, patterns) for patterns in self.ways)
        return reduce(np.logical_and, found, np.ones(rows.num_rows, dtype=np.bool_))


def _matches_any(rows: pa.Table, patterns: Sequence[KeyPattern]) -> Bools:
    found = np.zeros(rows.num_rows, dtype=np.bool_)
    for pattern in patterns:
        found |= matches(rows, pattern)
    return found


def matches(rows: pa.Table, pattern: Sequence[tuple[str | int, Values]]) -> Bools:
    """Which rows have in all columns of a pattern one of its values; a NULL is none."""
    found = np.ones(rows.num_rows, dtype=np.bool_)
    for column, values in pattern:
        found &= _are_among(rows.column(column), values)
    return found


def _are_among(column: pa.ChunkedArray, values: Values) -> Bools:
    """Which rows of a column have one of some values."""
    if pa.types.is_string(column.type):
        return np.asarray(pc.is_in(column, value_set=_texts(values))).astype(np.bool_)
    starts, ends = _ends(values)
    if not len(starts):
        return np.zeros(len(column), dtype=np.bool_)
    numbers = column.cast(pa.int32()) if column.type == pa.date32() else column
    found = integers_of(numbers)[:-1]
    before = np.searchsorted(starts, found, "right") - 1
    is_in = (before >= 0) & (found <= ends[np.maximum(before, 0)])
    return np.asarray(is_in & mask_of(column)[:-1])


@lru_cache(maxsize=64)
def _ends(values: Values) -> tuple[Ints, Ints]:
    ends = np.array(values.ranges, dtype=np.int64).reshape(-1, 2)
    return ends[:, 0].copy(), ends[:, 1].copy()


@lru_cache(maxsize=64)
def _texts(values: Values) -> pa.Array:
    return pa.array(values.texts, pa.string())

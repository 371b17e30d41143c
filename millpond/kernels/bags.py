"""Values kept a group: as list columns of the state, flattened for computing.

A bag holds, for each group, values with one number each: how often the value is there, or until
when. Minimum, maximum, percentile and distinct aggregates keep bags.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.kernels.columns import with_first
from millpond.kernels.groups import Ints
from millpond.kernels.timeline import order_of


@dataclass(frozen=True)
class Bag:
    """Group, value and number of each member."""

    code: Ints
    values: pa.ChunkedArray
    number: Ints

    @staticmethod
    def empty(type_: pa.DataType) -> Bag:
        """A bag without members."""
        none = np.zeros(0, dtype=np.int64)
        return Bag(none, pa.chunked_array([], type_), none)

    @staticmethod
    def of_lists(codes: Ints, values: pa.ChunkedArray, numbers: pa.ChunkedArray) -> Bag:
        """Reads the list columns of state rows; ``codes`` are the groups of those rows."""
        values, numbers = values.combine_chunks(), numbers.combine_chunks()
        lengths = np.asarray(numbers.value_lengths().fill_null(0)).astype(np.int64)
        flat = values.flatten()
        number = np.asarray(numbers.flatten()).astype(np.int64)
        return Bag(np.repeat(codes, lengths), pa.chunked_array([flat]), number)

    def plus(self, code: Ints, values: pa.ChunkedArray, number: Ints) -> Bag:
        """The bag with more members."""
        merged = pa.chunked_array([*self.values.chunks, *values.chunks], self.values.type)
        return Bag(np.concatenate([self.code, code]), merged, np.concatenate([self.number, number]))

    def take(self, members: Ints) -> Bag:
        """Some members only."""
        return Bag(self.code[members], self.values.take(pa.array(members)), self.number[members])

    def to_lists(self, groups: Ints) -> tuple[pa.Array, pa.Array]:
        """The list columns for these groups, in their order."""
        rank = np.full(int(max(groups.max(initial=-1), self.code.max(initial=-1))) + 1, -1)
        rank[groups] = np.arange(len(groups))
        place = rank[self.code]
        order = order_of(place, np.zeros(len(place), dtype=np.int64))
        order = order[place[order] >= 0]
        counts = np.bincount(place[order], minlength=len(groups))
        offsets = pa.array(with_first(0, np.cumsum(counts)).astype(np.int32))
        values = self.values.take(pa.array(order))
        flat = values.combine_chunks()
        if isinstance(flat, pa.ChunkedArray):
            flat = pa.concat_arrays(flat.chunks) if flat.num_chunks else pa.array([], flat.type)
        numbers = pa.array(self.number[order])
        return pa.ListArray.from_arrays(offsets, flat), pa.ListArray.from_arrays(offsets, numbers)

"""The inner join of two relations, by keys: a step probes with its new elements, nothing else.

New left with old and new right, old left with new right. Two elements meet from the later start to
the earlier end, with the product of their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.aggregate import element_schema
from millpond.kernels.groups import Bools, Ints
from millpond.kernels.runs import Run, RunIndex, as_run, run_schema

PAIRS = 1_000_000
"""So many pairs are looked at in one go; a join without keys may have many more."""

MANY_PLACES = 4
"""From so many places a row on, to look up when something is there is quicker than to look at it.

A step that is longer than the windows has many rows of one key that never meet.
"""


@dataclass(frozen=True)
class JoinKernel:
    """Elements ``_ts``, ``_te``, ``_w``, keys ``k0…`` and row ``c0…`` in; pairs of rows out.

    Both sides' keys have the same types. Without keys all elements meet.
    """

    key_types: tuple[pa.DataType, ...]
    left_types: tuple[pa.DataType, ...]
    right_types: tuple[pa.DataType, ...]

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return [f"k{i}" for i in range(len(self.key_types))]

    @property
    def output_schema(self) -> pa.Schema:
        """The pairs: the left side's columns, then the right side's, numbered through."""
        return element_schema(self.left_types + self.right_types)

    def run_schema(self, side: int) -> pa.Schema:
        """The runs of the left (0) or right (1) side."""
        return run_schema(self.key_types, (self.left_types, self.right_types)[side])

    def index(self, side: int) -> RunIndex:
        """The index of a side before anything came."""
        return RunIndex(self.run_schema(side))

    def new_run(self, elements: pa.Table) -> pa.Table:
        """The new elements of a side as a run: what ``pages`` probes with and an index takes."""
        return as_run(elements, len(self.key_types))

    def pages(
        self, left: pa.Table, right: pa.Table, left_index: RunIndex, right_index: RunIndex
    ) -> Iterator[pa.Table]:
        """The pairs of which one began in the step; ``left`` and ``right`` are its new runs.

        They come in pages, each made of a bounded number of pairs that were looked at.
        """
        news = Run.of(left), Run.of(right)
        for side, runs in ((0, (*right_index.runs, news[1])), (1, left_index.runs)):
            for probes, parts in _meetings(news[side], runs):
                yield self._pairs(news[side], probes, parts, side)

    def _pairs(self, new: Run, probes: Ints, parts: list[Part], side: int) -> pa.Table:
        """The pairs of rows of a new run with rows of some others, in their order."""
        start = np.concatenate([run.start[at] for run, at in parts])
        end = np.concatenate([run.end[at] for run, at in parts])
        weight = np.concatenate([run.weight[at] for run, at in parts])
        ours = [(new, probes)]
        left, right = (parts, ours) if side else (ours, parts)
        columns = [
            pa.array(np.maximum(start, new.start[probes])),
            pa.array(np.minimum(end, new.end[probes])),
            pa.array(weight * new.weight[probes]),
            *(_taken(left, f"c{i}") for i in range(len(self.left_types))),
            *(_taken(right, f"c{i}") for i in range(len(self.right_types))),
        ]
        pairs = pa.Table.from_arrays(columns, schema=self.output_schema)
        equal = np.ones(len(probes), dtype=np.bool_)
        for name in self.keys:
            equal &= _equal(_taken(ours, name), _taken(parts, name))
        return pairs if equal.all() else pairs.filter(pa.array(equal))


Part = tuple[Run, Ints]
"""Some rows of a run, by their places."""


def _meetings(new: Run, runs: Sequence[Run]) -> Iterator[tuple[Ints, list[Part]]]:
    """Rows of the new run and those of the others that have the same hash while they are there.

    Many are given in several goes.
    """
    probes: list[Ints] = []
    parts: list[Part] = []
    for run in runs:
        for probe, at in _candidates(new, run):
            together = np.maximum(new.start[probe], run.start[at]) < np.minimum(
                new.end[probe], run.end[at]
            )
            if together.any():
                probes.append(probe[together])
                parts.append((run, at[together]))
            if sum(map(len, probes)) >= PAIRS:
                yield np.concatenate(probes), parts
                probes, parts = [], []
    if parts:
        yield np.concatenate(probes), parts


def _candidates(new: Run, run: Run) -> Iterator[tuple[Ints, Ints]]:
    """The places of rows with the same hash, found among a bounded number of pairs at a time."""
    first, end = run.places(new.hashes)
    if int(np.sum(end - first)) > MANY_PLACES * len(first) and run.is_ordered:
        first, end = _present(new, run, first, end)
    total = np.zeros(len(first) + 1, dtype=np.int64)
    np.cumsum(end - first, out=total[1:])
    for low in range(0, int(total[-1]), PAIRS):
        number = np.arange(low, min(low + PAIRS, int(total[-1])))
        probe = np.searchsorted(total, number, "right") - 1
        at = number + (first - total[:-1])[probe]
        same = run.hashes[at] == new.hashes[probe]
        if same.any():
            yield probe[same], at[same]


def _present(new: Run, run: Run, first: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Where those begin and end that have the same hash and are there while a new row is.

    The run is ordered by hash and start, and by hash and end.
    """

    def comes_before(places: Ints, rows: Ints, times: Ints, limits: Ints) -> Bools:
        hashes, wanted = run.hashes[places], new.hashes[rows]
        before: Bools = (hashes < wanted) | ((hashes == wanted) & (times[places] < limits[rows]))
        return before

    first = _searched(first, end, lambda at, rows: comes_before(at, rows, run.end, new.start + 1))
    end = _searched(first, end, lambda at, rows: comes_before(at, rows, run.start, new.end))
    return first, end


def _searched(first: Ints, end: Ints, is_before: Callable[[Ints, Ints], Bools]) -> Ints:
    """For each row, by halving, the first place of its own that does not come before it."""
    low, high = first.copy(), end.copy()
    rows = np.flatnonzero(low < high)
    while len(rows):
        middle = (low[rows] + high[rows]) // 2
        before = is_before(middle, rows)
        low[rows[before]] = middle[before] + 1
        high[rows[~before]] = middle[~before]
        rows = rows[low[rows] < high[rows]]
    return low


def _taken(parts: Sequence[Part], name: str) -> pa.Array:
    """A column at some places of some runs, one after the other."""
    known = [(run.numbers[name], at) for run, at in parts if name in run.numbers]
    if len(known) == len(parts):
        return pa.array(np.concatenate([numbers[at] for numbers, at in known]))
    taken = (run.table[name].take(pa.array(at)) for run, at in parts)
    return pa.concat_arrays([chunk for column in taken for chunk in column.chunks])


def _equal(one: pa.Array, other: pa.Array) -> Bools:
    """Whether keys are equal and not only their hashes."""
    same: Bools = np.asarray(pc.equal(one, other)).astype(np.bool_)
    if pa.types.is_floating(one.type):
        same |= np.isnan(np.asarray(one)) & np.isnan(np.asarray(other))
    return same

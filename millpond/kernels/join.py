"""The inner join of two relations, by keys: a step probes with its new elements, nothing else.

New left with old and new right, old left with new right. Two elements meet from the later start to
the earlier end, with the product of their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.errors import OutgrownError
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import marked
from millpond.kernels.groups import Bools, Ints
from millpond.kernels.kernel import Keyed
from millpond.kernels.runs import Run, RunIndex, as_run, run_schema
from millpond.settings import format_bytes

PAIRS = 1_000_000
"""So many pairs are looked at in one go; a join without keys may have many more."""

FEW_PAIRS = 10_000
"""So many are looked at in one go, however little memory there is for them."""

PARTS_OF_A_STEP = 8
"""A step that makes as many pairs as it may looks at them in so many goes: to look at a pair takes
several times the memory of what is put out of it."""

MANY_PLACES = 4
"""From so many places a row on, to look up when something is there is quicker than to look at it.

A step that is longer than the windows has many rows of one key that never meet.
"""


@dataclass(frozen=True)
class JoinKernel(Keyed):
    """Elements ``_ts``, ``_te``, ``_w``, keys ``k0…`` and row ``c0…`` in; pairs of rows out.

    Both sides' keys have the same types. Without keys all elements meet.
    """

    left_types: tuple[pa.DataType, ...]
    right_types: tuple[pa.DataType, ...]

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
        self,
        left: pa.Table,
        right: pa.Table,
        left_index: RunIndex,
        right_index: RunIndex,
        at_once: int = PAIRS,
    ) -> Iterator[pa.Table]:
        """The pairs of which one began in the step; ``left`` and ``right`` are its new runs.

        They come in pages, each made of a bounded number of pairs that were looked at.
        """
        news = Run.of(left), Run.of(right)
        for side, runs in ((0, (*right_index.runs, news[1])), (1, left_index.runs)):
            for probes, pieces in _meetings(news[side], runs, at_once):
                yield self._pairs(news[side], probes, pieces, side)

    def together(
        self,
        new: tuple[pa.Table, pa.Table],
        indexes: tuple[RunIndex, RunIndex],
        shaped: Callable[[pa.Table], pa.Table],
        limit: PairLimit,
    ) -> tuple[list[pa.Table], int]:
        """The pairs of a step in the form they are put out in, and how many were looked at.

        They are counted before any is made: of a step that would make too many it is said up to
        which time it should be done instead. One instant may make as many as there is memory for.
        """
        counted = counted_pairs(new, indexes, limit.pairs)
        if counted.total > limit.pairs:
            counted.cut(limit.pairs)
        made, size = list[pa.Table](), 0
        at_once = min(PAIRS, max(FEW_PAIRS, limit.pairs // PARTS_OF_A_STEP))
        for page in self.pages(*new, *indexes, at_once):
            made.append(shaped(page))
            size += made[-1].nbytes
            if size > limit.bytes:
                counted.cut(counted.total // 2)
                raise OutgrownError(
                    f"the {counted.total:,} pairs of rows that meet at one instant take more than "
                    f"{format_bytes(limit.bytes)}, the share of the budget that one step may have; "
                    "SET budget, or join on more columns"
                )
        return made, counted.total

    def _pairs(self, new: Run, probes: Ints, pieces: list[Piece], side: int) -> pa.Table:
        """The pairs of rows of a new run with rows of some others, in their order."""
        start = np.concatenate([run.start[at] for run, at in pieces])
        end = np.concatenate([run.end[at] for run, at in pieces])
        weight = np.concatenate([run.weight[at] for run, at in pieces])
        ours = [(new, probes)]
        left, right = (pieces, ours) if side else (ours, pieces)
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
            equal &= _equal(_taken(ours, name), _taken(pieces, name))
        return pairs if equal.all() else pairs.filter(pa.array(equal))


@dataclass(frozen=True)
class PairLimit:
    """What a step may make: about so many pairs, and so many bytes whatever it makes."""

    pairs: int
    bytes: int


@dataclass(frozen=True)
class Counted:
    """How many pairs the rows that begin at each instant make, with those before them."""

    total: int
    starts: Ints
    """Of each new row, in any order."""
    pairs: Ints

    def cut(self, most: int) -> None:
        """Has the step be done up to the last instant with which it makes so many pairs, at least
        the first; nothing if there is only one."""
        instants, places = np.unique(self.starts, return_inverse=True)
        if len(instants) < 2:
            return
        sums = np.cumsum(np.bincount(places, self.pairs))
        fitting = int(np.searchsorted(sums, most, "right"))
        following = min(max(fitting, 1), len(instants) - 1)
        until = int(instants[following]) - 1
        raise OutgrownError(f"internal: a step of {self.total:,} pairs is to be cut", until)


def counted_pairs(
    new: tuple[pa.Table, pa.Table], indexes: tuple[RunIndex, RunIndex], enough: int
) -> Counted:
    """About how many pairs a step makes, and at least as many: exactly if that is more than enough
    and the rows of a key are in order of time."""
    left, right = (Run.of(table) for table in new)
    starts = np.concatenate([left.start, right.start])
    probes = ((left, (*indexes[1].runs, right)), (right, indexes[0].runs))
    rough = np.concatenate([_summed(run, others, _places_of) for run, others in probes])
    total = int(rough.sum())
    if total <= min(enough, PAIRS):
        return Counted(total, starts, rough)
    old = [
        _summed(run, index.runs, _meeting)
        for run, index in ((left, indexes[1]), (right, indexes[0]))
    ]
    fresh = (
        _meeting(left, _by_start(right), left.start + 1),
        _meeting(right, _by_start(left), right.start),
    )
    exact = np.concatenate([one + other for one, other in zip(old, fresh, strict=True)])
    return Counted(int(exact.sum()), starts, exact)


def _summed(new: Run, runs: Sequence[Run], count: Callable[[Run, Run], Ints]) -> Ints:
    """For each new row the sum of what is counted in some runs."""
    none = np.zeros(len(new.start), dtype=np.int64)
    return sum((count(new, run) for run in runs), none)


def _places_of(new: Run, run: Run) -> Ints:
    """How many rows of a run have hashes that begin as those of a new one."""
    first, end = run.places(new.hashes)
    return end - first


def _by_start(run: Run) -> Run:
    """A run with the rows of each hash in order of their starts."""
    order = np.lexsort((run.start, run.hashes))
    return replace(run, hashes=run.hashes[order], start=run.start[order], end=run.end[order])


def _meeting(new: Run, run: Run, limits: Ints | None = None) -> Ints:
    """How many rows of a run each new one meets that begin before a limit of its own.

    Where a run's rows are in no order, those that have the same first bits are counted.
    """
    first, end = run.places(new.hashes)
    if run.is_ordered:
        first, end = _present(new, run, first, end, new.end if limits is None else limits)
    return end - first


Piece = tuple[Run, Ints]
"""Some rows of a run, by their places."""


def _meetings(new: Run, runs: Sequence[Run], at_once: int) -> Iterator[tuple[Ints, list[Piece]]]:
    """Rows of the new run and those of the others that have the same hash while they are there.

    Many are given in several goes.
    """
    probes: list[Ints] = []
    pieces: list[Piece] = []
    for run in runs:
        for probe, at in _candidates(new, run, at_once):
            together = np.maximum(new.start[probe], run.start[at]) < np.minimum(
                new.end[probe], run.end[at]
            )
            if together.any():
                probes.append(probe[together])
                pieces.append((run, at[together]))
            if sum(map(len, probes)) >= at_once:
                yield np.concatenate(probes), pieces
                probes, pieces = [], []
    if pieces:
        yield np.concatenate(probes), pieces


def _candidates(new: Run, run: Run, at_once: int) -> Iterator[tuple[Ints, Ints]]:
    """The places of rows with the same hash, found among a bounded number of pairs at a time."""
    first, end = run.places(new.hashes)
    if int(np.sum(end - first)) > MANY_PLACES * len(first) and run.is_ordered:
        first, end = _present(new, run, first, end, new.end)
    total = np.zeros(len(first) + 1, dtype=np.int64)
    np.cumsum(end - first, out=total[1:])
    for low in range(0, int(total[-1]), at_once):
        high = min(low + at_once, int(total[-1]))
        rows = slice(int(total.searchsorted(low, "right")) - 1, int(total.searchsorted(high)))
        ends = np.minimum(total[1:][rows], high)
        counts = ends - np.maximum(total[rows], low)
        probe = np.arange(rows.start, rows.stop).repeat(counts)
        at = np.arange(low, high) + (first[rows] - total[rows]).repeat(counts)
        same = run.hashes[at] == new.hashes[probe]
        if same.all():
            yield probe, at
        elif same.any():
            yield probe[same], at[same]


def _present(new: Run, run: Run, first: Ints, end: Ints, limits: Ints) -> tuple[Ints, Ints]:
    """Where those begin and end that have the same hash and are there while a new row is, and
    begin before a limit.

    The run is ordered by hash and start, and by hash and end.
    """

    def comes_before(places: Ints, rows: Ints, times: Ints, limits: Ints) -> Bools:
        hashes, wanted = run.hashes[places], new.hashes[rows]
        before: Bools = (hashes < wanted) | ((hashes == wanted) & (times[places] < limits[rows]))
        return before

    first = _searched(first, end, lambda at, rows: comes_before(at, rows, run.end, new.start + 1))
    end = _searched(first, end, lambda at, rows: comes_before(at, rows, run.start, limits))
    return first, end


def _searched(first: Ints, end: Ints, is_before: Callable[[Ints, Ints], Bools]) -> Ints:
    """For each row, by halving, the first place of its own that does not come before it."""
    low, high = first.copy(), end.copy()
    rows = marked(low < high)
    while len(rows):
        middle = (low[rows] + high[rows]) // 2
        before = is_before(middle, rows)
        low[rows[before]] = middle[before] + 1
        high[rows[~before]] = middle[~before]
        rows = rows[low[rows] < high[rows]]
    return low


def _taken(pieces: Sequence[Piece], name: str) -> pa.Array:
    """A column at some places of some runs, one after the other."""
    known = [(run.numbers[name], at) for run, at in pieces if name in run.numbers]
    if len(known) == len(pieces):
        return pa.array(np.concatenate([numbers[at] for numbers, at in known]))
    taken = (run.table[name].take(pa.array(at)) for run, at in pieces)
    return pa.concat_arrays([chunk for column in taken for chunk in column.chunks])


def _equal(one: pa.Array, other: pa.Array) -> Bools:
    """Whether keys are equal and not only their hashes."""
    same: Bools = np.asarray(pc.equal(one, other)).astype(np.bool_)
    if pa.types.is_floating(one.type):
        same |= np.isnan(np.asarray(one)) & np.isnan(np.asarray(other))
    return same

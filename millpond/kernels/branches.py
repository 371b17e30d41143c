"""A branch of a fragment evaluated on Arrow tables: the same rows as Spark gives, without Spark."""

import numpy as np
import pyarrow as pa

from millpond.cql.algebra import Sample
from millpond.cql.expressions import Expression
from millpond.kernels.columns import integers
from millpond.kernels.expressions import Columns, Condition, Program, can_lower
from millpond.kernels.groups import Bools, Ints
from millpond.kernels.sampling import hash_longs, hash_of_stream, hash_rows, is_sampled
from millpond.planning.branches import Branch, Outputs
from millpond.planning.predicates import columns_used, conjuncts, remap, substitute
from millpond.schema import FOREVER

MARKS = ("_ts", "_seq")
"""What expressions see of an element behind its columns."""


def can_evaluate(branch: Branch, outputs: Outputs) -> bool:
    """Whether all of the branch's expressions have the same bits here as on Spark."""
    return all(map(can_lower, [*branch.conditions, *_wanted(branch, outputs)]))


def _wanted(branch: Branch, outputs: Outputs) -> list[Expression]:
    return [substitute(expression, branch.expressions) for expression, _ in outputs.expressions]


class ArrowBranch:
    """A branch compiled for the outputs that one operator wants of it."""

    def __init__(self, branch: Branch, outputs: Outputs, seed: int) -> None:
        self._branch = branch
        self._of_stream = len(outputs.names) == 2
        self._names = [*outputs.names, *(name for _, name in outputs.expressions)]
        wanted = _wanted(branch, outputs)
        used = set[int]().union(*map(columns_used, [*branch.conditions, *wanted]))
        width = len(branch.leaf.schema)
        self._marks = [name for i, name in enumerate(MARKS) if width + i in used]
        marks = [width + MARKS.index(name) for name in self._marks]
        self._used = sorted(used.difference(marks))
        if branch.sample is not None:  # which looks at whole tuples
            self._used = list(range(width))
        at = {position: number for number, position in enumerate([*self._used, *marks])}
        self._below = Condition([remap(part, at) for part in conjuncts(branch.below)])
        self._condition = Condition([remap(part, at) for part in conjuncts(branch.predicate)])
        self._values = Program([remap(part, at) for part in wanted])
        self._hash = hash_of_stream(seed, branch.leaf.queue)

    def needs(self, names: list[str]) -> list[str]:
        """Those of the queue's columns that are looked at: those of time and some of its own."""
        first = len(names) - len(self._branch.leaf.schema)
        return names[:first] + [names[first + position] for position in self._used]

    def rows(self, rows: pa.Table, ended: bool = False) -> pa.Table:
        """The output columns of the queue's rows that pass; ``ended`` ones come as their minus."""
        return self.made_of(rows.select(self.needs(rows.column_names)), ended)

    def made_of(self, rows: pa.Table, ended: bool) -> pa.Table:
        """The same of the columns that it needs."""
        weights = self._weights(rows)
        kept = self._kept(rows, weights)
        if kept is not None and not kept.all():
            rows, weights = rows.filter(pa.array(kept)), weights[kept]
        times = self._times(rows, weights, ended)
        data = self._values.arrays(self._data(rows), rows.num_rows)
        return pa.Table.from_arrays([*times, *data], names=self._names)

    def _data(self, rows: pa.Table) -> Columns:
        """The queue's own columns, which stand behind those of time, and those of these used."""
        columns: Columns = rows.columns
        marks = [rows[name] for name in self._marks]
        return [*columns[len(columns) - len(self._used) :], *marks]

    def _kept(self, rows: pa.Table, weights: Ints) -> Bools | None:
        """Where the predicate holds, the sample keeps the tuple, and it is ever in the window."""
        branch = self._branch
        if branch.sample is None:
            kept = self._condition.holds(self._data(rows), rows.num_rows)
        else:
            kept = self._drawn(rows, weights, branch.sample)
            drawn = rows.filter(pa.array(kept))
            held = self._condition.holds(self._data(drawn), drawn.num_rows)
            if held is not None:
                kept[kept] = held
        if branch.window is not None and branch.window.is_partial:
            times = integers(rows["_ts"])
            inside = branch.window.enter(times) < branch.window.leave(times)
            kept = inside if kept is None else kept & inside
        return kept

    def _drawn(self, rows: pa.Table, weights: Ints, sample: Sample) -> Bools:
        """What the sample keeps of what it draws from."""
        sampled: Bools = weights > 0
        if self._branch.leaf.is_base:
            sampled = is_sampled(sample, hash_longs(integers(rows["_seq"]), self._hash))
        below = self._below.holds(self._data(rows), rows.num_rows)
        return sampled if below is None else sampled & below

    def _weights(self, rows: pa.Table) -> Ints:
        leaf, sample = self._branch.leaf, self._branch.sample
        if leaf.of_stream and leaf.is_base:
            return np.ones(rows.num_rows, np.int64)
        weights = integers(rows["_w"])
        return weights if sample is None else self._copies(rows, weights, sample)

    def _copies(self, rows: pa.Table, weights: Ints, sample: Sample) -> Ints:
        """How many of each tuple's copies the sample keeps: each copy has its own number."""
        hashes = hash_rows([rows["_ts"], *self._data(rows)[: len(self._used)]], self._hash)
        row = np.repeat(np.arange(len(weights)), weights)
        number = np.arange(len(row)) - np.repeat(np.cumsum(weights) - weights, weights) + 1
        kept = is_sampled(sample, hash_longs(number, hashes[row]))
        return np.bincount(row[kept], minlength=len(weights)).astype(np.int64)

    def _times(self, rows: pa.Table, weights: Ints, ended: bool) -> list[pa.Array]:
        """Start, end and weight; over a stream, time and order."""
        if self._of_stream:
            is_base = self._branch.leaf.is_base
            return [rows["_ts"], rows["_seq"] if is_base else pa.array(weights)]
        window, weights = self._branch.window, weights * self._branch.sign
        if window is None:
            start, end = rows["_ts"], rows["_te"]
        else:
            times = integers(rows["_ts"])
            start, end = pa.array(window.enter(times)), pa.array(window.leave(times))
        if ended:
            return [end, pa.array(np.full(rows.num_rows, FOREVER)), pa.array(-weights)]
        return [start, end, pa.array(weights)]

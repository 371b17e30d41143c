"""Members of groups, in order: found by group and place, or by group and rank.

A group has a number, each of its members a place: the number of an element in a Rows window, a
value as an order-preserving integer under an aggregate. A row says how many members come or go at a
place; the sum counts. Rows lie in runs sorted by group and place, merged by levels: a step adds a
run of what it changes and reads the few members that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.kernels.columns import integers, marked, with_first
from millpond.kernels.groups import Bools, Ints, encode, stable_order
from millpond.kernels.run_list import RunList, VersionedRun
from millpond.kernels.timeline import order_of

LEAST, MOST = -(2**63), 2**63 - 1
"""Places before and after all others; a member may be there too."""

FEW = 64
"""So many members in question are looked at rather than searched further."""


def member_schema(fields: Sequence[pa.Field] = ()) -> pa.Schema:
    """Group, place, how many come (or go, if negative), and what belongs to a member."""
    return pa.schema([*(pa.field(name, pa.int64()) for name in ("_g", "_v", "_n")), *fields])


def numbered(state: pa.Table, codes: Ints, groups: int, fresh: int) -> tuple[Ints, Ints]:
    """The kept count and the number of each group; new ones have none yet, and fresh numbers.

    ``state`` has a row for each group of ``codes``.
    """
    count = np.zeros(groups, dtype=np.int64)
    count[codes] = integers(state["_n"])
    number = np.full(groups, -1, dtype=np.int64)
    number[codes] = integers(state["_g"])
    new = marked(number < 0)
    number[new] = fresh + np.arange(len(new))
    return count, number


def merged_members(parts: Sequence[pa.Table]) -> pa.Table:
    """Rows of equal group and place in one, in order; without those that cancel.

    Members that have columns ``r0…`` may share a place: they are told apart by these.
    """
    together = pa.concat_tables(parts)
    group, place, count = (integers(together[name]) for name in ("_g", "_v", "_n"))
    if len(group) == 0:
        return together
    own = [together[name] for name in together.column_names if name.startswith("r")]
    member = encode(own, len(group))
    order = order_of(group, place)
    if own:
        alike = stable_order(member)
        order = alike[order_of(group[alike], place[alike])]
    group, place, member = group[order], place[order], member[order]
    differs = (group[1:] != group[:-1]) | (place[1:] != place[:-1]) | (member[1:] != member[:-1])
    starts = marked(with_first(True, differs))
    totals = np.add.reduceat(count[order], starts)
    some = totals != 0
    kept = together.take(pa.array(order[starts[some]])).combine_chunks()
    return kept.set_column(2, "_n", pa.array(totals[some]))


@dataclass(frozen=True)
class MemberRun(VersionedRun):
    """Rows sorted by group and place, and what is needed to find some of them."""

    groups: Ints
    places: Ints
    keys: Ints
    """Of each row, its group's and its place's number in one."""
    place: Ints
    total: Ints
    """How many members the rows before each one count."""

    @staticmethod
    def of(table: pa.Table, first: int = 0, last: int = 0) -> MemberRun:
        """The run of a table that ``merged_members`` made."""
        table = table.combine_chunks()
        group, place, count = (integers(table[name]) for name in ("_g", "_v", "_n"))
        total = with_first(0, np.cumsum(count))
        versions = first, last, table.nbytes + 3 * total.nbytes
        groups = group[marked(with_first(True, group[1:] != group[:-1])[: len(group)])]
        if len(groups) == 1:
            numbers, places = np.arange(len(place)), place
            return MemberRun(table, *versions, groups, places, numbers, place, total)
        places, numbers = np.unique(place, return_inverse=True)
        keys = np.searchsorted(groups, group) * len(places) + numbers
        return MemberRun(table, *versions, groups, places, keys, place, total)

    def sums(self, name: str, parts: Callable[[pa.Table], list[Ints]]) -> list[Ints]:
        """The sums of what is found in the rows before each one; found once."""
        known = self.__dict__.setdefault("_sums", {})
        if name not in known:
            known[name] = [with_first(0, np.cumsum(part)) for part in parts(self.table)]
        found: list[Ints] = known[name]
        return found

    def search(self, group: Ints, place: Ints, after: bool) -> Ints:
        """Where the rows of each group begin that lie at or after a place, or only after it."""
        number, known = self._numbers(group)
        at = np.searchsorted(self.places, place, "right" if after else "left")
        return self._found(number * len(self.places) + np.where(known, at, 0))

    def starts(self, group: Ints) -> Ints:
        """Where the rows of each group begin."""
        number, _ = self._numbers(group)
        return self._found(number * len(self.places))

    def _found(self, keys: Ints) -> Ints:
        """Where the rows of keys begin; those of a single group are numbered."""
        if len(self.groups) == 1:
            return np.minimum(keys, len(self.keys))
        return np.searchsorted(self.keys, keys)

    def _numbers(self, group: Ints) -> tuple[Ints, Bools]:
        number = np.searchsorted(self.groups, group)
        known = self.groups[np.minimum(number, len(self.groups) - 1)] == group
        return number, np.asarray(known)


class MemberIndex(RunList[MemberRun]):
    """The members of a bucket's groups, and what a step asks of them."""

    def run_of(self, table: pa.Table, first: int, last: int) -> MemberRun:
        return MemberRun.of(table, first, last)

    def between(self, group: Ints, low: Ints, high: Ints) -> pa.Table:
        """The members of each group from one place to another, both included, in order."""
        order = np.lexsort((low, group))  # neighbours are found near each other
        group, low, high = group[order], low[order], high[order]
        parts = [self.schema.empty_table()]
        for run in self.runs:
            first, end = run.search(group, low, False), run.search(group, high, True)
            counts = np.maximum(end - first, 0)
            before = np.cumsum(counts) - counts
            at = np.repeat(first - before, counts) + np.arange(int(counts.sum()))
            if len(at):
                parts.append(run.table.take(pa.array(at)))
        return merged_members(parts)

    def before(self, group: Ints, place: Ints) -> Ints:
        """How many members of each group come before a place."""
        total = np.zeros(len(group), dtype=np.int64)
        for run in self.runs:
            total += run.total[run.search(group, place, False)] - run.total[run.starts(group)]
        return total

    def up_to(self, group: Ints, place: Ints) -> Ints:
        """How many members of each group come before a place or at it."""
        total = np.zeros(len(group), dtype=np.int64)
        for run in self.runs:
            total += run.total[run.search(group, place, True)] - run.total[run.starts(group)]
        return total

    def sums_before(
        self, group: Ints, place: Ints, name: str, parts: Callable[[pa.Table], list[Ints]]
    ) -> list[Ints]:
        """The sums of what ``parts`` finds in the members of each group before a place.

        What is found of a run is kept with it under the name.
        """
        total = [np.zeros(len(group), dtype=np.int64) for _ in parts(self.schema.empty_table())]
        for run in self.runs:
            first, end = run.starts(group), run.search(group, place, False)
            for number, sums in enumerate(run.sums(name, parts)):
                total[number] += sums[end] - sums[first]
        return total

    def around(self, group: Ints, rank: Ints) -> tuple[Ints, Ints]:
        """Two places of each group, the member of that rank (from 0) at or after the first and
        before the second, with few others between them.

        Each run in turn, the largest first, narrows them by halving.
        """
        low = np.full(len(group), LEAST, dtype=np.int64)
        high = np.full(len(group), MOST, dtype=np.int64)
        for run in sorted(self.runs, key=lambda each: -each.table.num_rows):
            first, end = run.search(group, low, True), run.search(group, high, False)
            open_ = marked(end - first > FEW)
            while len(open_):
                middle = (first[open_] + end[open_]) // 2
                place = run.place[middle]
                is_low = self.before(group[open_], place) <= rank[open_]
                low[open_] = np.where(is_low, place, low[open_])
                high[open_] = np.where(is_low, high[open_], place)
                first[open_] = np.where(is_low, middle + 1, first[open_])
                end[open_] = np.where(is_low, end[open_], middle)
                open_ = open_[end[open_] - first[open_] > FEW]
        return low, high

"""ROW_NUMBER, RANK and DENSE_RANK: the rows of each group in order, and the first of them.

A group's rows are kept by a place, an integer that the first sort key gives them (``ordered``). A
step that takes m rows out of a group can bring no row into the first n that was not among the first
n + m, so it reads these, and puts them and what comes in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import flat, integers, marked
from millpond.kernels.groups import Bools, Ints, encode, first_rows
from millpond.kernels.kernel import Keyed
from millpond.kernels.ordered import (
    LEAST,
    MOST,
    MemberIndex,
    member_schema,
    merged_members,
    numbered,
)
from millpond.kernels.sorts import Sort, places, sorted_rows
from millpond.kernels.standings import Change, Rule, Standings, standings
from millpond.kernels.timeline import Changes, Elements
from millpond.schema import FOREVER


@dataclass(frozen=True)
class InOrder(Keyed):
    """What keeps rows ``r0…`` of each ``k0…`` (the partition) in order."""

    types: tuple[pa.DataType, ...]
    order: tuple[Sort, ...]

    @property
    def rows(self) -> list[str]:
        """The names of the columns of the rows."""
        return [f"r{i}" for i in range(len(self.types))]

    @property
    def state_schema(self) -> pa.Schema:
        """One row a group: how many rows it keeps, and its number."""
        return pa.schema([*self.key_fields, *(pa.field(n, pa.int64()) for n in ("_n", "_g"))])

    @property
    def member_schema(self) -> pa.Schema:
        """The rows that are kept."""
        return member_schema([pa.field(n, t) for n, t in zip(self.rows, self.types, strict=True)])

    def places(self, rows: pa.Table) -> Ints:
        """An integer for each row, never larger than that of a row that comes after it."""
        return places(rows, self.order)

    def sorted_rows(self, rows: pa.Table) -> Ints:
        """The order of rows: by group, as it is wished, then by all columns."""
        return sorted_rows(rows, self.order, self.rows)


@dataclass(frozen=True)
class RankingKernel(InOrder):
    """Elements of rows in; the first with their ranks out.

    ``limit`` is the largest rank put out, all if None. ``is_append_only``: no row ever goes, so
    that no more is kept than is put out.
    """

    function: str
    limit: int | None
    is_append_only: bool

    @property
    def output_schema(self) -> pa.Schema:
        """The elements put out."""
        return element_schema((*self.types, pa.int64()))

    def run_with_members(
        self,
        events: pa.Table,
        state: pa.Table,
        members: MemberIndex,
        after: int,
        until: int,
        fresh: int,
    ) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The elements of the step, the new counts of the groups it touched, and the rows that
        come and go."""
        keys = pa.concat_tables([events.select(self.keys), state.select(self.keys)])
        codes = encode([keys[name] for name in self.keys], events.num_rows + state.num_rows)
        own = codes[: events.num_rows]
        groups = int(codes.max(initial=-1)) + 1
        before, number = numbered(state, codes[events.num_rows :], groups, fresh)
        times = (integers(events[name]) for name in ("_ts", "_te", "_w"))
        changes = Elements(np.arange(events.num_rows), own, *times).changes(until)
        place = self.places(events)
        first = self._first(members, number, before, changes)
        board = self._board(events, own, first)
        found = standings(
            Rule(self.function, self.limit, board.peers.tolist()),
            board.lines,
            board.counts,
            board.changed(changes, place <= first.last[own]),
        )
        kept = self._kept(changes, board, found)
        examples = pa.array(first_rows(codes)) if self.keys else pa.array([], pa.int64())
        columns = [flat(keys[name].take(examples)) for name in self.keys]
        count = before + np.bincount(kept.code, kept.weight, groups).astype(np.int64)
        new_state = [*columns, pa.array(count), pa.array(number)]
        return (
            self._output(found, board),
            pa.Table.from_arrays(new_state, schema=self.state_schema),
            self._moved(kept, board, number),
        )

    # -- what is read ----------------------------------------------------------------------

    def _first(self, members: MemberIndex, number: Ints, before: Ints, changes: Changes) -> _First:
        """The kept rows that may have one of the ranks in the step, of each group."""
        leaving = np.where(changes.weight < 0, -changes.weight, 0)
        gone = np.bincount(changes.code, leaving, len(number)).astype(np.int64)
        wanted = before if self.limit is None else np.minimum(self.limit + gone, before)
        last = np.full(len(number), MOST, dtype=np.int64)
        while True:
            some = marked(wanted < before)
            _, end = members.around(number[some], wanted[some])
            last[:] = MOST
            last[some] = np.where(end == MOST, MOST, end - 1)
            old = marked(before)
            rows = members.between(number[old], np.full(len(old), LEAST), last[old])
            at = np.argsort(number, kind="stable")
            code = at[np.searchsorted(number[at], integers(rows["_g"]))]
            few = self._few(rows, code, gone) & (last < MOST)
            if not few.any():
                return _First(rows, code, last)
            wanted = np.where(few, np.minimum(2 * wanted, before), wanted)

    def _few(self, rows: pa.Table, code: Ints, gone: Ints) -> Bools:
        """Of which groups more rows must be read: several may have one dense rank."""
        if self.function != "dense_rank" or self.limit is None:
            return np.zeros(len(gone), dtype=np.bool_)
        peers = peers_of(rows, code, self.order)
        different = np.bincount(code[first_rows(peers)], minlength=len(gone))
        return np.asarray(different <= self.limit + gone)

    def _board(self, events: pa.Table, own: Ints, first: _First) -> _Board:
        """All rows of the step, each once, in order."""
        rows = pa.concat_tables(
            [
                events.select(self.rows),
                first.rows.select(self.rows).cast(_schema(events, self.rows)),
            ]
        )
        code = np.concatenate([own, first.code])
        table = rows.append_column("code", pa.array(code))
        same = encode(table.columns, table.num_rows)
        example = first_rows(same)
        different = table.take(pa.array(example))
        order = self.sorted_rows(different)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        ordered = different.take(pa.array(order)).combine_chunks()
        peers = peers_of(ordered, integers(ordered["code"]), self.order)
        at = rank[same]
        kept = dict(zip(at[len(own) :].tolist(), integers(first.rows["_n"]).tolist(), strict=True))
        return _Board(ordered, peers, at[: len(own)], kept)

    # -- what is written -------------------------------------------------------------------

    def _kept(self, changes: Changes, board: _Board, found: Standings) -> _Kept:
        """How many of each row come to be kept, or go: all, or those that have a rank."""
        if not self.is_append_only or self.limit is None:
            return _Kept(board.of_event[changes.row], changes.code, changes.weight)
        rows = np.array([*found.final, *board.counts], dtype=np.int64)
        weights = [*found.final.values(), *(-count for count in board.counts.values())]
        return _Kept(rows, board.codes[rows], np.array(weights, dtype=np.int64))

    def _moved(self, kept: _Kept, board: _Board, number: Ints) -> pa.Table:
        rows = board.rows.take(pa.array(kept.row)).select(self.rows)
        arrays = [pa.array(number[kept.code]), pa.array(self.places(rows)), pa.array(kept.weight)]
        table = pa.Table.from_arrays([*arrays, *rows.columns], names=self.member_schema.names)
        return merged_members([table.cast(self.member_schema)])

    def _output(self, found: Standings, board: _Board) -> pa.Table:
        time, row, rank, weight = (
            np.array(each, dtype=np.int64)
            for each in (found.time, found.row, found.rank, found.weight)
        )
        rows = board.rows.take(pa.array(row)).select(self.rows)
        end = np.full(len(row), FOREVER)
        times = map(pa.array, (time, end, weight))
        arrays = [*times, *rows.columns, pa.array(rank)]
        return pa.Table.from_arrays(arrays, names=self.output_schema.names).cast(self.output_schema)


def _schema(events: pa.Table, names: list[str]) -> pa.Schema:
    return events.select(names).schema


def peers_of(rows: pa.Table, code: Ints, order: tuple[Sort, ...]) -> Ints:
    """A number for each row, the same for those of a group that no sort key tells apart."""
    columns = [rows[sort.column] for sort in order]
    return encode([pa.chunked_array([pa.array(code)]), *columns], rows.num_rows)


@dataclass(frozen=True)
class _First:
    """Kept rows of groups, up to a place of each."""

    rows: pa.Table
    code: Ints
    last: Ints


@dataclass(frozen=True)
class _Board:
    """The different rows of a step in order of group and rank."""

    rows: pa.Table
    peers: Ints
    of_event: Ints
    """Which of them each event is of."""
    counts: dict[int, int]
    """How often those that were kept are there."""

    @property
    def codes(self) -> Ints:
        """The group of each row."""
        return integers(self.rows["code"])

    @property
    def lines(self) -> dict[int, list[int]]:
        """The rows of each group that were kept, in order."""
        codes, found = self.codes.tolist(), dict[int, list[int]]()
        for row in sorted(self.counts):
            found.setdefault(codes[row], []).append(row)
        return found

    def changed(self, changes: Changes, near: Bools) -> list[Change]:
        """The changes in terms of the board, of those events alone that can matter."""
        some = near[changes.row]
        columns = changes.code, changes.time, self.of_event[changes.row], changes.weight
        return list(zip(*(column[some].tolist() for column in columns), strict=True))


@dataclass(frozen=True)
class _Kept:
    """How many of which rows come to be kept, and in which groups."""

    row: Ints
    code: Ints
    weight: Ints

"""Functions OVER rows in order: a step reads the rows near those that come or go, and no others.

A partition's rows are kept by a place that the first sort key gives them (``ordered``). Where a
frame is bounded, the rows within its reach are read: a *stretch* of the partition for each change,
those that overlap in one. Where it begins with the partition, all behind are concerned, and what
lies before is summed up by the index; of other functions the whole partition is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.cql.expressions import Frame
from millpond.kernels import exact_sum
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import (
    doubles_of,
    flat,
    integers,
    integers_of,
    marked,
    mask_of,
    with_first,
)
from millpond.kernels.decimals import LIMBS, column_of, joined, limbs
from millpond.kernels.frames import (
    ODD_BITS,
    SUMS,
    Amount,
    Change,
    Function,
    Line,
    Rows,
    Sayings,
    Told,
    play,
)
from millpond.kernels.groups import Ints, encode, first_rows, ranks
from millpond.kernels.ordered import LEAST, MOST, MemberIndex, merged_members, numbered
from millpond.kernels.ranking import InOrder, peers_of
from millpond.kernels.sorts import comparable
from millpond.kernels.timeline import Changes, Elements
from millpond.schema import FOREVER

LOW_BITS = 32
INFINITE = float("inf")
_SHIFTS = (160, 120, 80, 40, 0)
"""What the parts of an exact sum are multiples of, in bits."""


@dataclass(frozen=True)
class OverKernel(InOrder):
    """Elements of rows in; the same out with what a function says of them.

    ``argument`` is the column that the function is of, None for all rows.
    """

    function: str
    argument: str | None
    frame: Frame
    number: int
    result: pa.DataType

    @property
    def output_schema(self) -> pa.Schema:
        """The elements put out."""
        return element_schema((*self.types, self.result))

    @property
    def _function(self) -> Function:
        is_whole = self.argument is None or not _has_fractions(self._argument_type)
        digits = None
        if self.function in ("sum", "avg") and pa.types.is_decimal(self.result):
            digits = (self.result.precision, self.result.scale - self._argument_type.scale)
        return Function(self.function, self.frame, self.number, is_whole, digits)

    @property
    def _argument_type(self) -> pa.DataType:
        return self.types[int((self.argument or "r0")[1:])]

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
        stretches = self._stretches(members, _Groups(number, before), events, changes)
        board = self._board(members, stretches, events, own, number)
        sayings = self._sayings(members, stretches, board, changes)
        count = before + np.bincount(changes.code, changes.weight, groups).astype(np.int64)
        examples = pa.array(first_rows(codes)) if self.keys else pa.array([], pa.int64())
        columns = [flat(keys[name].take(examples)) for name in self.keys]
        new_state = [*columns, pa.array(count), pa.array(number)]
        return (
            self._output(sayings, board),
            pa.Table.from_arrays(new_state, schema=self.state_schema),
            self._moved(changes, events, number),
        )

    # -- what is read ----------------------------------------------------------------------

    def _stretches(
        self, members: MemberIndex, groups: _Groups, events: pa.Table, changes: Changes
    ) -> _Stretches:
        """The pieces of partitions that hold all that is concerned, in order."""
        place = self.places(events)[changes.row]
        moved = np.bincount(changes.code, np.abs(changes.weight), len(groups.number))
        low, high = self._around(members, groups, changes.code, place, moved.astype(np.int64))
        order = np.lexsort((low, groups.number[changes.code]))
        code, low, high = changes.code[order], low[order], high[order]
        found: list[tuple[int, int, int]] = []
        for one, first, last in zip(code.tolist(), low.tolist(), high.tolist(), strict=True):
            if found and found[-1][0] == one and first <= found[-1][2]:
                found[-1] = (one, found[-1][1], max(found[-1][2], last))
            else:
                found.append((one, first, last))
        made = np.array(found, dtype=np.int64).reshape(-1, 3)
        return _Stretches(made[:, 0], groups.number[made[:, 0]], made[:, 1], made[:, 2])

    def _around(
        self, members: MemberIndex, groups: _Groups, code: Ints, place: Ints, moved: Ints
    ) -> tuple[Ints, Ints]:
        """From which place to which each change concerns what is told of others."""
        function = self._function
        start, end = function.bounds
        low, high = np.full(len(code), LEAST), np.full(len(code), MOST)
        if end is None or (start is None and not function.has_carry):
            return low, high
        furthest = max(abs(start or 0), abs(end))
        if function.is_by_rows:
            far = 2 * furthest + 2 * moved[code] + 1
            low, high = _ranked_around(members, groups, code, place, far)
        else:
            wide = 2 * furthest
            low = np.where(place < LEAST + wide, LEAST, place - wide)
            high = np.where(place > MOST - wide, MOST, place + wide)
        return low, np.full(len(code), MOST) if start is None else high

    def _board(
        self,
        members: MemberIndex,
        stretches: _Stretches,
        events: pa.Table,
        own: Ints,
        number: Ints,
    ) -> _Board:
        """All rows of the step, each once, in order of stretch."""
        kept = members.between(stretches.number, stretches.low, stretches.high)
        place = np.concatenate([self.places(events), integers(kept["_v"])])
        group = np.concatenate([number[own], integers(kept["_g"])])
        wanted = events.select(self.rows)
        rows = pa.concat_tables([wanted, kept.select(self.rows).cast(wanted.schema)])
        table = rows.append_column("code", pa.array(stretches.holding(group, place)))
        same = encode(table.columns, table.num_rows)
        different = table.take(pa.array(first_rows(same)))
        order = self.sorted_rows(different)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        at = rank[same]
        counts = np.zeros(len(order), dtype=np.int64)
        counts[at[events.num_rows :]] = integers(kept["_n"])
        return _Board(different.take(pa.array(order)).combine_chunks(), at[: len(own)], counts)

    # -- what is said ----------------------------------------------------------------------

    def _sayings(
        self, members: MemberIndex, stretches: _Stretches, board: _Board, changes: Changes
    ) -> Sayings:
        function, rows, found = self._function, self._rows(board), Sayings()
        carries = self._carries(members, stretches)
        moved = board.of_event[changes.row]
        of = board.stretch[moved]
        order = np.argsort(of, kind="stable")  # which leaves those of a stretch in order of time
        columns = (changes.time[order], moved[order], changes.weight[order])
        listed: list[Change] = list(zip(*(each.tolist() for each in columns), strict=True))
        ends = np.searchsorted(of[order], np.arange(len(stretches.low) + 1)).tolist()
        lines = board.lines(len(stretches.low))
        for number, line in enumerate(lines):
            told = Line(function, rows, line, carries[number])
            play(told, listed[ends[number] : ends[number + 1]], found)
        return found

    def _rows(self, board: _Board) -> Rows:
        """What functions look at in each row."""
        peers = peers_of(board.rows, board.stretch, self.order)
        differs = with_first(False, peers[1:] != peers[:-1])[: len(peers)]
        return Rows(
            np.cumsum(differs).tolist(),
            self._scale(board),
            self._amounts(board),
            self._codes(board),
        )

    def _scale(self, board: _Board) -> list[float]:
        """Where rows stand by the first sort key; NULLs are infinitely far."""
        if not self.order or self._function.is_by_rows:
            return [0] * board.rows.num_rows
        sort = self.order[0]
        null = -INFINITE if sort.nulls_first else INFINITE
        is_there = mask_of(board.rows[sort.column])[:-1].tolist()
        places = self.places(board.rows).tolist()
        return [place if there else null for place, there in zip(places, is_there, strict=True)]

    def _amounts(self, board: _Board) -> list[Amount]:
        if self.function not in SUMS:
            return []
        ones = np.ones(board.rows.num_rows, dtype=np.int64)
        return self._joined(self._parts(board.rows, ones))

    def _parts(self, rows: pa.Table, counts: Ints) -> list[Ints]:
        """How many values rows have, and their sums in parts."""
        if self.argument is None:
            return [counts, np.zeros_like(counts), np.zeros_like(counts)]
        column = rows[self.argument]
        valid = mask_of(column)[:-1]
        weight = np.where(valid, counts, 0)
        if self.function == "count":
            return [weight, np.zeros_like(weight), np.zeros_like(weight)]
        if pa.types.is_floating(column.type):
            return [weight, *exact_sum.split(doubles_of(column)[:-1], weight, valid)]
        if pa.types.is_decimal(column.type):
            return [weight, *limbs(flat(column), weight)]
        values = integers_of(column)[:-1]
        low = values & ((1 << LOW_BITS) - 1)
        return [weight, (values >> LOW_BITS) * weight, low * weight]

    def _joined(self, parts: list[Ints]) -> list[Amount]:
        """Amounts of the parts of sums."""
        count, *others = (part.tolist() for part in parts)
        if len(others) == 2:
            pairs = zip(count, *others, strict=True)
            return [(n, (high << LOW_BITS) + low, 0) for n, high, low in pairs]
        if len(others) == LIMBS:
            totals = joined(parts[1:]).tolist()
            return [(n, total, 0) for n, total in zip(count, totals, strict=True)]
        found = []
        for n, *split in zip(count, *others, strict=True):
            total = sum(limb << shift for limb, shift in zip(split, _SHIFTS, strict=False))
            odd = split[5] + (split[6] << ODD_BITS) + (split[7] << (2 * ODD_BITS))
            found.append((n, total, odd))
        return found

    def _carries(self, members: MemberIndex, stretches: _Stretches) -> list[Amount]:
        """The amounts of what lies before stretches."""
        if not self._function.has_carry:
            return [(0, 0, 0)] * len(stretches.low)
        name = f"{self.function} of {self.argument}"
        parts = members.sums_before(stretches.number, stretches.low, name, self._sums_of)
        return self._joined(parts)

    def _sums_of(self, rows: pa.Table) -> list[Ints]:
        return self._parts(rows, integers(rows["_n"]))

    def _codes(self, board: _Board) -> list[int | None]:
        """The values that functions choose among, as numbers in their order."""
        if self.function in (*SUMS, "ntile") or self.argument is None:
            return []
        return board.ranked(self.argument)[0]

    # -- what is written -------------------------------------------------------------------

    def _moved(self, changes: Changes, events: pa.Table, number: Ints) -> pa.Table:
        rows = events.take(pa.array(changes.row)).select(self.rows)
        places = self.places(events)[changes.row]
        arrays = map(pa.array, (number[changes.code], places, changes.weight))
        table = pa.Table.from_arrays([*arrays, *rows.columns], names=self.member_schema.names)
        return merged_members([table.cast(self.member_schema)])

    def _output(self, sayings: Sayings, board: _Board) -> pa.Table:
        time, row, weight = (
            np.array(each, dtype=np.int64) for each in (sayings.time, sayings.row, sayings.weight)
        )
        rows = board.rows.take(pa.array(row)).select(self.rows)
        times = map(pa.array, (time, np.full(len(row), FOREVER), weight))
        arrays = [*times, *rows.columns, self._told(sayings, board)]
        return pa.Table.from_arrays(arrays, names=self.output_schema.names).cast(self.output_schema)

    def _numbers(self, told: list[Told]) -> pa.Array:
        if not pa.types.is_decimal(self.result):
            return pa.array(told, self.result)
        valid = np.array([each is not None for each in told], np.bool_)
        return column_of(np.array([each or 0 for each in told], object), self.result, valid)

    def _told(self, sayings: Sayings, board: _Board) -> pa.ChunkedArray | pa.Array:
        if self.function in (*SUMS, "ntile") or self.argument is None:
            return self._numbers(sayings.told)
        example = board.ranked(self.argument)[1]
        chosen = [None if code is None else example[int(code)] for code in sayings.told]
        return board.rows[self.argument].take(pa.array(chosen, pa.int64()))


def _has_fractions(type_: pa.DataType) -> bool:
    return bool(pa.types.is_floating(type_) or pa.types.is_decimal(type_))


@dataclass(frozen=True)
class _Groups:
    """The partitions of a step: their numbers, and how many rows they have."""

    number: Ints
    count: Ints


def _ranked_around(
    members: MemberIndex, groups: _Groups, code: Ints, place: Ints, far: Ints
) -> tuple[Ints, Ints]:
    """Places with so many rows of the partition before and behind each place, or its ends."""
    low, high = np.full(len(code), LEAST), np.full(len(code), MOST)
    number, count = groups.number[code], groups.count[code]
    first = members.before(number, place) - far
    last = members.up_to(number, place) + far
    some = marked(first > 0)
    low[some] = np.minimum(members.around(number[some], first[some])[0], place[some])
    some = marked(last < count)
    end = members.around(number[some], last[some])[1]
    high[some] = np.maximum(np.where(end == MOST, MOST, end - 1), place[some])
    return low, high


@dataclass(frozen=True)
class _Stretches:
    """Pieces of partitions, in order of the partitions' numbers and of places."""

    code: Ints
    number: Ints
    low: Ints
    high: Ints

    def holding(self, group: Ints, place: Ints) -> Ints:
        """In which of them each row is."""
        numbers = np.concatenate([self.number, group])
        places = np.concatenate([self.low, place])
        is_row = np.arange(len(numbers)) >= len(self.number)
        order = np.lexsort((is_row, places, numbers))
        found = np.empty(len(order), dtype=np.int64)
        found[order] = np.cumsum(~is_row[order]) - 1
        result: Ints = found[len(self.number) :]
        return result


@dataclass(frozen=True)
class _Board:
    """The different rows of a step in order of stretch, with how often each was there."""

    rows: pa.Table
    of_event: Ints
    """Which of them each event is of."""
    counts: Ints

    @property
    def stretch(self) -> Ints:
        """The stretch of each row."""
        return integers(self.rows["code"])

    def lines(self, stretches: int) -> list[list[int]]:
        """The rows that were there, of each stretch, in order and as often as they were."""
        repeated = np.repeat(np.arange(len(self.counts)), self.counts)
        ends = np.searchsorted(self.stretch[repeated], np.arange(stretches + 1)).tolist()
        listed = repeated.tolist()
        return [listed[ends[n] : ends[n + 1]] for n in range(stretches)]

    def ranked(self, name: str) -> tuple[list[int | None], list[int]]:
        """The ranks of a column's different values, None for NULL; and a row of each of them."""
        valid = marked(mask_of(self.rows[name])[:-1])
        found: list[int | None] = [None] * self.rows.num_rows
        if len(valid) == 0:
            return found, []
        codes = ranks(comparable(self.rows[name].take(pa.array(valid)))) - 1
        for row, code in zip(valid.tolist(), codes.tolist(), strict=True):
            found[row] = code
        return found, valid[first_rows(codes)].tolist()

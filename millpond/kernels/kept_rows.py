"""max_by, first, string_agg, array_agg, … and aggregates of the user: a group's rows, in order.

The rows that such an aggregate reads are kept by a place (``ordered``), an integer that their first
sort key gives them. Of those that are told by one row, a step that takes m rows out of a group can
make none the first that was not among the first m + 1, so it reads these. The others read them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrays import closed
from millpond.kernels.columns import Values, integers, marked, mask_of, with_last
from millpond.kernels.extremes import NOTHING, greatest_of_counts
from millpond.kernels.grouped import AggregateSpec, Group
from millpond.kernels.groups import Bools, Ints, encode, first_rows
from millpond.kernels.ordered import LEAST, MOST
from millpond.kernels.ranked import Ranked
from millpond.kernels.sorts import Sort, places, sorted_rows
from millpond.kernels.timeline import order_of


@dataclass(frozen=True)
class RowOrder:
    """Which columns an aggregate reads of a row, and how rows are in order."""

    columns: tuple[str, ...]
    needed: tuple[str, ...]
    """A row in which one of these is NULL does not count."""
    sorts: tuple[Sort, ...]
    value: str
    """What the first row tells."""

    @staticmethod
    def of(spec: AggregateSpec) -> RowOrder:
        """The order of an aggregate: its arguments come first, then what tells when a row came."""
        names = tuple(f"r{column}" for column in spec.columns)
        columns = tuple(dict.fromkeys(names))
        if spec.function in ("max_by", "min_by") and spec.definition is None:
            by, value, *arrival = names
            first = Sort(by, spec.function == "max_by", True)
            others = dict.fromkeys(each for each in (*arrival, value) if each != by)
            return RowOrder(columns, (by,), (first, *_sorts(others, False)), value)
        width = 1 if spec.definition is None else len(spec.definition.parameters)
        own = names[:width]
        falls = spec.function == "last" and spec.definition is None
        in_turn = dict.fromkeys((*names[width:], *own))
        return RowOrder(columns, own, _sorts(in_turn, falls), own[0])


def _sorts(names: Iterable[str], is_descending: bool) -> tuple[Sort, ...]:
    return tuple(Sort(name, is_descending, True) for name in names)


@dataclass(frozen=True)
class Board:
    """The different rows of a step, in order of group and sort keys; what comes and goes."""

    rows: pa.Table
    code: Ints
    """Of each row, its group."""
    count: Ints
    """How often each of them was kept."""
    change: Ints
    """Of each change, its row; anything where it has none."""
    weight: Ints
    """Of each change, how many rows come or go."""

    @property
    def starts(self) -> Ints:
        """Where the rows of each group begin, and where those of the last end."""
        return np.searchsorted(self.code, np.arange(int(self.code.max(initial=-1)) + 2))


def events_of(group: Group, order: RowOrder) -> pa.Table:
    """The columns that an aggregate reads, of the elements of a step."""
    columns = [_plain(group.events[f"a{name[1:]}"]) for name in order.columns]
    return pa.table(dict(zip(order.columns, columns, strict=True)))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with one zero only, so that equal rows are alike."""
    return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column


def weights_of(group: Group, events: pa.Table, order: RowOrder) -> Ints:
    """How many rows come or go with each change; none if one of them does not count."""
    row, weight = group.timeline.changes.row, group.timeline.changes.weight
    for name in order.needed:
        weight = np.where(mask_of(events[name])[row], weight, 0)
    return weight


def board_of(
    group: Group, events: pa.Table, order: RowOrder, weight: Ints, kept: pa.Table, kept_code: Ints
) -> Board:
    """The elements of a step and the rows that were kept."""
    own = group.elements.code
    before = kept.select(order.columns).cast(events.schema)
    table = pa.concat_tables([events, before])
    table = table.append_column("code", pa.array(np.concatenate([own, kept_code])))
    same = encode(table.columns, table.num_rows)
    different = table.take(pa.array(first_rows(same)))
    ranked = sorted_rows(different, order.sorts)
    rank = np.empty(len(ranked), dtype=np.int64)
    rank[ranked] = np.arange(len(ranked))
    rows, at = different.take(pa.array(ranked)).combine_chunks(), rank[same]
    count = np.zeros(len(ranked), dtype=np.int64)
    np.add.at(count, at[len(own) :], integers(kept["_n"]))
    change = with_last(at[: len(own)], 0)[group.timeline.changes.row]
    return Board(rows, integers(rows["code"]), count, change, weight)


def row_values(name: str, spec: AggregateSpec, group: Group, ranked: Ranked, slot: int) -> Values:
    """The value of an aggregate that one row tells, at every instant.

    If no row ever goes, no more than that row is kept.
    """
    order = RowOrder.of(spec)
    events = events_of(group, order)
    weight = weights_of(group, events, order)
    before = group.initial(name + "count")
    group.total(name + "count", weight)
    changes = group.timeline.changes
    place = with_last(places(events, order.sorts), 0)[changes.row]
    leaving = np.bincount(changes.code, np.where(weight < 0, -weight, 0), group.groups)
    kept, code, last = _first(ranked, slot, before, leaving.astype(np.int64))
    board = board_of(group, events, order, weight, kept, code)
    is_near = (weight != 0) & (place <= last[changes.code])
    found = _first_of(group, board, is_near)
    if spec.only_come:
        _keep_first(name, group, ranked, slot, order, board, found)
    else:
        keep_rows(ranked, slot, order, board, changes.code)
    return values_of(_told(board, order, found), spec.type)


def _first(ranked: Ranked, slot: int, before: Ints, leaving: Ints) -> tuple[pa.Table, Ints, Ints]:
    """The first kept rows of each group, one more than leave, and up to which place they lie."""
    members, identity = ranked.members, ranked.identities(slot)
    wanted = leaving + 1
    some = marked(wanted < before)
    last = np.full(len(identity), MOST, dtype=np.int64)
    if len(some):
        _, end = members.around(identity[some], wanted[some])
        last[some] = np.where(end == MOST, MOST, end - 1)
    kept, code = _read(ranked, slot, marked(before), last)
    return kept, code, last


def all_rows(ranked: Ranked, slot: int, before: Ints) -> tuple[pa.Table, Ints]:
    """All kept rows, and their groups."""
    last = np.full(len(before), MOST, dtype=np.int64)
    return _read(ranked, slot, marked(before), last)


def _read(ranked: Ranked, slot: int, groups: Ints, last: Ints) -> tuple[pa.Table, Ints]:
    identity = ranked.identities(slot)
    low = np.full(len(groups), LEAST, dtype=np.int64)
    kept = ranked.members.between(identity[groups], low, last[groups])
    order = np.argsort(identity, kind="stable")
    return kept, order[np.searchsorted(identity[order], integers(kept["_g"]))]


def _first_of(group: Group, board: Board, is_near: Bools) -> Ints:
    """At each instant the first row that is there, or -1."""
    value = np.where(is_near, -board.change, NOTHING)
    old = marked(board.count)
    old = old[order_of(board.code[old], old)]
    changes = group.timeline.changes
    found = greatest_of_counts(
        group.timeline, changes, value, board.code[old], -old, board.count[old]
    )
    return np.where(found == NOTHING, -1, -found)


def _told(board: Board, order: RowOrder, found: Ints) -> pa.ChunkedArray:
    """What rows tell; NULL where there is none."""
    return board.rows[order.value].take(pa.array(found, mask=found < 0))


def values_of(column: pa.ChunkedArray | pa.Array, type_: pa.DataType) -> Values:
    """The values that a column has at every instant."""
    whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    codes = encode([whole], len(whole))

    def to_arrow(at: Ints) -> pa.Array:
        taken = whole.take(pa.array(at)).cast(type_)
        return pa.concat_arrays(taken.chunks) if taken.num_chunks else pa.array([], type_)

    return Values(codes, mask_of(whole)[:-1], to_arrow)


# -- what is kept ------------------------------------------------------------------------------


def keep_rows(ranked: Ranked, slot: int, order: RowOrder, board: Board, code: Ints) -> None:
    """Notes all rows that come and go; ``code`` is the group of each change."""
    _move(ranked, slot, order, board, board.change, code, board.weight)


def _keep_first(
    name: str,
    group: Group,
    ranked: Ranked,
    slot: int,
    order: RowOrder,
    board: Board,
    found: Ints,
) -> None:
    """Notes that of each group the row that is the first at the end is kept, and no other."""
    final = found[group.timeline.is_last]
    group.kept[name + "count"] = pa.array((final >= 0).astype(np.int64))
    new, old = final[final >= 0], marked(board.count)
    row = np.concatenate([new, old])
    weight = np.concatenate([np.ones(len(new), dtype=np.int64), -board.count[old]])
    _move(ranked, slot, order, board, row, board.code[row], weight)


def _move(
    ranked: Ranked,
    slot: int,
    order: RowOrder,
    board: Board,
    row: Ints,
    code: Ints,
    weight: Ints,
) -> None:
    real = marked(weight)
    rows = board.rows.take(pa.array(row[real])).select(order.columns)
    ranked.move_rows(slot, code[real], places(rows, order.sorts), weight[real], rows)


# -- texts and ARRAYs --------------------------------------------------------------------------


def joined_rows(name: str, spec: AggregateSpec, group: Group, ranked: Ranked, slot: int) -> Values:
    """string_agg and array_agg: what all rows of a group tell, in order, at every instant."""
    order = RowOrder.of(spec)
    events = events_of(group, order)
    weight = weights_of(group, events, order)
    kept, code = all_rows(ranked, slot, group.initial(name + "count"))
    group.total(name + "count", weight)
    board = board_of(group, events, order, weight, kept, code)
    keep_rows(ranked, slot, order, board, group.timeline.changes.code)
    told = board.rows[order.value]
    if spec.function == "array_agg":
        return values_of(_arrays(list(_contents(group, board)), told), spec.type)
    texts, between = told.to_pylist(), str(spec.parameter)
    joined = [
        between.join(texts[row] for row in rows) if rows else None
        for rows in _contents(group, board)
    ]
    return values_of(pa.array(joined, pa.string()), spec.type)


def _arrays(contents: list[list[int]], told: pa.ChunkedArray) -> pa.Array:
    """The ARRAYs of what some rows tell; NULL of none."""
    counts = np.array([len(rows) for rows in contents], np.int64)
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    rows = pa.array([row for rows in contents for row in rows], pa.int64())
    lists = pa.ListArray.from_arrays(offsets, told.take(rows).combine_chunks())
    return closed(lists, counts > 0)


def _contents(group: Group, board: Board) -> Iterator[list[int]]:
    """The rows of a group at each instant, in order."""
    timeline = group.timeline
    starts, counts = board.starts.tolist(), board.count.tolist()
    changed, weights = board.change.tolist(), board.weight.tolist()
    position, content, rows = 0, dict[int, int](), list[int]()
    instants = zip(
        timeline.code.tolist(), timeline.is_first.tolist(), timeline.last.tolist(), strict=True
    )
    for code, is_first, last in instants:
        if is_first:
            own = range(*starts[code : code + 2]) if code + 1 < len(starts) else range(0)
            content = {row: counts[row] for row in own if counts[row]}
        moved = False
        for at in range(position, last + 1):
            if weights[at]:
                moved = True
                content[changed[at]] = content.get(changed[at], 0) + weights[at]
        position = last + 1
        if is_first or moved:
            content = {row: count for row, count in content.items() if count}
            rows = [row for row in sorted(content) for _ in range(content[row])]
        yield rows

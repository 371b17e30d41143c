"""Aggregates of the user: by a state that is kept, or from the rows of a group (``kept_rows``)."""

import numpy as np
import pyarrow as pa

from millpond.functions.calls import FunctionCode
from millpond.functions.user_function import UserFunction
from millpond.kernels.columns import Values, flat, marked
from millpond.kernels.grouped import AggregateSpec, Group
from millpond.kernels.groups import Ints
from millpond.kernels.kept_rows import (
    Board,
    RowOrder,
    all_rows,
    board_of,
    events_of,
    keep_rows,
    values_of,
    weights_of,
)
from millpond.kernels.ordered import member_schema
from millpond.kernels.ranked import Ranked


def user_values(
    name: str,
    spec: AggregateSpec,
    own: UserFunction,
    group: Group,
    ranked: Ranked | None,
    slot: int,
) -> Values:
    """The aggregate's value at every instant; without ``ranked`` it keeps a state."""
    order = RowOrder.of(spec)
    events = events_of(group, order)
    weight = weights_of(group, events, order)
    before = group.initial(name + "count")
    group.total(name + "count", weight)
    if ranked is None:
        kept, code = _nothing(order, events.schema)
    else:
        kept, code = all_rows(ranked, slot, before)
    board = board_of(group, events, order, weight, kept, code)
    if ranked is not None:
        keep_rows(ranked, slot, order, board, group.timeline.changes.code)
    states = _states(name, group) if ranked is None else pa.nulls(group.groups, pa.binary())
    answer = pa.struct([("values", pa.list_(spec.type)), ("state", pa.binary())])
    called = FunctionCode(own.name, own.code, str(own.result), answer, ranked is None)
    columns = [states, *_rows(order, board, group.groups), *_moves(board, group)]
    answered, raised = own.processes.answers(called, columns)
    group.raised |= raised
    if ranked is None:
        at_end = pa.array(group.timeline.code[group.timeline.is_last])
        group.kept[name + "state"] = answered.field("state").take(at_end)
    return values_of(_all_values(answered, group, spec.type), spec.type)


def _nothing(order: RowOrder, schema: pa.Schema) -> tuple[pa.Table, Ints]:
    fields = [schema.field(name) for name in order.columns]
    return member_schema(fields).empty_table(), np.zeros(0, dtype=np.int64)


def _states(name: str, group: Group) -> pa.Array:
    """The state of each group before the step."""
    found: list[bytes | None] = [None] * group.groups
    pairs = zip(group.state_codes.tolist(), group.state[name + "state"].to_pylist(), strict=True)
    for code, state in pairs:
        found[code] = state
    return pa.array(found, pa.binary())


def _rows(order: RowOrder, board: Board, groups: int) -> list[pa.Array]:
    """The rows of each group, in order, and how often each was there."""
    arrays = [flat(board.rows[name]) for name in order.needed]
    rows = pa.StructArray.from_arrays(arrays, [str(place) for place in range(len(arrays))])
    offsets = np.searchsorted(board.code, np.arange(groups + 1))
    return [_lists(offsets, rows), _lists(offsets, pa.array(board.count))]


def _moves(board: Board, group: Group) -> list[pa.Array]:
    """Which rows of each group move, how many and when, first those that come; its instants."""
    timeline, groups = group.timeline, np.arange(group.groups + 1)
    real = marked(board.weight)
    code, weight = timeline.changes.code[real], board.weight[real]
    first = np.searchsorted(timeline.code, groups)
    moment = np.searchsorted(timeline.last, real) - first[code]
    row = board.change[real] - np.searchsorted(board.code, groups)[code]
    order = np.lexsort((row, weight < 0, moment, code))
    offsets = np.searchsorted(code, groups)
    lists = [_lists(offsets, pa.array(each[order])) for each in (row, weight, moment)]
    return [*lists, pa.array(np.diff(first))]


def _lists(offsets: Ints, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _all_values(answered: pa.StructArray, group: Group, type_: pa.DataType) -> pa.Array:
    """The values at all instants; NULL in groups of which there is no answer."""
    lists = answered.field("values")
    if not group.raised:
        return lists.flatten()
    instants = np.bincount(group.timeline.code, minlength=group.groups).tolist()
    found = zip(lists.to_pylist(), instants, strict=True)
    return pa.array([v for own, size in found for v in own or [None] * size], type_)

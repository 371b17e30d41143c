"""DISTINCT, EXCEPT and INTERSECT: count equal rows, derive how often each is in the result."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.kernels.aggregate import element_schema, emit
from millpond.kernels.columns import flat, integers, marked, with_first, with_last
from millpond.kernels.groups import Bools, Ints, encode, first_rows
from millpond.kernels.kernel import Keyed
from millpond.kernels.timeline import Changes, Elements, Timeline, marks_at, order_of

RULES: dict[str, Callable[[Ints, Ints], Ints]] = {
    "distinct": lambda left, right: (left > 0).astype(np.int64),
    "except": lambda left, right: ((left > 0) & (right <= 0)).astype(np.int64),
    "except_all": lambda left, right: np.maximum(left - right, 0),
    "intersect": lambda left, right: ((left > 0) & (right > 0)).astype(np.int64),
    "intersect_all": np.minimum,
}
"""How often a row is in the result, from how often it is in the left and in the right input."""


@dataclass(frozen=True)
class CountKernel(Keyed):
    """Rows ``k0…`` with ``_side`` 0 (left) or 1 (right) in; the rows that remain out."""

    rule: str

    @property
    def state_schema(self) -> pa.Schema:
        """One row for each row that is somewhere: how often left, how often right."""
        numbers = [pa.field(n, pa.int64()) for n in ("_n", "left", "right")]
        return pa.schema(self.key_fields + numbers)

    @property
    def output_schema(self) -> pa.Schema:
        """The elements put out."""
        return element_schema(self.key_types)

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The elements of the step (after, until] and the new counts of the rows it touched."""
        keys = pa.concat_tables([events.select(self.keys), state.select(self.keys)])
        codes = encode([keys[name] for name in self.keys], events.num_rows + state.num_rows)
        groups = int(codes.max(initial=-1)) + 1
        elements = Elements(
            np.arange(events.num_rows),
            codes[: events.num_rows],
            *(integers(events[name]) for name in ("_ts", "_te", "_w")),
        )
        timeline = Timeline.of(elements.changes(until, marks_at(after, groups)))
        side = with_last(integers(events["_side"]), 0)[timeline.changes.row]
        left = self._total(timeline, state, codes, events, "left", side == 0)
        right = self._total(timeline, state, codes, events, "right", side == 1)
        weight = RULES[self.rule](left, right)
        changed = _weight_changed(timeline, weight)
        examples = first_rows(codes)

        def columns(at: Ints) -> list[pa.Array]:
            rows = pa.array(examples[timeline.code[at]])
            return [flat(keys[name].take(rows)) for name in self.keys]

        output = emit(timeline, weight, changed, columns, self.output_schema)
        last = marked(timeline.is_last)
        counts = [left[last] + right[last], left[last], right[last]]
        arrays = [*columns(last), *map(pa.array, counts)]
        return output, pa.Table.from_arrays(arrays, schema=self.state_schema)

    @staticmethod
    def _total(
        timeline: Timeline,
        state: pa.Table,
        codes: Ints,
        events: pa.Table,
        name: str,
        counted: Bools,
    ) -> Ints:
        initial = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
        initial[codes[events.num_rows :]] = integers(state[name])
        return timeline.running(np.where(counted, timeline.changes.weight, 0), initial)


def _weight_changed(timeline: Timeline, weight: Ints) -> Bools:
    if len(weight) == 0:
        return np.zeros(0, dtype=np.bool_)
    return np.asarray((weight != with_first(0, weight[:-1])) & ~timeline.is_first)


def changes_of(table: pa.Table, columns: list[str], until: int) -> pa.Table:
    """The changes of elements of which no two cancel: nothing is summed, only put in order."""
    start, end, weight = (integers(table[name]) for name in ("_ts", "_te", "_w"))
    ending = marked(end <= until)
    time = np.concatenate([start, end[ending]])
    signed = np.concatenate([weight, -weight[ending]])
    order = order_of(time, signed)
    rows = pa.array(np.concatenate([np.arange(len(start)), ending])[order])
    arrays = [pa.array(time[order]), pa.array(signed[order])]
    return pa.Table.from_arrays(
        [*arrays, *(table[name].take(rows) for name in columns)], names=["_ts", "_w", *columns]
    )


def net(table: pa.Table, columns: list[str], until: int) -> pa.Table:
    """The net change of each row at each instant: columns ``_ts``, ``_w``, then the rows'."""
    codes = encode([table[name] for name in columns], table.num_rows)
    elements = Elements(
        np.arange(table.num_rows), codes, *(integers(table[name]) for name in ("_ts", "_te", "_w"))
    )
    return net_of(elements.changes(until), table, columns)


def net_of(changes: Changes, table: pa.Table, columns: list[str]) -> pa.Table:
    """The changes summed by row and instant, zeros left out, in order of time."""
    timeline = Timeline.of(changes)
    if len(timeline.last) == 0:
        weight = np.zeros(0, dtype=np.int64)
    else:
        starts = with_first(0, timeline.last[:-1] + 1)
        weight = np.add.reduceat(changes.weight, starts)
    some = marked(weight != 0)
    some = some[order_of(timeline.time[some], weight[some])]
    rows = pa.array(changes.row[timeline.last[some]])
    arrays = [pa.array(timeline.time[some]), pa.array(weight[some])]
    return pa.Table.from_arrays(
        [*arrays, *(table[name].take(rows) for name in columns)], names=["_ts", "_w", *columns]
    )

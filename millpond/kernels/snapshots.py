"""Rstream: a relation's whole content at given instants.

How much that is depends on the instants, not on the input: ``limit`` says how far a step may go.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.kernels.columns import flat, integers, marked, with_first
from millpond.kernels.counts import net_of
from millpond.kernels.groups import Ints, encode, first_rows
from millpond.kernels.timeline import Changes, order_of
from millpond.schema import BEGINNING


@dataclass(frozen=True)
class SnapshotsKernel:
    """Elements ``c0…`` in; the content at each instant, as stream elements, out.

    The state has a row for each row and end: how often it is there until then. It may lie in
    buckets by ``c0…``: an instant's content is the union of what the buckets put out.
    """

    types: tuple[pa.DataType, ...]

    @property
    def columns(self) -> list[str]:
        """The names of the data columns, by which a state may lie in buckets."""
        return [f"c{i}" for i in range(len(self.types))]

    @property
    def keys(self) -> list[str]:
        """The names of the columns that tell rows of the state apart."""
        return [*self.columns, "_te"]

    @property
    def state_schema(self) -> pa.Schema:
        """Row, end and weight."""
        fields = [pa.field(n, t) for n, t in zip(self.columns, self.types, strict=True)]
        return pa.schema([*fields, pa.field("_te", pa.int64()), pa.field("_n", pa.int64())])

    @property
    def output_schema(self) -> pa.Schema:
        """Time, weight and row."""
        numbers = [pa.field(name, pa.int64()) for name in ("_ts", "_w")]
        return pa.schema(numbers + [self.state_schema.field(name) for name in self.columns])

    def run(
        self, events: pa.Table, state: pa.Table, instants: Ints, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The content at each instant, and the rows of the state that changed.

        ``events`` start in the step. Where it has instants, ``state`` is the whole state; where it
        has none, that of the events' keys will do. A row that is gone has ``_n`` = 0.
        """
        elements = pa.concat_tables([self._as_elements(state), events.select(self._names)])
        output = contents(elements, self.columns, instants).cast(self.output_schema)
        return output, self._changed(elements, state.num_rows, until)

    @property
    def _names(self) -> list[str]:
        return ["_ts", "_te", "_w", *self.columns]

    def _as_elements(self, state: pa.Table) -> pa.Table:
        started = pa.array(np.full(state.num_rows, BEGINNING))
        columns = [started, state["_te"], state["_n"], *(state[name] for name in self.columns)]
        return pa.Table.from_arrays(columns, names=self._names)

    def _changed(self, elements: pa.Table, old: int, until: int) -> pa.Table:
        """The sums of what came, and nothing for what has ended."""
        codes = encode([elements[name] for name in self.keys], elements.num_rows)
        groups = int(codes.max(initial=-1)) + 1
        end, weight = integers(elements["_te"]), integers(elements["_w"])
        total = np.zeros(groups, dtype=np.int64)
        np.add.at(total, codes, np.where(end > until, weight, 0))
        before = np.zeros(groups, dtype=np.int64)
        before[codes[:old]] = weight[:old]
        changed = marked(total != before)
        example = pa.array(first_rows(codes)[changed])
        columns = [flat(elements[name].take(example)) for name in self.keys]
        return pa.Table.from_arrays([*columns, pa.array(total[changed])], schema=self.state_schema)


def contents(elements: pa.Table, columns: list[str], instants: Ints) -> pa.Table:
    """The rows whose elements cover each instant, with their summed weight."""
    start = np.searchsorted(instants, integers(elements["_ts"]))
    end = np.searchsorted(instants, integers(elements["_te"]))
    counts = np.maximum(end - start, 0)
    rows = np.repeat(np.arange(elements.num_rows), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    time = instants[start[rows] + within]
    codes = encode([elements[name] for name in columns], elements.num_rows)
    weight = integers(elements["_w"])[rows]
    return net_of(Changes.ordered(rows, codes[rows], time, weight), elements, columns)


def still_open(elements: pa.Table, columns: list[str], until: int) -> pa.Table:
    """The elements that last beyond the step; those that cancel are dropped."""
    lasting = elements.filter(pa.array(integers(elements["_te"]) > until))
    codes = encode([lasting[name] for name in (*columns, "_te")], lasting.num_rows)
    order = order_of(codes, np.zeros(len(codes), dtype=np.int64))
    if len(order) == 0:
        return lasting
    ordered = codes[order]
    starts = with_first(0, marked(ordered[1:] != ordered[:-1]) + 1)
    weight = np.add.reduceat(integers(lasting["_w"])[order], starts)
    some = weight != 0
    kept = lasting.take(pa.array(order[starts[some]]))
    at = kept.schema.get_field_index("_w")
    return kept.set_column(at, "_w", pa.array(weight[some]))


def limit(start: Ints, end: Ints, instants: Ints, until: int, most_rows: int) -> int:
    """The time up to which a step puts out at most so many rows, or those of one instant.

    ``start`` and ``end`` are the elements' that are open or start in the step, ``instants`` its
    instants in order.

    >>> limit(np.array([0, 0]), np.array([9, 9]), np.array([1, 2, 3, 4]), 100, 5)
    2
    """
    taken = _first_that_fit(_there(start, end, instants), most_rows)
    return until if taken == len(instants) else int(instants[taken - 1])


def _there(start: Ints, end: Ints, instants: Ints) -> Ints:
    """How many elements cover each instant."""
    changes = np.zeros(len(instants) + 1, dtype=np.int64)
    first, last = np.searchsorted(instants, start), np.searchsorted(instants, end)
    np.add.at(changes, first, 1)
    np.add.at(changes, np.maximum(first, last), -1)
    return np.cumsum(changes)[:-1]


def _first_that_fit(sizes: Ints, most: int) -> int:
    fitting = int(np.searchsorted(np.cumsum(sizes), most, "right"))
    return min(max(fitting, 1), len(sizes))


def slide_instants(start: Ints, end: Ints, slide: int, after: int, until: int) -> Ints:
    """The multiples of the slide within the step at which one of the intervals is open."""
    first, counts = _slides(start, end, slide, after, until)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    found: Ints = (np.repeat(first, counts) + within) * slide
    return found


def slide_limit(start: Ints, end: Ints, slide: int, after: int, until: int, most: int) -> int:
    """The time up to which a slide speaks at most so many times, at least once.

    >>> slide_limit(np.array([0]), np.array([10**9]), 1, -1, 10**9, most=1000)
    999
    """
    first, counts = _slides(start, end, slide, after, until)
    total = np.cumsum(counts)
    if len(total) == 0 or total[-1] <= most:
        return until
    place = int(np.searchsorted(total, max(most, 1)))
    left = max(most, 1) - int(total[place] - counts[place])
    return int((first[place] + left - 1) * slide)


def _slides(start: Ints, end: Ints, slide: int, after: int, until: int) -> tuple[Ints, Ints]:
    """Disjoint ranges, in order, of multiples of the slide: the first of each and how many."""
    first = -(-np.maximum(start, after + 1) // slide)
    last = np.minimum(end - 1, until) // slide
    order = np.argsort(first, kind="stable")
    first, last = first[order], last[order]
    told = np.maximum.accumulate(np.append(first[:1] - 1, last))[: len(last)]
    first = np.maximum(first, told + 1)
    return first, np.maximum(last - first + 1, 0)

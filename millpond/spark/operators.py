"""Running operators: each turns what its fragments read in a step into a page of output.

``step(until)`` covers (cursor, until] completely and moves the cursor. Whatever is kept between
steps is in queues (windows, relations) and synopses (groups).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millpond.cql.algebra import RangeWindow
from millpond.planning.physical import (
    AggregateOperator,
    ArrivalsOperator,
    CountOperator,
    DifferenceOperator,
    JoinOperator,
    Operator,
    OutputOperator,
    QueueRead,
    RowsWindowOperator,
    SnapshotsOperator,
)
from millpond.planning.predicates import all_columns, conjuncts
from millpond.schema import BEGINNING, Schema
from millpond.spark.expressions import lower
from millpond.spark.fragments import ALIVE, ENDED, STARTED, Fragment, Outputs, branches
from millpond.spark.frames import Frames, Selection, collect, union
from millpond.spark.kernels.aggregate import AggregateKernel, AggregateSpec, element_schema
from millpond.spark.kernels.columns import integers
from millpond.spark.kernels.counts import CountKernel, changes_of, net
from millpond.spark.kernels.groups import Ints
from millpond.spark.kernels.rows_window import RowsWindowKernel
from millpond.spark.kernels.snapshots import contents, slide_instants, still_open
from millpond.spark.pages import Page
from millpond.spark.queues import Queue, Reader
from millpond.spark.synopses import GroupSynopsis
from millpond.spark.types import ARROW
from millpond.spark.workers import run_in_workers

BROADCAST_ROWS = 200_000
"""The new side of a join is broadcast up to this many rows."""


@dataclass
class Surroundings:
    """What operators share: the queues, Spark, and the settings that concern them."""

    queues: dict[str, Queue]
    frames: Frames
    since: dict[str, int]
    """Streams are read after these times: a query sees what comes after its registration."""
    seed: int
    driver_rows: int
    partitions: int


class Kernel(Protocol):
    """A keyed operator as a function of tables; see ``kernels``."""

    @property
    def keys(self) -> list[str]:
        """The names of its key columns."""
        ...

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of its state."""
        ...

    @property
    def output_schema(self) -> pa.Schema:
        """The columns it puts out."""
        ...

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The output of a step and the new state of the keys it touched."""
        ...


class RunningOperator:
    """What all running operators share: fragments, cursor and subscriptions."""

    needs: frozenset[str] = frozenset({STARTED})

    def __init__(self, operator: Operator, around: Surroundings, cursor: int) -> None:
        self.operator = operator
        self.around = around
        self.cursor = cursor
        self.fragments = [
            Fragment(
                node, around.queues, around.frames, around.since, around.seed, self.outputs(index)
            )
            for index, node in enumerate(operator.inputs)
        ]
        self.subscriptions: list[tuple[Queue, Reader]] = []
        for index, fragment in enumerate(self.fragments):
            self.subscriptions += fragment.subscribe(cursor, self.needs_of(index))

    def needs_of(self, index: int) -> frozenset[str]:
        """What the operator asks of its n-th fragment."""
        return self.needs

    def outputs(self, index: int) -> Outputs:
        """The columns it wants of its n-th fragment."""
        return Outputs.all_of(self.operator.inputs[index])

    @property
    def output_schema(self) -> pa.Schema:
        """The Arrow schema of the pages it writes."""
        return element_schema(arrow_types(self.operator.schema))

    @property
    def horizon(self) -> int:
        """How far its inputs are complete."""
        return min(queue.heartbeat for queue, _ in self.subscriptions)

    def waiting(self, until: int) -> int:
        """About how many rows a step up to ``until`` would read."""
        return sum(fragment.waiting(self.cursor, until) for fragment in self.fragments)

    def has_work(self, until: int) -> bool:
        """Whether a step up to ``until`` could put anything out."""
        if until <= self.cursor:
            return False
        return any(
            fragment.waiting(self.cursor, until) or self._ends(index, until)
            for index, fragment in enumerate(self.fragments)
        )

    def _ends(self, index: int, until: int) -> int:
        if ENDED not in self.needs_of(index):
            return 0
        return self.fragments[index].ending(self.cursor, until)

    def step(self, until: int) -> pa.Table:
        """Everything the operator puts out in (cursor, until]."""
        try:
            output = (
                self.run(self.cursor, until)
                if self.has_work(until)
                else self.output_schema.empty_table()
            )
        finally:
            self.around.frames.release()
        self.skip(until)
        return output

    def skip(self, until: int) -> None:
        """Moves the cursor over a step in which nothing happens."""
        self.cursor = until
        for _, reader in self.subscriptions:
            reader.cursor = until

    def limited(self, horizon: int, most: int) -> int:
        """The latest time up to which a step reads about ``most`` rows, or the horizon."""
        if self.waiting(horizon) <= most:
            return horizon
        times: list[tuple[int, int, Page]] = []
        for queue in {id(queue): queue for queue, _ in self.subscriptions}.values():
            times += [
                (page.last, page.rows, page)
                for page in queue.pages
                if page.last > self.cursor and page.first <= horizon
            ]
        times.sort(key=lambda each: each[0])
        total, until = 0, self.cursor
        for last, rows, page in times:
            if total + rows > most:
                inside = page.row_time(min(most - total, page.rows - 1)) - 1
                return min(max(until, inside, self.cursor + 1), horizon)
            total, until = total + rows, last
        return horizon

    def run(self, after: int, until: int) -> pa.Table:
        """The work of a step that has any."""
        raise NotImplementedError

    @property
    def state_bytes(self) -> int:
        """The memory of the synopses this operator owns."""
        return 0

    def close(self) -> None:
        """Leaves its queues."""
        for queue, reader in self.subscriptions:
            queue.readers = [each for each in queue.readers if each is not reader]


def arrow_types(schema: Schema) -> tuple[pa.DataType, ...]:
    """The Arrow types of a schema's columns."""
    return tuple(ARROW[type_] for type_ in schema.types)


class RunningKeyed(RunningOperator):
    """An operator whose work is a kernel over its keys."""

    kernel: Kernel
    synopsis: GroupSynopsis

    @property
    def output_schema(self) -> pa.Schema:
        """The Arrow schema of the pages it writes."""
        return self.kernel.output_schema

    @property
    def event_schema(self) -> pa.Schema:
        """The columns the kernel reads."""
        raise NotImplementedError

    def events(self, after: int, until: int) -> DataFrame | None:
        """What the kernel reads in this step."""
        raise NotImplementedError

    def run(self, after: int, until: int) -> pa.Table:
        """The kernel, in the driver for small steps, in Spark's workers for large ones."""
        rows = self.waiting(until) + sum(self._ends(i, until) for i in range(len(self.fragments)))
        events = self.events(after, until)
        if events is not None and self.kernel.keys and rows > self.around.driver_rows:
            return self._run_in_workers(events, after, until)
        table = collect(events, self.event_schema)
        state = self.synopsis.query(table) if self.kernel.keys else self.synopsis.all()
        output, state = self.kernel.run(table, state, after, until)
        self.synopsis.insert(state)
        return output

    def _run_in_workers(self, events: DataFrame, after: int, until: int) -> pa.Table:
        output, state = run_in_workers(
            self.kernel,
            events,
            self.event_schema,
            self.synopsis.all(),
            self.around.frames,
            (after, until),
            self.around.partitions,
        )
        self.synopsis.insert(state)
        return output

    @property
    def state_bytes(self) -> int:
        """The memory of the groups' state."""
        return self.synopsis.bytes


def _events_schema(
    numbers: tuple[str, ...], prefixes: list[tuple[str, tuple[pa.DataType, ...]]]
) -> pa.Schema:
    fields = [
        pa.field(f"{prefix}{i}", type_)
        for prefix, types in prefixes
        for i, type_ in enumerate(types)
    ]
    return pa.schema([pa.field(name, pa.int64()) for name in numbers] + fields)


class RunningAggregate(RunningKeyed):
    """GROUP BY and global aggregation."""

    needs = frozenset({STARTED, ENDED})

    def __init__(self, operator: AggregateOperator, around: Surroundings, cursor: int) -> None:
        arguments = list(
            dict.fromkeys(a.argument for a in operator.aggregates if a.argument is not None)
        )
        specs = tuple(
            AggregateSpec(
                a.function,
                None if a.argument is None else arguments.index(a.argument),
                ARROW[a.type],
                None if a.argument is None else ARROW[a.argument.type],
                a.distinct,
                a.parameter,
            )
            for a in operator.aggregates
        )
        key_types = tuple(ARROW[key.type] for key in operator.keys)
        self.kernel = AggregateKernel(key_types, specs, operator.is_append_only)
        self.synopsis = GroupSynopsis(self.kernel.state_schema, self.kernel.keys)
        self._outputs = Outputs(
            (
                *((key, f"k{i}") for i, key in enumerate(operator.keys)),
                *((argument, f"a{i}") for i, argument in enumerate(arguments)),
            )
        )
        argument_types = tuple(ARROW[argument.type] for argument in arguments)
        self._event_schema = _events_schema(
            ("_ts", "_te", "_w"), [("k", key_types), ("a", argument_types)]
        )
        super().__init__(operator, around, cursor)

    @property
    def event_schema(self) -> pa.Schema:
        """Keys, arguments, times and weight."""
        return self._event_schema

    def has_work(self, until: int) -> bool:
        """A global aggregate also speaks at the very beginning, of nothing."""
        speaks_first = not self.kernel.keys and self.cursor < BEGINNING <= until
        return speaks_first or super().has_work(until)

    def events(self, after: int, until: int) -> DataFrame | None:
        """Changes of the input, reduced to keys and arguments."""
        return self.fragments[0].changes(after, until)

    def outputs(self, index: int) -> Outputs:
        """Keys and arguments."""
        return self._outputs


class RunningCount(RunningKeyed):
    """DISTINCT, EXCEPT and INTERSECT."""

    needs = frozenset({STARTED, ENDED})

    def __init__(self, operator: CountOperator, around: Surroundings, cursor: int) -> None:
        types = arrow_types(operator.schema)
        self.kernel = CountKernel(types, operator.rule)
        self.synopsis = GroupSynopsis(self.kernel.state_schema, self.kernel.keys)
        self._event_schema = _events_schema(("_ts", "_te", "_w"), [("k", types)]).append(
            pa.field("_side", pa.int64())
        )
        super().__init__(operator, around, cursor)

    @property
    def event_schema(self) -> pa.Schema:
        """The row as key, times, weight and side."""
        return self._event_schema

    def events(self, after: int, until: int) -> DataFrame | None:
        """Changes of both inputs, each with its side."""
        return union(*(fragment.changes(after, until) for fragment in self.fragments))

    def outputs(self, index: int) -> Outputs:
        """The row as key, and the side."""
        columns = all_columns(self.operator.inputs[index])
        side = F.lit(index).cast("long").alias("_side")
        return Outputs(tuple((c, f"k{i}") for i, c in enumerate(columns)), extra=(side,))


class RunningRowsWindow(RunningKeyed):
    """Rows windows, partitioned or not."""

    def __init__(self, operator: RowsWindowOperator, around: Surroundings, cursor: int) -> None:
        types = arrow_types(operator.schema)
        leaf = next(n for n in operator.input.walk() if isinstance(n, QueueRead))
        key_types = tuple(ARROW[column.type] for column in operator.partition)
        self._order = "_seq" if leaf.is_base else "_w"
        self.kernel = RowsWindowKernel(
            key_types, types, operator.rows, operator.slide_rows or 1, leaf.is_base
        )
        self.synopsis = GroupSynopsis(self.kernel.state_schema, self.kernel.keys)
        self._event_schema = _events_schema(("_ts", self._order), [("k", key_types), ("c", types)])
        self._partition = operator.partition
        super().__init__(operator, around, cursor)

    @property
    def event_schema(self) -> pa.Schema:
        """Partition, row, time and order."""
        return self._event_schema

    def events(self, after: int, until: int) -> DataFrame | None:
        """The stream's elements, with their partition."""
        return self.fragments[0].frame(STARTED, after, until)

    def outputs(self, index: int) -> Outputs:
        """Time, order, partition and row."""
        keys = tuple((column, f"k{i}") for i, column in enumerate(self._partition))
        row = Outputs.all_of(self.operator.inputs[index]).expressions
        return Outputs(keys + row, ("_ts", self._order))


class RunningJoin(RunningOperator):
    """The inner join of two relations: new with old, old with new, new with new."""

    needs = frozenset({STARTED, ALIVE})

    def __init__(self, operator: JoinOperator, around: Surroundings, cursor: int) -> None:
        self._width = len(operator.left.schema)
        pair = [F.col(f"c{i}") for i in range(self._width + len(operator.right.schema))]
        self._on = _overlap()
        for part in conjuncts(operator.condition):
            self._on = lower(part, pair) & self._on
        (after,) = branches(operator.post)
        kept = None if after.predicate is None else lower(after.predicate, pair)
        columns = [
            F.greatest("l_ts", "r_ts").alias("_ts"),
            F.least("l_te", "r_te").alias("_te"),
            (F.col("l_w") * F.col("r_w")).alias("_w"),
            *(lower(e, pair).alias(f"c{i}") for i, e in enumerate(after.expressions)),
        ]
        self._selection = Selection(around.frames.session, columns, kept)
        super().__init__(operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """All columns of both sides, numbered through."""
        side, first = ("l", 0) if index == 0 else ("r", self._width)
        names = tuple(side + name for name in ("_ts", "_te", "_w"))
        return Outputs.all_of(self.operator.inputs[index], names, first)

    def run(self, after: int, until: int) -> pa.Table:
        """All pairs of which at least one began in this step."""
        left, right = self.fragments
        new_left = self._new(left, after, until)
        new_right = self._new(right, after, until)
        old_right = right.frame(ALIVE, after, until) if new_left is not None else None
        old_left = left.frame(ALIVE, after, until) if new_right is not None else None
        joined = union(
            self._join(new_left, union(old_right, new_right)), self._join(old_left, new_right)
        )
        return collect(joined, self.output_schema)

    def _new(self, fragment: Fragment, after: int, until: int) -> DataFrame | None:
        frame = fragment.frame(STARTED, after, until)
        if frame is not None and fragment.waiting(after, until) <= BROADCAST_ROWS:
            return F.broadcast(frame)
        return frame

    def _join(self, left: DataFrame | None, right: DataFrame | None) -> DataFrame | None:
        if left is None or right is None:
            return None
        return self._selection.of(left.join(right, self._on, "inner"))


def _overlap() -> Column:
    return F.greatest("l_ts", "r_ts") < F.least("l_te", "r_te")


def stream_schema(types: tuple[pa.DataType, ...]) -> pa.Schema:
    """The schema of elements of computed streams."""
    times = [pa.field(name, pa.int64()) for name in ("_ts", "_w")]
    return pa.schema(times + [pa.field(f"c{i}", t) for i, t in enumerate(types)])


class _RunningStreamOf(RunningOperator):
    """An operator that puts out stream elements."""

    @property
    def output_schema(self) -> pa.Schema:
        """Time, weight and row."""
        return stream_schema(arrow_types(self.operator.schema))

    @property
    def elements(self) -> pa.Schema:
        """The schema of the elements read."""
        return element_schema(arrow_types(self.operator.schema))

    @property
    def columns(self) -> list[str]:
        """The data columns."""
        return [f"c{i}" for i in range(len(self.operator.schema))]

    def started(self, after: int, until: int) -> pa.Table:
        """The elements that start in the step, as stream elements of the first instant on."""
        table = self._rows((STARTED,), after, until, self.elements)
        positive = (integers(table["_w"]) > 0) & (integers(table["_ts"]) > BEGINNING)
        return table.filter(pa.array(positive)).select(["_ts", "_w", *self.columns])

    def net_changes(self, after: int, until: int) -> pa.Table:
        """The net change of each row at each instant of the step."""
        changes = self._rows((STARTED, ENDED), after, until, self.elements)
        return net(changes, self.columns, until)

    def _rows(self, modes: tuple[str, ...], after: int, until: int, schema: pa.Schema) -> pa.Table:
        fragment = self.fragments[0]
        held = fragment.held(modes, after, until)
        if held is not None:
            return held
        return collect(union(*(fragment.frame(mode, after, until) for mode in modes)), schema)


class RunningDifference(_RunningStreamOf):
    """Istream and Dstream."""

    needs = frozenset({STARTED, ENDED})

    def __init__(self, operator: DifferenceOperator, around: Surroundings, cursor: int) -> None:
        super().__init__(operator, around, cursor)
        self._sign = operator.sign

    def run(self, after: int, until: int) -> pa.Table:
        """The net changes of the wanted sign, from the first instant on."""
        table = self.net_changes(after, until)
        weight = integers(table["_w"]) * self._sign
        wanted = (weight > 0) & (integers(table["_ts"]) > BEGINNING)
        return table.set_column(1, "_w", pa.array(weight)).filter(pa.array(wanted))


class RunningArrivals(_RunningStreamOf):
    """An Istream that reads no minus."""

    def run(self, after: int, until: int) -> pa.Table:
        """What starts."""
        return self.started(after, until)


class RunningSnapshots(_RunningStreamOf):
    """Rstream."""

    def __init__(self, operator: SnapshotsOperator, around: Surroundings, cursor: int) -> None:
        super().__init__(operator, around, cursor)
        self._open = self.elements.empty_table()

    def needs_of(self, index: int) -> frozenset[str]:
        """Movers are watched as they come and go; with a slide also while they stay."""
        if index == 0:
            return frozenset({STARTED})
        return frozenset({STARTED, ENDED, ALIVE})

    def run(self, after: int, until: int) -> pa.Table:
        """The content at every instant at which a mover moves."""
        instants = self._instants(after, until)
        new = self._rows((STARTED,), after, until, self.elements)
        elements = pa.concat_tables([self._open, new])
        output = contents(elements, self.columns, instants)
        self._open = still_open(elements, self.columns, until)
        return output

    def outputs(self, index: int) -> Outputs:
        """The row of the relation; of movers only the times."""
        return Outputs.all_of(self.operator.inputs[0]) if index == 0 else Outputs(())

    def has_work(self, until: int) -> bool:
        """Slides may make it speak when nothing moves."""
        return until > self.cursor and (
            super().has_work(until) or any(map(_slide_of, self.fragments))
        )

    def _instants(self, after: int, until: int) -> Ints:
        schema = element_schema([])
        found = []
        for fragment in self.fragments[1:]:
            moves = collect(fragment.changes(after, until), schema)
            found += [integers(moves["_ts"]), integers(moves["_te"])]
            slide = _slide_of(fragment)
            if slide is not None:
                frame = union(
                    fragment.frame(ALIVE, after, until), fragment.frame(STARTED, after, until)
                )
                stays = collect(frame, schema)
                starts, ends = integers(stays["_ts"]), integers(stays["_te"])
                found.append(slide_instants(starts, ends, slide, after, until))
        instants = np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)
        return instants[(instants > max(after, BEGINNING)) & (instants <= until)]

    @property
    def state_bytes(self) -> int:
        """The memory of the content."""
        return int(self._open.nbytes)


def _slide_of(fragment: Fragment) -> int | None:
    node = fragment.node
    return node.slide_ticks if isinstance(node, RangeWindow) else None


class RunningOutput(_RunningStreamOf):
    """What a query delivers."""

    def __init__(self, operator: OutputOperator, around: Surroundings, cursor: int) -> None:
        self._mode = operator.mode
        self._is_net = operator.is_net
        super().__init__(operator, around, cursor)

    def needs_of(self, index: int) -> frozenset[str]:
        """Only changes of relations need to know what ends."""
        return frozenset({STARTED, ENDED} if self._mode == "changes" else {STARTED})

    def run(self, after: int, until: int) -> pa.Table:
        """Net changes, arrivals, or the elements of a computed stream."""
        if self._mode == "changes":
            if self._is_net:
                rows = self._rows((STARTED, ENDED), after, until, self.elements)
                return changes_of(rows, self.columns, until)
            return self.net_changes(after, until)
        if self._mode == "arrivals":
            return self.started(after, until)
        return self._rows((STARTED,), after, until, self.output_schema)

    def outputs(self, index: int) -> Outputs:
        """The row; a computed stream also keeps its weight."""
        names = ("_ts", "_w") if self._mode == "stream" else ("_ts", "_te", "_w")
        return Outputs.all_of(self.operator.inputs[index], names)


_RUNNING: dict[type[Operator], type[RunningOperator]] = {
    AggregateOperator: RunningAggregate,
    CountOperator: RunningCount,
    RowsWindowOperator: RunningRowsWindow,
    JoinOperator: RunningJoin,
    DifferenceOperator: RunningDifference,
    ArrivalsOperator: RunningArrivals,
    SnapshotsOperator: RunningSnapshots,
    OutputOperator: RunningOutput,
}


def start(operator: Operator, around: Surroundings, cursor: int) -> RunningOperator:
    """A running instance of a physical operator."""
    return _RUNNING[type(operator)](operator, around, cursor)

"""Operators whose work is a kernel over their keys: groups, counts of rows, Rows windows."""

from __future__ import annotations

import pyarrow as pa

from millpond.connectors.arrow import ARROW_TYPES
from millpond.cql.expressions import Literal
from millpond.kernels.aggregate import AggregateKernel, AggregateSpec
from millpond.kernels.counts import CountKernel
from millpond.kernels.kernel import Kernel
from millpond.kernels.rows_window import RowsWindowKernel
from millpond.planning.branches import Outputs
from millpond.planning.physical import (
    AggregateOperator,
    CountOperator,
    Operator,
    QueueRead,
    RowsWindowOperator,
)
from millpond.planning.predicates import all_columns
from millpond.schema import BEGINNING, Type
from millpond.spark.fragments import ENDED, STARTED
from millpond.spark.operators.running import RunningOperator, arrow_types
from millpond.spark.steps import EXECUTORS, Outcome, Step
from millpond.spark.surroundings import Surroundings
from millpond.spark.workers import Place, RunKernel, deltas_of, page_of
from millpond.storage.bucketed import BucketedState
from millpond.storage.forms import Keyed


class RunningKeyed(RunningOperator):
    """An operator whose work is a kernel over its keys."""

    state: BucketedState
    kernel: Kernel
    event_schema: pa.Schema
    """The columns the kernel reads."""
    modes: tuple[str, ...] = (STARTED, ENDED)
    """Which elements it reads: in these modes, of all its fragments."""

    def __init__(
        self, identity: str, operator: Operator, around: Surroundings, cursor: int
    ) -> None:
        kernel = self.kernel
        self.state = BucketedState(
            around.frames.store,
            around.states,
            identity,
            Keyed(kernel.state_schema, tuple(kernel.keys)),
            kernel.keys,
            around.limits.buckets,
        )
        super().__init__(identity, operator, around, cursor)

    @property
    def output_schema(self) -> pa.Schema:
        """The Arrow schema of the pages it writes."""
        return self.kernel.output_schema

    def run(self, step: Step) -> Outcome:
        """The kernel, on the rows that come to the driver or where the executors have them."""
        if self.is_elsewhere(step):
            return self._run_on_executors(step)
        rows = self.gathered([(each, self.modes) for each in step.readings], self.event_schema)
        known = self.state.known(rows)
        output, changes = self.kernel.run(rows, known, step.after, step.until)
        outcome = self.in_driver(output, self.state.changed(changes, step.until))
        outcome.driver_bytes = rows.nbytes
        return outcome

    def _run_on_executors(self, step: Step) -> Outcome:
        store, version = self.around.frames.store, self.state.version
        work = RunKernel(
            Place.of(store),
            self.event_schema,
            self.kernel,
            self.identity,
            version,
            step.after,
            step.until,
        )
        parts = [(reading, self.modes) for reading in step.readings]
        is_for_all = not self.kernel.keys
        lines = self.lines(
            parts, work, self.kernel.keys or ["_ts"], len(version.buckets), is_for_all
        )
        return Outcome(page_of(store, lines), EXECUTORS, version.after(deltas_of(lines)))


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

    def __init__(
        self, identity: str, operator: AggregateOperator, around: Surroundings, cursor: int
    ) -> None:
        arguments = list(
            dict.fromkeys(a.argument for a in operator.aggregates if a.argument is not None)
        )
        specs = tuple(
            AggregateSpec(
                a.function,
                None if a.argument is None else arguments.index(a.argument),
                ARROW_TYPES[a.type],
                None if a.argument is None else ARROW_TYPES[a.argument.type],
                a.distinct,
                a.parameter,
            )
            for a in operator.aggregates
        )
        key_types = tuple(ARROW_TYPES[key.type] for key in operator.keys)
        self.kernel = AggregateKernel(key_types, specs, operator.is_append_only)
        self._outputs = Outputs(
            (
                *((key, f"k{i}") for i, key in enumerate(operator.keys)),
                *((argument, f"a{i}") for i, argument in enumerate(arguments)),
            )
        )
        argument_types = tuple(ARROW_TYPES[argument.type] for argument in arguments)
        self.event_schema = _events_schema(
            ("_ts", "_te", "_w"), [("k", key_types), ("a", argument_types)]
        )
        super().__init__(identity, operator, around, cursor)

    def has_work(self, until: int) -> bool:
        """A global aggregate also speaks at the very beginning, of nothing."""
        speaks_first = not self.kernel.keys and self.claimed < BEGINNING <= until
        return speaks_first or super().has_work(until)

    def outputs(self, index: int) -> Outputs:
        """Keys and arguments."""
        return self._outputs


class RunningCount(RunningKeyed):
    """DISTINCT, EXCEPT and INTERSECT."""

    needs = frozenset({STARTED, ENDED})

    def __init__(
        self, identity: str, operator: CountOperator, around: Surroundings, cursor: int
    ) -> None:
        types = arrow_types(operator.schema)
        self.kernel = CountKernel(types, operator.rule)
        self.event_schema = _events_schema(("_ts", "_te", "_w"), [("k", types)]).append(
            pa.field("_side", pa.int64())
        )
        super().__init__(identity, operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """The row as key, and the side."""
        columns = all_columns(self.operator.inputs[index])
        side = (Literal(index, Type.BIGINT), "_side")
        return Outputs((*((c, f"k{i}") for i, c in enumerate(columns)), side))


class RunningRowsWindow(RunningKeyed):
    """Rows windows, partitioned or not."""

    modes = (STARTED,)

    def __init__(
        self, identity: str, operator: RowsWindowOperator, around: Surroundings, cursor: int
    ) -> None:
        types = arrow_types(operator.schema)
        leaf = next(n for n in operator.input.walk() if isinstance(n, QueueRead))
        key_types = tuple(ARROW_TYPES[column.type] for column in operator.partition)
        self._order = "_seq" if leaf.is_base else "_w"
        self.kernel = RowsWindowKernel(
            key_types, types, operator.rows, operator.slide_rows or 1, leaf.is_base
        )
        self.event_schema = _events_schema(("_ts", self._order), [("k", key_types), ("c", types)])
        self._partition = operator.partition
        super().__init__(identity, operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """Time, order, partition and row."""
        keys = tuple((column, f"k{i}") for i, column in enumerate(self._partition))
        row = Outputs.all_of(self.operator.inputs[index]).expressions
        return Outputs(keys + row, ("_ts", self._order))

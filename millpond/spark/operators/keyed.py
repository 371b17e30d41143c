"""Operators whose work is a kernel over their keys: groups, counts of rows, Rows windows."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from millpond.connectors.arrow import ARROW_TYPES
from millpond.cql.expressions import Literal
from millpond.kernels.aggregate import AggregateKernel, AggregateSpec
from millpond.kernels.counts import CountKernel
from millpond.kernels.hashing import buckets
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
from millpond.spark.frames import Frame, union
from millpond.spark.operators.running import RunningOperator, arrow_types
from millpond.spark.steps import EXECUTORS, Outcome, Step
from millpond.spark.surroundings import Surroundings
from millpond.spark.workers import Line, Place, RunKernel, deltas_of, lines_of, page_of
from millpond.storage.forms import Keyed
from millpond.storage.state import Delta, StateVersion
from millpond.storage.state_cache import BucketName
from millpond.storage.synopses import GroupSynopsis


class RunningKeyed(RunningOperator):
    """An operator whose work is a kernel over its keys."""

    keeps_state = True
    kernel: Kernel
    event_schema: pa.Schema
    """The columns the kernel reads."""

    def __init__(
        self, identity: str, operator: Operator, around: Surroundings, cursor: int
    ) -> None:
        buckets = around.limits.buckets if self.kernel.keys else 1
        self.version = StateVersion.empty(buckets)
        self._form = Keyed(self.kernel.state_schema, tuple(self.kernel.keys))
        super().__init__(identity, operator, around, cursor)

    @property
    def output_schema(self) -> pa.Schema:
        """The Arrow schema of the pages it writes."""
        return self.kernel.output_schema

    def events(self, step: Step) -> Frame | None:
        """What the kernel reads in this step."""
        raise NotImplementedError

    def run(self, step: Step) -> Outcome:
        """The kernel, on the rows that come to the driver or where the executors have them."""
        events = self.events(step)
        if events is not None and self.is_large(step):
            return self._run_on_executors(events, step)
        rows = self.plans.collect(events, self.event_schema)
        output, changes = self.kernel.run(rows, self._known(rows), step.after, step.until)
        outcome = self.in_driver(output, self.version.after(self._write(changes, step.until)))
        outcome.driver_bytes = rows.nbytes
        return outcome

    def _run_on_executors(self, events: Frame, step: Step) -> Outcome:
        store, keys = self.around.frames.store, self.kernel.keys
        work = RunKernel(
            Place.of(store),
            self.event_schema,
            self.kernel,
            self.identity,
            self.version,
            step.after,
            step.until,
        )
        buckets = len(self.version.buckets)

        def use(rows: DataFrame) -> list[Line]:
            return lines_of(rows.repartition(buckets, *keys) if keys else rows.coalesce(1), work)

        lines = self.plans.run(events, use)
        return Outcome(page_of(store, lines), EXECUTORS, self.version.after(deltas_of(lines)))

    def _known(self, rows: pa.Table) -> pa.Table:
        """The state of the groups that occur in some rows."""
        if not self.kernel.keys:
            return self._state_of(0).all()
        parts = [
            self._state_of(bucket).query(part) for bucket, part in self._by_bucket(rows).items()
        ]
        return pa.concat_tables(parts) if parts else self.kernel.state_schema.empty_table()

    def _state_of(self, bucket: int) -> GroupSynopsis:
        return self.around.states.state_at(self._name(bucket), self._form, self.version)

    def _name(self, bucket: int) -> BucketName:
        return BucketName(str(self.around.frames.store.directory), self.identity, bucket)

    def _by_bucket(self, rows: pa.Table) -> dict[int, pa.Table]:
        count = len(self.version.buckets)
        if rows.num_rows == 0:
            return {}
        if count == 1:
            return {0: rows}
        numbers = buckets([rows[name] for name in self.kernel.keys], count)
        parts = ((bucket, rows.filter(pa.array(numbers == bucket))) for bucket in range(count))
        return {bucket: part for bucket, part in parts if part.num_rows}

    def _write(self, changes: pa.Table, until: int) -> dict[int, Delta]:
        """Writes what changes in the state, each bucket's part by itself."""
        store = self.around.frames.store
        return {
            bucket: self.around.states.write(
                self._name(bucket),
                self._form,
                self.version,
                part,
                store.new_name("state"),
                until,
            )
            for bucket, part in self._by_bucket(changes).items()
        }

    def commit(self, step: Step) -> None:
        """Also takes over the new version of the state."""
        if step.outcome is not None:
            self.take_state(step.outcome.state)
        super().commit(step)

    def take_state(self, version: StateVersion) -> None:
        """From now on this version is the state; what only the one before needed goes."""
        gone = self.version.paths - version.paths
        self.version = version
        self.around.frames.store.remove(tuple(gone))

    def abandon(self, step: Step) -> None:
        """Also gives up the state that the step has written."""
        if step.outcome is not None and not step.is_over:
            gone = step.outcome.state.paths - self.version.paths
            self.around.frames.store.remove(tuple(gone))
        super().abandon(step)

    def close(self) -> None:
        """Also gives the state up."""
        super().close()
        store = self.around.frames.store
        store.remove(tuple(self.version.paths))
        self.around.states.forget(str(store.directory), self.identity)


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

    def events(self, step: Step) -> Frame | None:
        """Changes of the input, reduced to keys and arguments."""
        return step.readings[0].changes()

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

    def events(self, step: Step) -> Frame | None:
        """Changes of both inputs, each with its side."""
        return union(*(reading.changes() for reading in step.readings))

    def outputs(self, index: int) -> Outputs:
        """The row as key, and the side."""
        columns = all_columns(self.operator.inputs[index])
        side = (Literal(index, Type.BIGINT), "_side")
        return Outputs((*((c, f"k{i}") for i, c in enumerate(columns)), side))


class RunningRowsWindow(RunningKeyed):
    """Rows windows, partitioned or not."""

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

    def events(self, step: Step) -> Frame | None:
        """The stream's elements, with their partition."""
        return step.readings[0].frame(STARTED)

    def outputs(self, index: int) -> Outputs:
        """Time, order, partition and row."""
        keys = tuple((column, f"k{i}") for i, column in enumerate(self._partition))
        row = Outputs.all_of(self.operator.inputs[index]).expressions
        return Outputs(keys + row, ("_ts", self._order))

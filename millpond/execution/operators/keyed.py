"""Operators whose work is a kernel over their keys: groups, counts of rows, Rows windows."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.expressions import AggregateCall, Column, Expression, Literal, SortKey
from millpond.cql.node import Node
from millpond.execution.fragments import ALIVE, ENDED, STARTED
from millpond.execution.jobs import Job, Rows, evaluated
from millpond.execution.operators.freeing import FreeingOperator
from millpond.execution.operators.kernel_work import work_of
from millpond.execution.operators.running import arrow_types
from millpond.execution.steps import Outcome, Step
from millpond.execution.surroundings import Surroundings
from millpond.identities import OperatorId
from millpond.kernels.aggregate import AggregateKernel, aggregate_kernel
from millpond.kernels.counts import CountKernel
from millpond.kernels.grouped import AggregateSpec
from millpond.kernels.kernel import Kernel, MemberKernel
from millpond.kernels.living import Living, LivingRows
from millpond.kernels.over import OverKernel
from millpond.kernels.ranking import RankingKernel
from millpond.kernels.row_patterns import RowPatternKernel
from millpond.kernels.rows_window import RowsWindowKernel
from millpond.kernels.sessions import SessionKernel
from millpond.kernels.sorts import Sort
from millpond.planning.branches import Outputs
from millpond.planning.physical import (
    AggregateOperator,
    CountOperator,
    Operator,
    OverOperator,
    QueueRead,
    RankOperator,
    RowPatternOperator,
    RowsWindowOperator,
    SessionOperator,
)
from millpond.planning.predicates import all_columns
from millpond.schema import BEGINNING, Type
from millpond.storage.bucketed import BucketedState, PairedState
from millpond.storage.frees import in_columns
from millpond.storage.state import StateVersion


class RunningKeyed(FreeingOperator):
    """An operator whose work is a kernel over its keys."""

    kernel: Kernel | MemberKernel
    event_schema: pa.Schema
    """The columns the kernel reads."""
    modes: tuple[str, ...] = (STARTED, ENDED)
    """Which elements it reads: in these modes, of all its fragments."""

    def __init__(
        self, identity: OperatorId, operator: Operator, around: Surroundings, cursor: int
    ) -> None:
        self._work = work_of(self.kernel, identity, around)
        self.state = self._work.state
        super().__init__(identity, operator, around, cursor)

    @property
    def output_schema(self) -> pa.Schema:
        """The Arrow schema of the pages it writes."""
        return self.kernel.output_schema

    @property
    def buckets(self) -> int:
        """The buckets of the operator's state."""
        return self._work.buckets

    @property
    def job_keys(self) -> tuple[str, ...]:
        """The keys of the kernel."""
        return tuple(self.kernel.keys)

    def purged(self, living: Living, inputs: tuple[bool, ...]) -> Any:
        """Above a match the last key of every kernel is the number of the query."""
        self.living = LivingRows((self.kernel.keys[-1],), living)
        return self._work.purged(living, self.cursor)

    def rebuild(self) -> bool:
        """What is alive is what the state sums up, where it is taken out again when it ends."""
        readings = [fragment.whole_at(self.cursor) for fragment in self.fragments]
        known = [reading for reading in readings if reading is not None]
        if ENDED not in self.modes or len(known) < len(readings):
            return False
        step = Step(0, self, BEGINNING - 1, self.cursor, known, 0)
        rows = evaluated([(reading, (ALIVE,)) for reading in known], self.event_schema)
        if rows is None:
            return False
        self._work.state.clear()
        self._work.state.take(self._work.in_driver(self.living_of(rows), step)[1])
        return True

    @property
    def freed_rows(self) -> int:
        """How many groups were freed so far, as they were final, and members of these."""
        return sum(version.freed for version in self._versions)

    @property
    def freed_bytes(self) -> int:
        """How many bytes they had."""
        return sum(version.freed_bytes for version in self._versions)

    @property
    def _versions(self) -> tuple[StateVersion, ...]:
        match self._work.state:
            case BucketedState() as state:
                return (state.version,)
            case PairedState() as states:
                return states.versions
        return ()

    def _free(self, step: Step) -> None:
        """Groups that are final after a step go."""
        if isinstance(self.state, BucketedState):
            self.state.free(self.frees(0, step.until))

    def run_here(self, step: Step, rows: Rows) -> Outcome:
        """The kernel, on the rows that come to the driver."""
        self._free(step)
        parts = [(each, self.modes) for each in step.readings]
        events = self.living_of(rows.gathered(self, parts, self.event_schema))
        outcome = self.in_driver(*self._work.in_driver(events, step))
        outcome.driver_bytes = events.nbytes
        return outcome

    def job(self, step: Step) -> Job:
        """The kernel, where the executors have the rows."""
        self._free(step)
        keys = self.kernel.keys
        work = self._work.on_executors(self.destination_of(step), self.event_schema, step)
        return Job(
            [(reading, self.modes) for reading in step.readings],
            self.living_in(work),
            keys or ["_ts"],
            self.buckets,
            lambda answers: self.written(answers, self._work.following(answers, step.until)),
            is_for_all=not keys,
        )


def _events_schema(
    numbers: tuple[str, ...], prefixes: list[tuple[str, tuple[pa.DataType, ...]]]
) -> pa.Schema:
    fields = [
        pa.field(f"{prefix}{i}", type_)
        for prefix, types in prefixes
        for i, type_ in enumerate(types)
    ]
    return pa.schema([pa.field(name, pa.int64()) for name in numbers] + fields)


def _spec(call: AggregateCall, arguments: list[Expression], only_come: bool) -> AggregateSpec:
    """An aggregate over columns that hold these arguments."""
    return AggregateSpec(
        call.function,
        None if call.argument is None else arguments.index(call.argument),
        ARROW_TYPES[call.type],
        None if call.argument is None else ARROW_TYPES[call.argument.type],
        call.distinct,
        call.parameter,
        tuple(map(arguments.index, call.more)),
        tuple(ARROW_TYPES[each.type] for each in call.more),
        call.definition,
        only_come and call.reads_rows,
    )


class RunningAggregate(RunningKeyed):
    """GROUP BY and global aggregation."""

    kernel: AggregateKernel
    needs = frozenset({STARTED, ENDED})

    def __init__(
        self, identity: OperatorId, operator: AggregateOperator, around: Surroundings, cursor: int
    ) -> None:
        arguments = list(dict.fromkeys(each for a in operator.aggregates for each in a.arguments))
        only_come = operator.only_come
        specs = tuple(_spec(call, arguments, only_come) for call in operator.aggregates)
        key_types = tuple(ARROW_TYPES[key.type] for key in operator.keys)
        self.kernel = aggregate_kernel(key_types, specs, operator.is_append_only)
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

    def forgive(self, numbers: frozenset[int]) -> None:
        """Sums of queries that are gone may leave their range."""
        self.kernel = replace(self.kernel, forgiven=self.kernel.forgiven | numbers)
        self._work = self._work.with_kernel(self.kernel)

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
        self, identity: OperatorId, operator: CountOperator, around: Surroundings, cursor: int
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


class RunningRank(RunningKeyed):
    """ROW_NUMBER, RANK and DENSE_RANK."""

    needs = frozenset({STARTED, ENDED})

    def __init__(
        self, identity: OperatorId, operator: RankOperator, around: Surroundings, cursor: int
    ) -> None:
        types = arrow_types(operator.input.schema)
        key_types = tuple(ARROW_TYPES[column.type] for column in operator.partition)
        order = _sorts(operator.order)
        ranks = (operator.function, operator.limit, operator.is_append_only)
        self.kernel = RankingKernel(key_types, types, order, *ranks)
        self.event_schema = _events_schema(("_ts", "_te", "_w"), [("k", key_types), ("r", types)])
        self._partition = operator.partition
        super().__init__(identity, operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """Partition and row."""
        return _by_partition(self.operator.inputs[index], self._partition)


def _sorts(order: tuple[SortKey, ...]) -> tuple[Sort, ...]:
    """Sort keys as columns of rows."""
    return tuple(Sort(f"r{k.column.position}", k.is_descending, k.nulls_first) for k in order)


class RunningOver(RunningKeyed):
    """Aggregates of frames, lag, lead and their like."""

    needs = frozenset({STARTED, ENDED})

    def __init__(
        self, identity: OperatorId, operator: OverOperator, around: Surroundings, cursor: int
    ) -> None:
        types = arrow_types(operator.input.schema)
        key_types = tuple(ARROW_TYPES[column.type] for column in operator.partition)
        call = operator.call
        argument = None if call.argument is None else f"r{call.argument.position}"
        said = (call.function, argument, call.frame, call.number, ARROW_TYPES[call.type])
        self.kernel = OverKernel(key_types, types, _sorts(operator.order), *said)
        self.event_schema = _events_schema(("_ts", "_te", "_w"), [("k", key_types), ("r", types)])
        self._partition = operator.partition
        super().__init__(identity, operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """Partition and row."""
        return _by_partition(self.operator.inputs[index], self._partition)


class RunningSessions(RunningKeyed):
    """SESSION windows; each element is read again a gap after it came."""

    needs = frozenset({STARTED, ENDED})

    def __init__(
        self, identity: OperatorId, operator: SessionOperator, around: Surroundings, cursor: int
    ) -> None:
        types = arrow_types(operator.input.schema)
        key_types = tuple(ARROW_TYPES[column.type] for column in operator.partition)
        told = (operator.gap_ticks, operator.told, operator.tick_microseconds)
        self.kernel = SessionKernel(key_types, types, *told)
        self.event_schema = _events_schema(("_ts", "_te", "_w"), [("k", key_types), ("r", types)])
        self._partition = operator.partition
        super().__init__(identity, operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """Partition and row."""
        return _by_partition(self.operator.inputs[index], self._partition)

    def rebuild(self) -> bool:
        """A session may have begun long before what is alive of its elements."""
        return False


class RunningRowPattern(RunningKeyed):
    """MATCH_RECOGNIZE; each element is read again when matches that began with it are over."""

    needs = frozenset({STARTED, ENDED})

    def __init__(
        self, identity: OperatorId, operator: RowPatternOperator, around: Surroundings, cursor: int
    ) -> None:
        types = arrow_types(operator.input.schema)
        key_types = tuple(ARROW_TYPES[column.type] for column in operator.partition)
        self.kernel = RowPatternKernel(
            key_types,
            types,
            operator.order,
            operator.pattern,
            operator.definitions,
            operator.slots,
            operator.told,
            operator.within_ticks,
            operator.skip,
        )
        self.event_schema = _events_schema(("_ts", "_te", "_w"), [("k", key_types), ("r", types)])
        self._partition = operator.partition
        super().__init__(identity, operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """Partition and row."""
        return _by_partition(self.operator.inputs[index], self._partition)

    def rebuild(self) -> bool:
        """Where a match begins depends on where those before it have ended."""
        return False


def _by_partition(fragment: Node, partition: tuple[Column, ...]) -> Outputs:
    """The columns of a partition as keys, and all columns."""
    keys = tuple((column, f"k{i}") for i, column in enumerate(partition))
    return Outputs((*keys, *((c, f"r{i}") for i, c in enumerate(all_columns(fragment)))))


class RunningRowsWindow(RunningKeyed):
    """Rows windows, partitioned or not."""

    modes = (STARTED,)

    def __init__(
        self, identity: OperatorId, operator: RowsWindowOperator, around: Surroundings, cursor: int
    ) -> None:
        types = arrow_types(operator.schema)
        leaf = next(n for n in operator.input.walk() if isinstance(n, QueueRead))
        key_types = tuple(ARROW_TYPES[column.type] for column in operator.partition)
        self._order = "_seq" if leaf.is_base else "_w"
        rows = operator.rows
        length = f"c{rows.position}" if isinstance(rows, Column) else rows
        self.kernel = RowsWindowKernel(
            key_types, types, length, operator.slide_rows or 1, leaf.is_base
        )
        self.event_schema = _events_schema(("_ts", self._order), [("k", key_types), ("c", types)])
        self._partition = operator.partition
        super().__init__(identity, operator, around, cursor)

    def _free(self, step: Step) -> None:
        """Partitions to which nothing comes any more go, with their rows, which never leave."""
        state, frees = self._work.state, self.frees(0, step.until)
        columns = {f"k{i}": f"c{key.position}" for i, key in enumerate(self._partition)}
        if isinstance(state, PairedState):
            state.left.free(frees)
            state.right.free(in_columns(frees, columns))

    def outputs(self, index: int) -> Outputs:
        """Time, order, partition and row."""
        keys = tuple((column, f"k{i}") for i, column in enumerate(self._partition))
        row = Outputs.all_of(self.operator.inputs[index]).expressions
        return Outputs(keys + row, ("_ts", self._order))

"""Operators that put out stream elements: Istream, Dstream and what queries deliver."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from millpond.execution.fragments import ENDED, STARTED
from millpond.execution.jobs import Job, Rows
from millpond.execution.operators.running import RunningOperator, arrow_types
from millpond.execution.steps import Outcome, Step
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import Shaping, WriteRows
from millpond.identities import OperatorId
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import integers
from millpond.kernels.counts import changes_of, net
from millpond.kernels.results import summed
from millpond.kernels.totals import totals
from millpond.planning.branches import Outputs
from millpond.planning.physical import DifferenceOperator, OutputOperator, TotalsOperator
from millpond.schema import BEGINNING


def stream_schema(types: tuple[pa.DataType, ...]) -> pa.Schema:
    """The schema of elements of computed streams."""
    times = [pa.field(name, pa.int64()) for name in ("_ts", "_w")]
    return pa.schema(times + [pa.field(f"c{i}", t) for i, t in enumerate(types)])


@dataclass(frozen=True)
class Started:
    """What starts, as stream elements, from the first instant on."""

    columns: tuple[str, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        positive = (integers(rows["_w"]) > 0) & (integers(rows["_ts"]) > BEGINNING)
        return rows.filter(pa.array(positive)).select(["_ts", "_w", *self.columns])


@dataclass(frozen=True)
class Changed:
    """The changes of elements of which no two cancel, up to a time."""

    columns: tuple[str, ...]
    until: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        return changes_of(rows, list(self.columns), self.until)


@dataclass(frozen=True)
class NetChange:
    """The net change of each row at each instant, up to a time.

    ``sign``: only the changes of this sign from the first instant on, as stream elements.
    """

    columns: tuple[str, ...]
    until: int
    sign: int | None = None

    def __call__(self, rows: pa.Table) -> pa.Table:
        table = net(rows, list(self.columns), self.until)
        if self.sign is None:
            return table
        weight = integers(table["_w"]) * self.sign
        wanted = (weight > 0) & (integers(table["_ts"]) > BEGINNING)
        return table.set_column(1, "_w", pa.array(weight)).filter(pa.array(wanted))


@dataclass(frozen=True)
class Momentary:
    """What starts and lasts one tick, as stream elements: the sum of each row at each instant."""

    columns: tuple[str, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        started = rows.filter(pa.array(integers(rows["_ts"]) > BEGINNING))
        return summed(started.select(["_ts", "_w", *self.columns]))


@dataclass(frozen=True)
class Totalled:
    """What starts and lasts one tick, in few rows with equal sums of some columns."""

    columns: tuple[str, ...]
    sums: tuple[str, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        started = rows.filter(pa.array(integers(rows["_ts"]) > BEGINNING))
        return totals(started.select(["_ts", "_w", *self.columns]), self.sums)


@dataclass(frozen=True)
class Begun:
    """Changes of which those before a time happen then."""

    changes: NetChange | Changed
    begins: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        table = self.changes(rows)
        times = np.maximum(integers(table["_ts"]), self.begins)
        return table.set_column(0, table.schema.field(0), pa.array(times))


class RunningStreamOf(RunningOperator):
    """An operator that puts out stream elements."""

    @cached_property
    def output_schema(self) -> pa.Schema:
        """Time, weight and row."""
        return stream_schema(arrow_types(self.operator.schema))

    @cached_property
    def elements(self) -> pa.Schema:
        """The schema of the elements read."""
        return element_schema(arrow_types(self.operator.schema))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The data columns."""
        return tuple(f"c{i}" for i in range(len(self.operator.schema)))

    @property
    def modes(self) -> tuple[str, ...]:
        """Which elements it reads."""
        return (STARTED,)

    @property
    def read_schema(self) -> pa.Schema:
        """The columns it reads."""
        return self.elements

    def shaping(self, step: Step) -> Shaping | None:
        """What becomes of the rows of a step; None: they are put out as they are."""
        return None

    def run_here(self, step: Step, rows: Rows) -> Outcome:
        """The rows, shaped in the driver."""
        read = rows.gathered(self, [(step.readings[0], self.modes)], self.read_schema)
        shaping = self.shaping(step)
        return self.in_driver(read if shaping is None else shaping(read))

    def job(self, step: Step) -> Job | None:
        """The rows, shaped on the executors."""
        work = WriteRows(self.destination_of(step), self.read_schema, self.shaping(step))
        parts = [(step.readings[0], self.modes)]
        return Job(parts, work, self.job_keys, self.buckets, self.written)


class RunningDifference(RunningStreamOf):
    """Istream and Dstream."""

    needs = frozenset({STARTED, ENDED})

    @property
    def modes(self) -> tuple[str, ...]:
        """What starts and what ends."""
        return (STARTED, ENDED)

    @property
    def job_keys(self) -> tuple[str, ...]:
        """Equal rows are summed up."""
        return self.columns

    def shaping(self, step: Step) -> Shaping:
        """The net changes of the wanted sign, from the first instant on."""
        sign = self.operator.sign if isinstance(self.operator, DifferenceOperator) else 1
        return NetChange(self.columns, step.until, sign)


class RunningArrivals(RunningStreamOf):
    """An Istream that reads no minus."""

    def shaping(self, step: Step) -> Shaping:
        """What starts."""
        return Started(self.columns)


class RunningMoments(RunningStreamOf):
    """An Rstream of what lasts one tick."""

    @property
    def job_keys(self) -> tuple[str, ...]:
        """Equal rows are summed up."""
        return self.columns

    def shaping(self, step: Step) -> Shaping:
        """What starts, summed up."""
        return Momentary(self.columns)


class RunningTotals(RunningStreamOf):
    """What lasts one tick, in few rows; they need not be as few as they could be, so none meet."""

    def __init__(
        self, identity: OperatorId, operator: TotalsOperator, around: Surroundings, cursor: int
    ) -> None:
        self._sums = tuple(f"c{position}" for position in operator.sums)
        super().__init__(identity, operator, around, cursor)

    def shaping(self, step: Step) -> Shaping:
        """What starts, totalled."""
        return Totalled(self.columns, self._sums)


class RunningOutput(RunningStreamOf):
    """What a query delivers."""

    def __init__(
        self, identity: OperatorId, operator: OutputOperator, around: Surroundings, cursor: int
    ) -> None:
        self._mode = operator.mode
        self._is_summed = operator.is_summed
        self._begins = operator.begins
        super().__init__(identity, operator, around, cursor)

    def needs_of(self, index: int) -> frozenset[str]:
        """Only changes of relations need to know what ends."""
        return frozenset(self.modes)

    @property
    def modes(self) -> tuple[str, ...]:
        """Only changes of relations need to know what ends."""
        return (STARTED, ENDED) if self._mode == "changes" else (STARTED,)

    @property
    def read_schema(self) -> pa.Schema:
        """The elements of a computed stream are put out as they are."""
        return self.output_schema if self._mode == "stream" else self.elements

    @property
    def job_keys(self) -> tuple[str, ...]:
        """Equal rows meet where they are summed up."""
        return self.columns if self._is_summed else ()

    def shaping(self, step: Step) -> Shaping | None:
        """Net changes, arrivals, moments, or the elements of a computed stream."""
        match self._mode:
            case "stream":
                return None
            case "arrivals":
                return Started(self.columns)
            case "moments":
                return Momentary(self.columns)
        changes = NetChange if self._is_summed else Changed
        shaping = changes(self.columns, step.until)
        return shaping if self._begins is None else Begun(shaping, self._begins)

    def outputs(self, index: int) -> Outputs:
        """The row; a computed stream also keeps its weight."""
        names = ("_ts", "_w") if self._mode == "stream" else ("_ts", "_te", "_w")
        return Outputs.all_of(self.operator.inputs[index], names)

"""Operators that put out stream elements: Istream, Dstream and what queries deliver."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import integers
from millpond.kernels.counts import changes_of, net
from millpond.planning.branches import Outputs
from millpond.planning.physical import DifferenceOperator, OutputOperator
from millpond.schema import BEGINNING
from millpond.spark.fragments import ENDED, STARTED
from millpond.spark.operators.running import RunningOperator, arrow_types
from millpond.spark.steps import Outcome, Step
from millpond.spark.surroundings import Surroundings
from millpond.spark.workers import Shaping


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


class RunningStreamOf(RunningOperator):
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
    def columns(self) -> tuple[str, ...]:
        """The data columns."""
        return tuple(f"c{i}" for i in range(len(self.operator.schema)))

    def shaped(
        self,
        step: Step,
        modes: tuple[str, ...],
        shaping: Shaping | None,
        schema: pa.Schema,
        keys: tuple[str, ...] = (),
    ) -> Outcome:
        """The rows of some modes, shaped where the step's place is."""
        if self.is_elsewhere(step):
            return self.on_executors([(step.readings[0], modes)], schema, shaping, keys)
        rows = self.rows(step, modes, schema)
        return self.in_driver(rows if shaping is None else shaping(rows))

    def rows(self, step: Step, modes: tuple[str, ...], schema: pa.Schema) -> pa.Table:
        """The rows of some modes, in the driver."""
        return self.gathered([(step.readings[0], modes)], schema)


class RunningDifference(RunningStreamOf):
    """Istream and Dstream."""

    needs = frozenset({STARTED, ENDED})

    def run(self, step: Step) -> Outcome:
        """The net changes of the wanted sign, from the first instant on."""
        sign = self.operator.sign if isinstance(self.operator, DifferenceOperator) else 1
        shaping = NetChange(self.columns, step.until, sign)
        return self.shaped(step, (STARTED, ENDED), shaping, self.elements, self.columns)


class RunningArrivals(RunningStreamOf):
    """An Istream that reads no minus."""

    def run(self, step: Step) -> Outcome:
        """What starts."""
        return self.shaped(step, (STARTED,), Started(self.columns), self.elements)


class RunningOutput(RunningStreamOf):
    """What a query delivers."""

    def __init__(
        self, identity: str, operator: OutputOperator, around: Surroundings, cursor: int
    ) -> None:
        self._mode = operator.mode
        self._is_net = operator.is_net
        super().__init__(identity, operator, around, cursor)

    def needs_of(self, index: int) -> frozenset[str]:
        """Only changes of relations need to know what ends."""
        return frozenset({STARTED, ENDED} if self._mode == "changes" else {STARTED})

    def run(self, step: Step) -> Outcome:
        """Net changes, arrivals, or the elements of a computed stream."""
        if self._mode == "stream":
            return self.shaped(step, (STARTED,), None, self.output_schema)
        if self._mode == "arrivals":
            return self.shaped(step, (STARTED,), Started(self.columns), self.elements)
        if self._is_net:
            shaping = Changed(self.columns, step.until)
            return self.shaped(step, (STARTED, ENDED), shaping, self.elements)
        net_change = NetChange(self.columns, step.until)
        return self.shaped(step, (STARTED, ENDED), net_change, self.elements, self.columns)

    def outputs(self, index: int) -> Outputs:
        """The row; a computed stream also keeps its weight."""
        names = ("_ts", "_w") if self._mode == "stream" else ("_ts", "_te", "_w")
        return Outputs.all_of(self.operator.inputs[index], names)

"""Operators that put out stream elements: Istream, Dstream, Rstream and what queries deliver."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millpond.cql.algebra import RangeWindow
from millpond.cql.node import Node
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import integers
from millpond.kernels.counts import changes_of, net
from millpond.kernels.groups import Ints
from millpond.kernels.snapshots import contents, slide_instants, still_open
from millpond.planning.branches import Outputs
from millpond.planning.physical import DifferenceOperator, OutputOperator, SnapshotsOperator
from millpond.schema import BEGINNING
from millpond.spark.fragments import ALIVE, ENDED, STARTED
from millpond.spark.frames import union
from millpond.spark.operators.running import RunningOperator, arrow_types
from millpond.spark.steps import Outcome, Step
from millpond.spark.surroundings import Surroundings


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

    def started(self, step: Step) -> pa.Table:
        """The elements that start in the step, as stream elements of the first instant on."""
        table = self._rows(step, (STARTED,), self.elements)
        positive = (integers(table["_w"]) > 0) & (integers(table["_ts"]) > BEGINNING)
        return table.filter(pa.array(positive)).select(["_ts", "_w", *self.columns])

    def net_changes(self, step: Step) -> pa.Table:
        """The net change of each row at each instant of the step."""
        changes = self._rows(step, (STARTED, ENDED), self.elements)
        return net(changes, self.columns, step.until)

    def _rows(self, step: Step, modes: tuple[str, ...], schema: pa.Schema) -> pa.Table:
        reading = step.readings[0]
        held = reading.held(modes)
        if held is not None:
            return held
        return self.plans.collect(union(*map(reading.frame, modes)), schema)


class RunningDifference(_RunningStreamOf):
    """Istream and Dstream."""

    needs = frozenset({STARTED, ENDED})

    def __init__(self, operator: DifferenceOperator, around: Surroundings, cursor: int) -> None:
        super().__init__(operator, around, cursor)
        self._sign = operator.sign

    def run(self, step: Step) -> Outcome:
        """The net changes of the wanted sign, from the first instant on."""
        table = self.net_changes(step)
        weight = integers(table["_w"]) * self._sign
        wanted = (weight > 0) & (integers(table["_ts"]) > BEGINNING)
        signed = table.set_column(1, "_w", pa.array(weight))
        return self.page_of(signed.filter(pa.array(wanted)))


class RunningArrivals(_RunningStreamOf):
    """An Istream that reads no minus."""

    def run(self, step: Step) -> Outcome:
        """What starts."""
        return self.page_of(self.started(step))


class RunningSnapshots(_RunningStreamOf):
    """Rstream."""

    keeps_state = True

    def __init__(self, operator: SnapshotsOperator, around: Surroundings, cursor: int) -> None:
        super().__init__(operator, around, cursor)
        self._open = self.elements.empty_table()

    def needs_of(self, index: int) -> frozenset[str]:
        """Movers are watched as they come and go; with a slide also while they stay."""
        if index == 0:
            return frozenset({STARTED})
        moves = frozenset({STARTED, ENDED})
        return moves | {ALIVE} if _slide_of(self.operator.inputs[index]) else moves

    def run(self, step: Step) -> Outcome:
        """The content at every instant at which a mover moves."""
        instants = self._instants(step)
        new = self._rows(step, (STARTED,), self.elements)
        elements = pa.concat_tables([self._open, new])
        output = contents(elements, self.columns, instants)
        return self.page_of(output, still_open(elements, self.columns, step.until))

    def commit(self, step: Step) -> None:
        """Also takes over what is still open."""
        if step.outcome is not None:
            self._open = step.outcome.state
        super().commit(step)

    def outputs(self, index: int) -> Outputs:
        """The row of the relation; of movers only the times."""
        return Outputs.all_of(self.operator.inputs[0]) if index == 0 else Outputs(())

    def has_work(self, until: int) -> bool:
        """Slides may make it speak when nothing moves."""
        return until > self.claimed and (
            super().has_work(until) or any(map(_slide_of, self.operator.inputs))
        )

    def _instants(self, step: Step) -> Ints:
        schema, after, until = element_schema([]), step.after, step.until
        found = []
        for fragment, reading in zip(self.fragments[1:], step.readings[1:], strict=True):
            moves = self.plans.collect(reading.changes(), schema)
            found += [integers(moves["_ts"]), integers(moves["_te"])]
            slide = _slide_of(fragment.node)
            if slide is not None:
                frame = union(reading.frame(ALIVE), reading.frame(STARTED))
                stays = self.plans.collect(frame, schema)
                starts, ends = integers(stays["_ts"]), integers(stays["_te"])
                found.append(slide_instants(starts, ends, slide, after, until))
        instants = np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)
        return instants[(instants > max(after, BEGINNING)) & (instants <= until)]


def _slide_of(node: Node) -> int | None:
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

    def run(self, step: Step) -> Outcome:
        """Net changes, arrivals, or the elements of a computed stream."""
        return self.page_of(self._output(step))

    def _output(self, step: Step) -> pa.Table:
        if self._mode == "changes":
            if self._is_net:
                rows = self._rows(step, (STARTED, ENDED), self.elements)
                return changes_of(rows, self.columns, step.until)
            return self.net_changes(step)
        if self._mode == "arrivals":
            return self.started(step)
        return self._rows(step, (STARTED,), self.output_schema)

    def outputs(self, index: int) -> Outputs:
        """The row; a computed stream also keeps its weight."""
        names = ("_ts", "_w") if self._mode == "stream" else ("_ts", "_te", "_w")
        return Outputs.all_of(self.operator.inputs[index], names)

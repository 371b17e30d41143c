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
from millpond.planning.physical import DifferenceOperator, OutputOperator, SnapshotsOperator
from millpond.schema import BEGINNING
from millpond.spark.fragments import ALIVE, ENDED, STARTED, Outputs
from millpond.spark.frames import union
from millpond.spark.operators.running import RunningOperator, arrow_types
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
        frames = (fragment.frame(mode, after, until) for mode in modes)
        return self.plans.collect(union(*frames), schema)


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
        moves = frozenset({STARTED, ENDED})
        return moves | {ALIVE} if _slide_of(self.operator.inputs[index]) else moves

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
            super().has_work(until) or any(map(_slide_of, self.operator.inputs))
        )

    def _instants(self, after: int, until: int) -> Ints:
        schema = element_schema([])
        found = []
        for fragment in self.fragments[1:]:
            moves = self.plans.collect(fragment.changes(after, until), schema)
            found += [integers(moves["_ts"]), integers(moves["_te"])]
            slide = _slide_of(fragment.node)
            if slide is not None:
                frame = union(
                    fragment.frame(ALIVE, after, until), fragment.frame(STARTED, after, until)
                )
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

"""Rstream: the whole content of a relation at every instant at which something moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.cql.algebra import RangeWindow
from millpond.cql.node import Node
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.kernels.snapshots import SnapshotsKernel, limit, slide_instants, slide_limit
from millpond.planning.branches import Outputs
from millpond.planning.physical import SnapshotsOperator
from millpond.schema import BEGINNING
from millpond.spark.fragments import ALIVE, ENDED, STARTED
from millpond.spark.operators.running import arrow_types
from millpond.spark.operators.streams import RunningStreamOf
from millpond.spark.steps import EXECUTORS, Outcome, Step
from millpond.spark.surroundings import Surroundings
from millpond.spark.workers import Line, Place, deltas_of, page_of
from millpond.storage.bucketed import BucketedState
from millpond.storage.deltas import read_delta, write_delta
from millpond.storage.forms import Keyed
from millpond.storage.state import StateVersion
from millpond.storage.state_cache import BucketName
from millpond.storage.worker_states import STATES

MOST_INSTANTS, MOST_ROWS = 100_000, 1_000_000
"""A step in the driver speaks at most so often, and puts out about so many rows at most."""

TIMES = element_schema([])
"""What is read of movers."""


class RunningSnapshots(RunningStreamOf):
    """Rstream."""

    state: BucketedState

    def __init__(
        self, identity: str, operator: SnapshotsOperator, around: Surroundings, cursor: int
    ) -> None:
        self._kernel = SnapshotsKernel(arrow_types(operator.schema))
        self._slides = [_slide_of(node) for node in operator.movers]
        self.state = BucketedState(
            around.frames.store,
            around.states,
            identity,
            Keyed(self._kernel.state_schema, tuple(self._kernel.keys)),
            self._kernel.columns,
            around.limits.buckets,
        )
        super().__init__(identity, operator, around, cursor)

    def needs_of(self, index: int) -> frozenset[str]:
        """Movers are watched as they come and go; with a slide also while they stay."""
        if index == 0:
            return frozenset({STARTED})
        moves = frozenset({STARTED, ENDED})
        return moves if self._slides[index - 1] is None else moves | {ALIVE}

    def outputs(self, index: int) -> Outputs:
        """The row of the relation; of movers only the times."""
        return Outputs.all_of(self.operator.inputs[0]) if index == 0 else Outputs(())

    def has_work(self, until: int) -> bool:
        """Slides may make it speak when nothing moves."""
        return until > self.claimed and (super().has_work(until) or any(self._slides))

    def run(self, step: Step) -> Outcome:
        """The content at every instant at which a mover moves.

        How much that is depends on the instants, not on the input: a step in the driver may come
        less far than it was meant to. With slides only the driver can tell how far.
        """
        if self.is_elsewhere(step) and not any(self._slides):
            return self._run_on_executors(step)
        instants, until = self._instants(step)
        rows = self.rows(step, (STARTED,), self.elements)
        known = self.state.everything() if len(instants) else self.state.known(rows)
        start = np.concatenate([np.full(known.num_rows, BEGINNING), integers(rows["_ts"])])
        end = np.concatenate([integers(known["_te"]), integers(rows["_te"])])
        until = limit(start, end, instants, until, MOST_ROWS) if len(instants) else until
        if until < step.until:
            rows = rows.filter(pa.array(integers(rows["_ts"]) <= until))
            instants = instants[instants <= until]
        output, changes = self._kernel.run(rows, known, instants, until)
        outcome = self.in_driver(output, self.state.changed(changes, until))
        outcome.until = until
        return outcome

    def _instants(self, step: Step) -> tuple[Ints, int]:
        """The instants of a step, and up to which time these are all."""
        found, after, until = [np.zeros(0, dtype=np.int64)], step.after, step.until
        for reading, slide in zip(step.readings[1:], self._slides, strict=True):
            moves = self.gathered([(reading, (STARTED, ENDED))], TIMES)
            found.append(moments(moves, after, until))
            if slide is not None:
                stays = self.gathered([(reading, (ALIVE, STARTED))], TIMES)
                start, end = integers(stays["_ts"]), integers(stays["_te"])
                until = slide_limit(start, end, slide, after, until, MOST_INSTANTS)
                found.append(slide_instants(start, end, slide, after, until))
        instants = np.unique(np.concatenate(found))
        return instants[(instants > max(after, BEGINNING)) & (instants <= until)], until

    # -- on the executors ------------------------------------------------------------------

    def _run_on_executors(self, step: Step) -> Outcome:
        store, version = self.around.frames.store, self.state.version
        place, names = Place.of(store), []
        count = self.around.limits.buckets
        for number, reading in enumerate(step.readings[1:]):
            search = FindMoments(place, number, step.after, step.until)
            found = self.lines([(reading, (STARTED, ENDED))], search, (), count)
            names += [line["moments"] for line in found]
        work = RunSnapshots(
            place, self.elements, self._kernel, self.identity, version, tuple(names), step.until
        )
        parts = [(step.readings[0], (STARTED,))]
        columns = self._kernel.columns
        lines = self.lines(parts, work, columns, len(version.buckets), is_for_all=True)
        store.remove(tuple(names))
        return Outcome(page_of(store, lines), EXECUTORS, version.after(deltas_of(lines)))


def moments(elements: pa.Table, after: int, until: int) -> Ints:
    """The instants within a step at which elements start or end."""
    found = np.unique(np.concatenate([integers(elements["_ts"]), integers(elements["_te"])]))
    return found[(found > max(after, BEGINNING)) & (found <= until)]


@dataclass(frozen=True)
class FindMoments:
    """Each task writes the instants at which its elements start or end."""

    place: Place
    number: int
    after: int
    until: int

    @property
    def schema(self) -> pa.Schema:
        """Times only."""
        return TIMES

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> Line:
        """A file of instants."""
        name = f"{self.place.state}-moments-{self.number}-{bucket}-{attempt}"
        found = pa.table({"t": moments(rows, self.after, self.until)})
        write_delta(self.place.path(name), found)
        return {"moments": name}


@dataclass(frozen=True)
class RunSnapshots:
    """Each task puts out its bucket's part of the content at all instants."""

    place: Place
    schema: pa.Schema
    kernel: SnapshotsKernel
    operator: str
    version: StateVersion
    moments: tuple[str, ...]
    until: int

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> Line:
        """One bucket: its output, and what changes in its state."""
        found = [read_delta(self.place.path(name))["t"] for name in self.moments]
        instants = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *map(integers, found)]))
        form = Keyed(self.kernel.state_schema, tuple(self.kernel.keys))
        name = BucketName(self.place.directory, self.operator, bucket)
        known = STATES.state_at(name, form, self.version)
        state = known.all() if len(instants) else known.query(rows)
        output, changes = self.kernel.run(rows, state, instants, self.until)
        line = self.place.write_page(output, bucket, attempt)
        return line | self.place.write_state(
            name, form, self.version, changes, bucket, attempt, self.until
        )


def _slide_of(node: Node) -> int | None:
    return node.slide_ticks if isinstance(node, RangeWindow) else None

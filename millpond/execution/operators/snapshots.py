"""Rstream: the whole content of a relation at every instant at which something moves."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.cql.algebra import RangeWindow
from millpond.cql.node import Node
from millpond.execution.answers import Answer, deltas_of
from millpond.execution.fragments import ALIVE, ENDED, STARTED, Reading
from millpond.execution.jobs import Job, Jobs, Rows
from millpond.execution.operators.running import arrow_types
from millpond.execution.operators.streams import RunningStreamOf
from millpond.execution.steps import Outcome, Step
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import NOTHING, AnswerAndOutput, Destination, Work
from millpond.identities import OperatorId
from millpond.kernels.aggregate import element_schema
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints, distinct
from millpond.kernels.living import Living, LivingRows
from millpond.kernels.snapshots import SnapshotsKernel, limit, slide_instants, slide_limit
from millpond.planning.branches import Outputs
from millpond.planning.physical import SnapshotsOperator
from millpond.schema import BEGINNING
from millpond.storage.bucketed import BucketedState
from millpond.storage.deltas import read_delta, write_delta
from millpond.storage.forms import Keyed
from millpond.storage.state import StateVersion
from millpond.storage.state_cache import BucketName
from millpond.storage.worker_states import STATES

MOST_INSTANTS, MOST_ROWS = 100_000, 1_000_000
"""A step, or a task of it, speaks at most so often, and puts out about so many rows at most."""

TIMES = element_schema([])
"""What is read of movers."""


class RunningSnapshots(RunningStreamOf):
    """Rstream."""

    state: BucketedState

    def __init__(
        self, identity: OperatorId, operator: SnapshotsOperator, around: Surroundings, cursor: int
    ) -> None:
        self._kernel = SnapshotsKernel(arrow_types(operator.schema))
        self._slides = [_slide_of(node) for node in operator.movers]
        self.state = BucketedState(
            around.store,
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

    def run_here(self, step: Step, rows: Rows) -> Outcome:
        """The content at every instant at which a mover moves.

        How much that is depends on the instants, not on the input: a step may come less far than
        it was meant to.
        """
        instants, until = self._instants(step, rows)
        read = rows.gathered(self, [(step.readings[0], (STARTED,))], self.elements)
        new = self.living_of(read)
        known = self.state.everything() if len(instants) else self.state.known(new)
        start, end = _spans(known, new)
        until = limit(start, end, instants, until, MOST_ROWS) if len(instants) else until
        if until < step.until:
            new = new.filter(pa.array(integers(new["_ts"]) <= until))
            instants = instants[instants <= until]
        output, changes = self._kernel.run(new, known, instants, until)
        outcome = self.in_driver(output, self.state.changed(changes, until))
        outcome.until = until
        return outcome

    def _instants(self, step: Step, rows: Rows) -> tuple[Ints, int]:
        """The instants of a step, and up to which time these are all."""
        found, after, until = [np.zeros(0, dtype=np.int64)], step.after, step.until
        for reading, slide in zip(step.readings[1:], self._slides, strict=True):
            moves = rows.gathered(self, [(reading, (STARTED, ENDED))], TIMES)
            found.append(moments(moves, after, until))
            if slide is not None:
                stays = rows.gathered(self, [(reading, (ALIVE, STARTED))], TIMES)
                start, end = integers(stays["_ts"]), integers(stays["_te"])
                until = slide_limit(start, end, slide, after, until, MOST_INSTANTS)
                found.append(slide_instants(start, end, slide, after, until))
        instants = distinct(np.concatenate(found))
        return instants[(instants > max(after, BEGINNING)) & (instants <= until)], until

    # -- on the executors ------------------------------------------------------------------

    def jobs(self, step: Step) -> Jobs:
        """Finds the instants, then how far the content fits, then the content."""
        store, version = self.around.store, self.state.version
        destination, until, found = Destination.of(store), step.until, list[Answer]()
        search = FindMoments(destination, step.after, step.until)
        for reading, slide in zip(step.readings[1:], self._slides, strict=True):
            found += yield self._search(reading, (STARTED, ENDED), search)
            if slide is not None:
                slides = FindSlides(search, slide, MOST_INSTANTS)
                stays = yield self._search(reading, (ALIVE, STARTED), slides)
                until = min([until, *(answer["until"] for answer in stays)])
                found += stays
        names = tuple(answer["moments"] for answer in found)
        work = RunSnapshots(
            destination, self.elements, self._kernel, self.identity, version, names, until
        )
        held = sum(delta.rows for deltas in version.buckets for delta in deltas)
        if sum(answer["count"] for answer in found) * (held + step.rows) > MOST_ROWS:
            fits = yield self._of_buckets(step, FindLimit(work, MOST_ROWS))
            work = replace(work, until=min([until, *(answer["until"] for answer in fits)]))
        answers = yield self._of_buckets(step, work)
        store.remove(names)
        written = deltas_of(answers)
        self.state.note(written)
        after = version.after(written)
        outcome = self.written(answers, after)
        outcome.until = work.until
        return outcome

    def job(self, step: Step) -> None:
        """No single job: an Rstream takes several."""

    def _search(self, reading: Reading, modes: tuple[str, ...], work: Work) -> Job:
        return Job([(reading, modes)], work, (), self.buckets, self.written)

    def _of_buckets(self, step: Step, work: Work) -> Job:
        parts, keys = [(step.readings[0], (STARTED,))], self._kernel.columns
        buckets = len(self.state.version.buckets)
        work = self.living_in(work)
        return Job(parts, work, keys, buckets, self.written, is_for_all=True)

    # -- queries that are gone -------------------------------------------------------------

    def purged(self, living: Living, inputs: tuple[bool, ...]) -> Any:
        """Above a match the last column is the number of the query; what moves has none."""
        tag = self._kernel.columns[-1]
        self.living = LivingRows((tag,), living)
        return self.state.without(lambda _, rows: living.gone(rows[tag]), self.cursor)


def moments(elements: pa.Table, after: int, until: int) -> Ints:
    """The instants within a step at which elements start or end."""
    found = distinct(np.concatenate([integers(elements["_ts"]), integers(elements["_te"])]))
    return found[(found > max(after, BEGINNING)) & (found <= until)]


@dataclass(frozen=True)
class FindMoments:
    """Each task writes the instants at which its elements start or end."""

    destination: Destination
    after: int
    until: int

    @property
    def schema(self) -> pa.Schema:
        """Times only."""
        return TIMES

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """A file of instants."""
        return _written(self.destination, moments(rows, self.after, self.until), attempt), NOTHING


@dataclass(frozen=True)
class FindSlides:
    """Each task writes the slides at which its elements are there, as far as they are not many."""

    search: FindMoments
    slide: int
    most: int

    @property
    def destination(self) -> Destination:
        """Where the search writes."""
        return self.search.destination

    @property
    def schema(self) -> pa.Schema:
        """Times only."""
        return TIMES

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """A file of instants, and up to where these are all."""
        start, end, after = integers(rows["_ts"]), integers(rows["_te"]), self.search.after
        until = slide_limit(start, end, self.slide, after, self.search.until, self.most)
        found = slide_instants(start, end, self.slide, after, until)
        answer = _written(self.destination, found[found > BEGINNING], attempt) | {"until": until}
        return answer, NOTHING


def _written(destination: Destination, instants: Ints, attempt: int) -> Answer:
    name = f"{destination.state}-moments-{attempt}"
    write_delta(destination.path(name), pa.table({"t": instants}))
    return {"moments": name, "count": len(instants)}


@dataclass(frozen=True)
class RunSnapshots:
    """Each task puts out its bucket's part of the content at all instants."""

    destination: Destination
    schema: pa.Schema
    kernel: SnapshotsKernel
    operator: OperatorId
    version: StateVersion
    moments: tuple[str, ...]
    until: int

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """One bucket: its output, and what changes in its state."""
        instants, state = self.given(rows, bucket)
        rows = rows.filter(pa.array(integers(rows["_ts"]) <= self.until))
        output, changes = self.kernel.run(rows, state, instants, self.until)
        answer = self.destination.write_page(output, bucket, attempt)
        answer |= self.destination.write_state(
            self._name(bucket), self._form, self.version, changes, bucket, attempt, self.until
        )
        return answer, output

    def given(self, rows: pa.Table, bucket: int) -> tuple[Ints, pa.Table]:
        """The instants, and what is known of a bucket."""
        found = [read_delta(self.destination.path(name))["t"] for name in self.moments]
        instants = distinct(np.concatenate([np.zeros(0, dtype=np.int64), *map(integers, found)]))
        instants = instants[instants <= self.until]
        known = STATES.state_at(self._name(bucket), self._form, self.version)
        return instants, known.all() if len(instants) else known.query(rows)

    @property
    def _form(self) -> Keyed:
        return Keyed(self.kernel.state_schema, tuple(self.kernel.keys))

    def _name(self, bucket: int) -> BucketName:
        return BucketName(self.destination.directory, self.operator, bucket)


@dataclass(frozen=True)
class FindLimit:
    """Each task says how far its bucket's part of the content is not too much."""

    work: RunSnapshots
    most_rows: int

    @property
    def destination(self) -> Destination:
        """Where the work writes."""
        return self.work.destination

    @property
    def schema(self) -> pa.Schema:
        """What the work reads."""
        return self.work.schema

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """Finds up to where a bucket's content is not too much."""
        instants, state = self.work.given(rows, bucket)
        until = self.work.until
        if len(instants):
            start, end = _spans(state, rows)
            until = limit(start, end, instants, until, self.most_rows)
        return {"until": until}, NOTHING


def _spans(state: pa.Table, rows: pa.Table) -> tuple[Ints, Ints]:
    """When what is known, and what is new, starts and ends."""
    start = np.concatenate([np.full(state.num_rows, BEGINNING), integers(rows["_ts"])])
    return start, np.concatenate([integers(state["_te"]), integers(rows["_te"])])


def _slide_of(node: Node) -> int | None:
    return node.slide_ticks if isinstance(node, RangeWindow) else None

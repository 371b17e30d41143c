"""What all running operators share: the shape of a step.

Whatever is kept between steps is in queues (windows, relations) and synopses (groups), and changes
only when a step is committed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.errors import StateError
from millpond.execution.answers import Answer, page_of
from millpond.execution.batches import Experience
from millpond.execution.fragments import ENDED, STARTED
from millpond.execution.jobs import Job, Jobs, Rows
from millpond.execution.operators.reading import ReadingOperator
from millpond.execution.places import Places
from millpond.execution.steps import DRIVER, EXECUTORS, Outcome, Step, StepOf
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import Destination, OfLiving, Work
from millpond.identities import OperatorId
from millpond.kernels.aggregate import element_schema
from millpond.kernels.living import Living, LivingRows
from millpond.planning.keys import key_positions
from millpond.planning.physical import Operator
from millpond.schema import Schema
from millpond.storage.bucketed import KeptState
from millpond.storage.pages import Page

_numbers = itertools.count()


class RunningOperator(ReadingOperator):
    """What all running operators share: how a step is described, and what is kept of it."""

    state: KeptState | None = None
    """What it keeps between steps beside its queues, if anything."""
    living: LivingRows | None = None
    """Which rows matter of those it reads; None: all do."""
    keeps_columns = True
    """Whether columns that it reads are in the same places of what it puts out."""

    def __init__(
        self, identity: OperatorId, operator: Operator, around: Surroundings, cursor: int
    ) -> None:
        self.places = Places(around.limits, around.missed)
        super().__init__(identity, operator, around, cursor)

    @property
    def output_schema(self) -> pa.Schema:
        """The Arrow schema of the pages it writes."""
        return element_schema(arrow_types(self.operator.schema))

    @property
    def keeps_state(self) -> bool:
        """Whether a step depends on the one before it in more than its queues."""
        return self.state is not None

    @property
    def buckets(self) -> int:
        """In how many buckets of keys the executors work."""
        return self.around.limits.buckets

    @property
    def job_keys(self) -> tuple[str, ...]:
        """The columns by whose values rows are brought together on the executors."""
        return ()

    @cached_property
    def key_positions(self) -> tuple[int, ...] | None:
        """Where its output has the values of ``job_keys``; None if it has not, or has no keys."""
        return key_positions(self.operator)

    # -- a step ----------------------------------------------------------------------------

    def prepare(self, until: int) -> OperatorStep:
        """Claims (claimed, until] and pins what a step for it reads."""
        after = self.claimed
        readings = [
            fragment.read(self.needs_of(index), after, until)
            for index, fragment in enumerate(self.fragments)
        ]
        rows = sum(reading.rows(STARTED, ENDED) for reading in readings)
        step = StepOf(next(_numbers), self, after, until, readings, rows, self.place_for(rows))
        step.pin()
        self.claimed = until
        return step

    def place_for(self, rows: int) -> str:
        """Where a step of so many rows is to run."""
        is_awaited = self.is_local and self.around.cluster.is_awaited
        return self.places.choose(rows, is_awaited)

    def place_reason(self, rows: int) -> str:
        """Why a step of so many rows runs where it does."""
        return self.places.reason(rows, self.is_local and self.around.cluster.is_awaited)

    def experience(self, rows: int) -> Experience:
        """What is known of steps in the place for one of so many rows."""
        place = self.place_for(rows)
        return Experience(self.places.line(place), self.places.known_rows(place))

    @property
    def is_here(self) -> bool:
        """Whether steps in the driver need no Spark."""
        return self.is_local and not self.around.limits.asks_spark

    def seconds_here(self, rows: float) -> float:
        """How long a step takes in the driver without Spark; infinity if that is not known."""
        return self.places.seconds_here(rows) if self.is_here else math.inf

    def run_here(self, step: Step, rows: Rows) -> Outcome:
        """The work of a step in the driver, on rows that come here."""
        raise NotImplementedError

    def jobs(self, step: Step) -> Jobs:
        """The work of a step on the executors: one job, unless an operator takes several."""
        job = self.job(step)
        if job is None:
            raise StateError(f"internal: {self.operator.label()} is no single job")
        return job.outcome((yield job))

    def job(self, step: Step) -> Job | None:
        """The only job of a step; None if there are several."""
        return None

    def in_driver(self, table: pa.Table, state: Any = None) -> Outcome:
        """The outcome of a step whose output is in the driver."""
        page = Page.of(self.around.store, table) if table.num_rows else None
        return Outcome(page, DRIVER, state, driver_bytes=page.bytes if page else 0)

    def written(self, answers: list[Answer], state: Any = None) -> Outcome:
        """The outcome of a step whose output the executors have written."""
        outcome = Outcome(page_of(self.around.store, answers), EXECUTORS, state)
        outcome.rows = sum(answer.get("made", 0) for answer in answers)
        outcome.bytes = sum(answer.get("made_bytes", 0) for answer in answers)
        return outcome

    def destination_of(self, step: Step) -> Destination:
        """Where the executors write the files of a step, and what of its output."""
        return replace(Destination.of(self.around.store), remains=step.writes, until=step.until)

    def commit(self, step: Step) -> None:
        """Takes over the state of a step, and moves the cursor."""
        if step.outcome is not None and not step.is_idle:
            if self.state is not None:
                self.state.take(step.outcome.state)
            self.places.record(step.rows, step.outcome)
        if step.reached < step.until:  # the rest is there to be claimed again
            self.claimed = step.reached
        self.skip(step.reached)
        step.unpin()

    def forgive(self, numbers: frozenset[int]) -> None:
        """Has no step fail any more for the rows of queries that are gone: most never do."""

    def rebuild(self) -> bool:
        """Makes its state anew from the pages that are there; whether these say enough."""
        return False

    # -- queries that are gone -------------------------------------------------------------

    def purged(self, living: Living, inputs: tuple[bool, ...]) -> Any:
        """A version of its state without what it keeps for queries of its group that are gone.

        From now on it passes their rows over. ``inputs``: of which of them rows have a number.
        """
        raise NotImplementedError

    def living_of(self, rows: pa.Table) -> pa.Table:
        """The rows of a step that matter."""
        return rows if self.living is None else self.living.of(rows)

    def living_in(self, work: Work) -> Work:
        """The work on those."""
        return work if self.living is None else OfLiving(work, self.living)

    def discard(self, step: Step) -> None:
        """Gives up what the execution of a step has written."""
        if step.outcome is not None and not step.is_over:
            for page in (step.outcome.output, step.published):
                if page is not None:
                    page.free()
            if self.state is not None and not step.is_idle:
                self.state.give_up(step.outcome.state)
        step.outcome, step.published, step.is_idle = None, None, False

    def close(self) -> None:
        """Leaves its queues, and what was prepared for its steps."""
        self.leave()
        self.around.cluster.let_go(self)
        if self.state is not None:
            self.state.close()


def arrow_types(schema: Schema) -> tuple[pa.DataType, ...]:
    """The Arrow types of a schema's columns."""
    return tuple(ARROW_TYPES[type_] for type_ in schema.types)


OperatorStep: TypeAlias = StepOf[RunningOperator]
"""A step as those see it who have it done."""

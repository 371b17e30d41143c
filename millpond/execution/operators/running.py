"""What all running operators share: fragments, a cursor and the shape of a step.

Whatever is kept between steps is in queues (windows, relations) and synopses (groups), and changes
only when a step is committed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from millpond.connectors.arrow import ARROW_TYPES
from millpond.cql.node import Node
from millpond.errors import StateError
from millpond.execution.answers import Answer, page_of
from millpond.execution.batches import Experience
from millpond.execution.fragments import ENDED, STARTED, Fragment
from millpond.execution.jobs import Job, Jobs, Rows
from millpond.execution.placement import Placement
from millpond.execution.steps import DRIVER, EXECUTORS, Outcome, Step, StepOf
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import Destination, OfLiving, Work
from millpond.kernels.aggregate import element_schema
from millpond.kernels.living import Living, LivingRows
from millpond.planning.branches import Outputs
from millpond.planning.keys import key_positions
from millpond.planning.physical import Operator, queues_in
from millpond.schema import BEGINNING, Schema
from millpond.storage.bucketed import KeptState
from millpond.storage.pages import Page
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader

_numbers = itertools.count()


class RunningOperator:
    """What all running operators share: fragments, cursor and subscriptions."""

    needs: frozenset[str] = frozenset({STARTED})
    state: KeptState | None = None
    """What it keeps between steps beside its queues, if anything."""
    living: LivingRows | None = None
    """Which rows matter of those it reads; None: all do."""
    keeps_columns = True
    """Whether columns that it reads are in the same places of what it puts out."""

    def __init__(
        self, identity: str, operator: Operator, around: Surroundings, cursor: int
    ) -> None:
        self.identity = identity
        self.operator = operator
        self.around = around
        self.cursor = cursor
        """Up to here steps are committed."""
        self.claimed = cursor
        """Up to here steps are prepared."""
        self.inputs = operator.queues()
        """The names of the queues it reads."""
        self.placement = Placement(around.limits)
        self.fragments: list[Fragment] = []
        self.subscriptions: list[tuple[Queue, Reader]] = []
        """The queues it reads on and on."""
        self.past: list[tuple[Queue, Reader]] = []
        """The queues it read before, for what windows still need of them."""
        self._read()

    def _read(self) -> None:
        self.fragments = [
            Fragment(node, self.around, self.outputs(index))
            for index, node in enumerate(self.operator.inputs)
        ]
        for index, fragment in enumerate(self.fragments):
            fragment.subscribe(self.cursor, self.needs_of(index))
        self._subscribed()

    def _subscribed(self) -> None:
        self.subscriptions = [each for f in self.fragments for each in f.subscriptions]
        self.past = [each for f in self.fragments for each in f.past]

    # -- reading other queues from a time on -----------------------------------------------

    def can_reread(self, nodes: Sequence[Node], at: int) -> bool:
        """Whether it can read these fragments from a time on."""
        pairs = zip(self.fragments, nodes, strict=True)
        return all(fragment.can_reread(node, at) for fragment, node in pairs)

    def reread(self, nodes: Sequence[Node], at: int) -> None:
        """From where it has come, reads fragments of the same meaning that have other queues."""
        for index, (fragment, node) in enumerate(zip(self.fragments, nodes, strict=True)):
            if node != fragment.node:
                fragment.reread(node, at, self.needs_of(index))
        self.inputs = queues_in(nodes)
        self.__dict__.pop("is_local", None)
        self._subscribed()

    def redefine(self, operator: Operator) -> None:
        """From where it has come, reads other queues that have had the same content."""
        left = self.subscriptions
        self.operator, self.inputs = operator, operator.queues()
        self._read()
        for queue, reader in left:
            queue.unsubscribe(reader)
        self.read_since({queue.name: reader.since for queue, reader in left})
        self.__dict__.pop("is_local", None)

    @property
    def reads_since(self) -> dict[str, int]:
        """After which times it reads its queues, where what came before is read elsewhere."""
        return {q.name: r.since for q, r in self.subscriptions if r.since >= BEGINNING}

    def read_since(self, times: Mapping[str, int]) -> None:
        """Tells the operator's readers that they read queues after these times only."""
        for queue, reader in self.subscriptions:
            reader.since = times.get(queue.name, reader.since)

    def let_go(self) -> list[str]:
        """Forgets the queues of before that nothing is needed of any more; their names."""
        names = [name for fragment in self.fragments for name in fragment.let_go()]
        self._subscribed()
        return names

    def needs_of(self, index: int) -> frozenset[str]:
        """What the operator asks of its n-th fragment."""
        return self.needs

    def outputs(self, index: int) -> Outputs:
        """The columns it wants of its n-th fragment."""
        return Outputs.all_of(self.operator.inputs[index])

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

    # -- how far it could go ---------------------------------------------------------------

    @property
    def horizon(self) -> int:
        """The time up to which the operator's inputs are complete."""
        return min(queue.heartbeat for queue, _ in self.subscriptions)

    def waiting(self, after: int, until: int) -> int:
        """About how many rows lie in (after, until]."""
        return sum(fragment.waiting(after, until) for fragment in self.fragments)

    def waiting_in(self, queue: Queue) -> int:
        """About how many rows of one of its queues wait for it."""
        return queue.waiting(self.claimed, queue.heartbeat)

    @property
    def row_bytes(self) -> float:
        """The average size of the rows held by the queues it reads; 0 if they are empty."""
        queues = [queue for queue, _ in self.subscriptions]
        return sum(queue.bytes for queue in queues) / max(1, sum(queue.rows for queue in queues))

    def has_work(self, until: int) -> bool:
        """Whether a step up to ``until`` could put anything out."""
        if until <= self.claimed:
            return False
        return any(
            fragment.waiting(self.claimed, until) or self._ends(index, until)
            for index, fragment in enumerate(self.fragments)
        )

    def _ends(self, index: int, until: int) -> int:
        if ENDED not in self.needs_of(index):
            return 0
        return self.fragments[index].ending(self.claimed, until)

    def limited(self, horizon: int, most: int) -> int:
        """The latest time up to which a step reads about ``most`` rows, or the horizon."""
        if self.waiting(self.claimed, horizon) <= most:
            return horizon
        times: list[tuple[int, int, Page]] = []
        for queue in {id(queue): queue for queue, _ in self.subscriptions}.values():
            spans = queue.first(self.claimed, horizon, most)
            times += [(span.page.last, span.rows, span.page) for span in spans]
        times.sort(key=lambda each: each[0])
        total, until = 0, self.claimed
        for last, rows, page in times:
            if total + rows > most:
                passed = page.rows - page.count(self.claimed, page.last)
                inside = page.row_time(min(passed + most - total, page.rows - 1)) - 1
                return min(max(until, inside, self.claimed + 1), horizon)
            total, until = total + rows, last
        return horizon

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
        cluster = self.around.cluster
        return self.placement.choose(rows, cluster.is_there, cluster.is_awaited)

    def experience(self, rows: int) -> Experience:
        """What is known of steps in the place for one of so many rows."""
        place = self.place_for(rows)
        return Experience(self.placement.line(place), self.placement.known_rows(place))

    @cached_property
    def is_local(self) -> bool:
        """Whether all expressions can be evaluated without Spark."""
        return all(fragment.is_local for fragment in self.fragments)

    def seconds_here(self, rows: float) -> float:
        """How long a step takes in the driver without Spark; infinity if that is not known."""
        if not self.is_local or self.around.limits.asks_spark:
            return math.inf
        return self.placement.seconds_here(rows)

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
            self.placement.record(step.rows, step.outcome)
        if step.reached < step.until:  # the rest is there to be claimed again
            self.claimed = step.reached
        self.skip(step.reached)
        step.unpin()

    def unclaim(self, step: Step) -> None:
        """What a step was to do, and those prepared after it, is there to be done again."""
        self.claimed = min(self.claimed, step.after)

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

    def skip(self, until: int) -> None:
        """Moves the cursor over a step, or over a time in which nothing happens."""
        self.cursor = until
        self.claimed = max(self.claimed, until)
        for _, reader in (*self.subscriptions, *self.past):
            reader.cursor = until

    def close(self) -> None:
        """Leaves its queues, and what was prepared for its steps."""
        for queue, reader in (*self.subscriptions, *self.past):
            queue.unsubscribe(reader)
        self.around.cluster.let_go(self)
        if self.state is not None:
            self.state.close()


def arrow_types(schema: Schema) -> tuple[pa.DataType, ...]:
    """The Arrow types of a schema's columns."""
    return tuple(ARROW_TYPES[type_] for type_ in schema.types)


OperatorStep: TypeAlias = StepOf[RunningOperator]
"""A step as those see it who have it done."""

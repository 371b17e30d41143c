"""Members of a virtual operator that are executed in one job.

A task that has run one member on its bucket of keys has in its hands what the next one reads of
that bucket, if both have the same keys. So the next one *rides* along: its work is done in the same
task, on its own bucket of its own state, and what was put out in between is written only if
somebody needs it later. A first one without keys is divided by those of the one that reads it.

One that reads nothing of those before it rides *beside* them if it wants as many tasks: each task
does its part of both, and pages that both read are read once. So shapes over the same pages are one
job, however many there are.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from millpond.cql.expressions import Column, Expression
from millpond.errors import StateError
from millpond.execution.answers import Answer, answers_of_member
from millpond.execution.fragments import Reading
from millpond.execution.jobs import MOST_READERS, Job, portions_of
from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.execution.steps import EXECUTORS, Outcome, is_due
from millpond.execution.surroundings import Limits
from millpond.execution.work import Ride, Rider
from millpond.identities import OperatorId
from millpond.planning.graph import operators_in
from millpond.schema import Type
from millpond.storage.portions import Portion, TaskRows
from millpond.storage.readers import Remains

ALONE_ROWS = 25_000
"""Where a first one has a single task, one that could be divided rides with at most so many rows:
with more, all residents together are quicker, though they read what it has put out."""

Located = dict[str, tuple[int, ...] | None]
"""For each member on a ride: where its output has the values by which the tasks divide the rows."""


class HasTasks(Protocol):
    """Who does jobs."""

    limits: Limits

    def tasks(self, job: Job) -> int | None:
        """How many tasks read the files of a job themselves; None if they are given their rows."""

    def answers(self, running: RunningOperator, job: Job) -> list[Answer]:
        """Does a job."""


@dataclass(frozen=True)
class Division:
    """By which columns of what it reads the first one's rows are divided, and in how many buckets.

    ``positions`` is where these are in what it puts out, if they are.
    """

    keys: tuple[str, ...]
    buckets: int
    positions: tuple[int, ...] | None

    def of(self, job: Job) -> Job:
        """The job, divided so."""
        return replace(job, keys=self.keys, buckets=self.buckets)


@dataclass(frozen=True)
class SharedJob:
    """Steps of several members that one job executes; those that ride come upstream first."""

    executor: HasTasks
    first: OperatorStep
    division: Division
    riders: tuple[OperatorStep, ...]
    keys: tuple[tuple[str, ...], ...]
    """For each rider the columns with the values by which the tasks divide the rows."""
    tasks: int

    def run(self) -> list[Outcome]:
        """Does the job; the outcomes of all of them."""
        began = time.monotonic()
        steps = [self.first, *self.riders]
        job, *others = [_job(step) for step in steps]
        job = self.division.of(job)
        riders = [
            Rider(each.work, TaskRows(_known(each), keys, self.tasks), self._fresh(position))
            for position, (each, keys) in enumerate(zip(others, self.keys, strict=True), 1)
        ]
        job = replace(job, work=Ride(job.work, tuple(riders)), is_for_all=True)
        answers = self.executor.answers(self.first.running, job)
        of_members = [answers_of_member(answers, position) for position in range(len(steps))]
        pairs = zip([job, *others], of_members, strict=True)
        outcomes = [each.outcome(found) for each, found in pairs]
        self._count(outcomes, of_members, time.monotonic() - began)
        for outcome in outcomes:
            outcome.began = began
        return outcomes

    def _fresh(self, position: int) -> tuple[tuple[int, Portion], ...]:
        """What the rider at a position of the ride reads of those before it."""
        step, before = self.riders[position - 1], [self.first, *self.riders[: position - 1]]
        return tuple(
            (source, portion)
            for source, each in enumerate(before)
            for reading in step.readings
            for portion in reading.fresh_portions(each.running.identity, step.after, step.until)
        )

    def _count(
        self, outcomes: list[Outcome], of_members: list[list[Answer]], seconds: float
    ) -> None:
        """Divides the time as the tasks have spent it, and counts what the riders have read."""
        spent = [sum(answer["seconds"] for answer in found) for found in of_members]
        for outcome, own in zip(outcomes, spent, strict=True):
            outcome.seconds = seconds * own / (sum(spent) or 1.0)
        steps = [self.first, *self.riders]
        made = {s.running.identity: o.rows for s, o in zip(steps, outcomes, strict=True)}
        for step in self.riders:
            step.rows += sum(made.get(name, 0) for name in operators_in(step.running.inputs))


def shared_job(
    executor: HasTasks,
    first: OperatorStep,
    others: Sequence[OperatorStep],
    done: Mapping[OperatorId, OperatorStep],
) -> SharedJob | None:
    """The steps that can be executed in the job of a first one; None if there are none.

    ``others`` come upstream first and are not executed yet, ``done`` ones are.
    """
    running, job = first.running, _only_job(first) if others else None
    if job is None:
        return None
    division = _division(first, others, job)
    job = division.of(job)
    tasks = executor.tasks(job)
    located: Located = {running.identity: division.positions}
    riders: dict[str, OperatorStep] = {}
    keys: list[tuple[str, ...]] = []
    waits = {each.running.identity for each in others}
    for step in others:
        rider = step.running
        if waits & set(rider.inputs):
            continue
        now = step.behind(done, first.until)
        if located.keys() & set(rider.inputs):
            names = _dividing(rider, step.readings, located, job.buckets)
            is_alone = tasks == 1 and _is_better_divided(executor, rider, first)
            is_riding = names is not None and not is_alone and _can_ride(now, job)
        else:
            names = rider.job_keys
            is_beside = tasks is not None and _can_ride_beside(step, now, first)
            is_riding = is_beside and _tasks(executor, now) == tasks
        if names is None or not is_riding:
            continue
        riders[rider.identity] = replace(now, place=EXECUTORS)
        keys.append(names)
        waits.remove(rider.identity)
        located[rider.identity] = rider.key_positions if names == rider.job_keys else None
    if not riders:
        return None
    rest = [each for each in others if each.running.identity not in riders]
    written = (_written_for(step, rest) for step in riders.values())
    first = _written_for(first, rest)
    return SharedJob(executor, first, division, tuple(written), tuple(keys), tasks or job.buckets)


def _division(first: OperatorStep, others: Sequence[OperatorStep], job: Job) -> Division:
    """How the rows of a first step are divided: as it wants, or as one wants that reads it."""
    running = first.running
    usual = Division(tuple(job.keys), job.buckets, running.key_positions)
    if job.keys or running.keeps_state or not running.keeps_columns:
        return usual
    for step in others:
        rider = step.running
        if running.identity in rider.inputs and rider.keeps_state and rider.job_keys:
            positions = _read_at(step.readings, running.identity, rider.job_keys)
            if positions is not None:
                keys = tuple(f"c{position}" for position in positions)
                return Division(keys, rider.buckets, positions)
    return usual


def _read_at(
    readings: Sequence[Reading], queue: str, keys: tuple[str, ...]
) -> tuple[int, ...] | None:
    """Where a queue has the keys of one that reads it; None if it has not all of them.

    Equal doubles may differ in their bits, by which they would be divided.
    """
    found: set[tuple[int, ...] | None] = set()
    for branch in (branch for reading in readings for branch in reading.branches):
        if branch.queue.name == queue:
            columns = branch.columns()
            values = [columns[name] for name in keys]
            positions = tuple(
                value.position
                for value in values
                if isinstance(value, Column) and value.type is not Type.DOUBLE
            )
            found.add(positions if len(positions) == len(keys) else None)
    return found.pop() if len(found) == 1 else None


def _dividing(
    rider: RunningOperator, readings: Sequence[Reading], located: Located, buckets: int
) -> tuple[str, ...] | None:
    """The key columns with the values by which its rows are divided; None: it can not ride.

    What keeps state by keys must be divided by just these keys, as its state is. What only sums up
    equal rows may be divided by some of their columns.
    """
    if not rider.job_keys and not rider.keeps_state:
        return ()
    found: set[tuple[str, ...] | None] = set()
    for branch in (branch for reading in readings for branch in reading.branches):
        if branch.queue.name in located:
            found.add(_names(branch.columns(), located[branch.queue.name], rider.job_keys))
    names = found.pop() if len(found) == 1 else None
    if rider.keeps_state and (names != rider.job_keys or rider.buckets != buckets):
        return None
    return names


def _names(
    columns: Mapping[str, Expression], positions: tuple[int, ...] | None, keys: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Which keys hold the columns at some positions; None if one is in no key.

    Equal doubles may differ in their bits, by which they would be divided.
    """
    if positions is None:
        return None
    at = {
        expression.position: name
        for name in reversed(keys)
        if isinstance(expression := columns[name], Column) and expression.type is not Type.DOUBLE
    }
    return tuple(at[p] for p in positions) if set(positions) <= at.keys() else None


def _can_ride(step: OperatorStep, job: Job) -> bool:
    """Whether tasks can do all of a step, with what it reads beside the output of others."""
    own = _only_job(step)
    known = None if own is None or not step.running.is_local else portions_of(own.parts)
    can_divide = bool(job.keys) and job.buckets <= MOST_READERS
    return known is not None and (can_divide or not known)


def _is_better_divided(executor: HasTasks, rider: RunningOperator, first: OperatorStep) -> bool:
    """Whether several residents are quicker with what reads the output of a single task."""
    could = bool(rider.job_keys) and rider.buckets > 1
    return could and executor.limits.residents != 0 and first.rows > ALONE_ROWS


def _can_ride_beside(step: OperatorStep, now: OperatorStep, first: OperatorStep) -> bool:
    """Whether a step that reads nothing of a first one is as well done in as many tasks."""
    running = step.running
    if not is_due(step, now) or now.until != first.until:
        return False
    return running.place_for(now.rows) == EXECUTORS and running.is_local


def _tasks(executor: HasTasks, step: OperatorStep) -> int | None:
    job = _only_job(step)
    return None if job is None else executor.tasks(job)


def _only_job(step: OperatorStep) -> Job | None:
    """The job of a step, if it is all that is to be done."""
    job = step.running.job(step)
    return None if job is None or job.pairs is not None else job


def _job(step: OperatorStep) -> Job:
    job = _only_job(step)
    if job is None:
        raise StateError(f"internal: {step.running.operator.label()} is no single job")
    return job


def _known(job: Job) -> tuple[Portion, ...]:
    return tuple(portions_of(job.parts) or ())


def _written_for(step: OperatorStep, rest: Sequence[OperatorStep]) -> OperatorStep:
    """The step, which writes what is needed by those that do not ride, and when it is over."""
    identity = step.running.identity
    is_read = any(identity in each.running.inputs for each in rest)
    return replace(step, writes=Remains.ALL if is_read else step.remains)

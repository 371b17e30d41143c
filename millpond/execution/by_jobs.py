"""Steps on executors, as jobs of tasks: each task works on one bucket of keys.

Whoever has executors says how tasks come to their rows and their work (`answers`). Several members
of a unit may ride in one job (`rides.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from millpond.execution.answers import Answer
from millpond.execution.jobs import MOST_READERS, Job, Pairs
from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.execution.rides import SharedJob, shared_job
from millpond.execution.steps import Outcome
from millpond.execution.surroundings import Limits
from millpond.identities import OperatorId
from millpond.storage.files import ARROW
from millpond.storage.pages import Page
from millpond.storage.portions import pieces

TASK_ROWS = 100_000
"""A task that only evaluates and writes gets at least so many rows, if there are that many."""

MAPPED_TASK_ROWS = 25_000
"""The same where what it reads is mapped and not decoded: a part of a page costs its part."""


class JobExecutor(ABC):
    """Executes steps as one job after the other."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    @abstractmethod
    def answers(self, running: RunningOperator, job: Job) -> list[Answer]:
        """Does a job: on each bucket of keys or, without keys, anywhere."""

    @abstractmethod
    def pairs_put_out(self, running: RunningOperator, pairs: Pairs, page: Page) -> list[Answer]:
        """Writes what becomes of a page of pairs, which the tasks of a job could not say."""

    def execute(self, step: OperatorStep) -> Outcome:
        """Does the jobs of a step."""
        jobs = step.running.jobs(step)
        job = next(jobs)
        while True:
            answers = self.answers(step.running, job)
            try:
                job = jobs.send(answers)
            except StopIteration as over:
                outcome: Outcome = over.value
                return outcome if job.pairs is None else self._put_out(step, job.pairs, outcome)

    def _put_out(self, step: OperatorStep, pairs: Pairs, outcome: Outcome) -> Outcome:
        page = outcome.output
        if page is None:
            return outcome
        answers = self.pairs_put_out(step.running, pairs, page)
        page.free()
        return step.running.written(answers, outcome.state)

    def together(
        self,
        first: OperatorStep,
        others: Sequence[OperatorStep],
        done: Mapping[OperatorId, OperatorStep],
    ) -> SharedJob | None:
        """The steps that can be executed in the job of a first one."""
        return None if self.limits.asks_spark else shared_job(self, first, others, done)

    def tasks(self, job: Job) -> int | None:
        """How many tasks read the files of a job themselves; None if they are given their rows."""
        portions = None if self.limits.asks_spark else job.portions
        if portions is None or (job.keys and job.buckets > MOST_READERS):
            return None
        if job.keys:
            return job.buckets
        if self.limits.divides_few:
            return self.limits.buckets
        rows = job.rows
        if job.work.destination.suffix == ARROW and self.limits.residents != 0:
            return max(1, min(self.limits.buckets, rows // MAPPED_TASK_ROWS))
        return max(1, min(self.limits.buckets, pieces(portions), rows // TASK_ROWS))

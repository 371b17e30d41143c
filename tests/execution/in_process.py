"""An executor whose tasks run in this process, one after the other: no Spark, no JVM."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from typing import Any

from millpond.execution.answers import Answer, checked
from millpond.execution.by_jobs import JobExecutor
from millpond.execution.jobs import Job, portions_of
from millpond.execution.work import Ride, done, own_rows
from millpond.storage.portions import TaskRows

WORKS: Counter[str] = Counter()
"""How many jobs did which work."""


class InProcess(JobExecutor):
    """Executes the jobs of steps here; it cannot evaluate what Spark alone can."""

    is_awaited, lost = False, None

    def __init__(self, start_spark: Any, store: Any, limits: Any, *more: Any) -> None:
        super().__init__(limits)
        self._attempts = itertools.count()

    def answers(self, running: Any, job: Job) -> list[Answer]:
        tasks, work = self.tasks(job), job.work
        is_ride = isinstance(work, Ride)
        together = (work.first, *(rider.work for rider in work.riders)) if is_ride else ()
        WORKS.update(type(each).__name__ for each in (work, *together))
        assert tasks is not None, "nothing here needs Spark"
        portions = tuple(portions_of(job.parts) or ())
        rows = TaskRows(portions, tuple(job.keys), tasks)
        return checked([self._task(work, rows, task) for task in range(tasks)])

    def _task(self, work: Any, rows: TaskRows, task: int) -> Answer:
        return done(work, lambda: own_rows(work, rows, task), task, next(self._attempts))

    def pairs_put_out(self, *given: Any) -> list[Answer]:
        raise NotImplementedError

    gathered = put_out = offenders = pairs_put_out

    def new_tag(self) -> str:
        return "here"

    def working(self, *given: Any) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def cancel(self, tag: str | None = None) -> None:
        pass

    def forget(self, lost: object) -> bool:
        return False

    def expect(self) -> None:
        pass

    def close(self) -> None:
        pass

    def let_go(self, operator: object) -> None:
        pass

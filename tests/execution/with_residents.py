"""An executor whose tasks residents do, which are processes of their own: no Spark, no JVM."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from millpond.execution.answers import Answer
from millpond.execution.jobs import Job, portions_of
from millpond.execution.residents.encryption import Certificate
from millpond.execution.residents.pool import Asker, Connected, Residents
from millpond.execution.residents.wire import Invitation
from millpond.storage.portions import TaskRows
from tests.execution.in_process import InProcess
from tests.execution.nursery import Begun, begin


class Crew:
    """Some residents, each begun again when it ends."""

    def __init__(
        self,
        count: int,
        way: Callable[[Invitation], Invitation] = lambda i: i,
        certificate: Certificate | None = None,
    ) -> None:
        self.residents = Residents("127.0.0.1", kill=self._kill, certificate=certificate)
        self._way = way
        self._is_closed = False
        self._processes: dict[int, Begun] = {}
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        while not self._is_closed:
            invitation = self.residents.invite()
            process = self._processes[number] = begin(self._way(invitation))
            process.wait()
            self.residents.disinvite(invitation.name)

    @property
    def pids(self) -> list[int]:
        return [each.pid for each in self.residents.there]

    def _kill(self, resident: Connected) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(resident.pid, signal.SIGKILL)

    def close(self) -> None:
        self._is_closed = True
        self.residents.close()
        for process in self._processes.values():
            process.kill()
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def crew(
    count: int,
    way: Callable[[Invitation], Invitation] = lambda i: i,
    certificate: Certificate | None = None,
) -> Iterator[Crew]:
    there = Crew(count, way, certificate)
    try:
        yield there
    finally:
        there.close()


def executor(there: Crew, before: Callable[[], None] = lambda: None) -> type[InProcess]:
    """An executor whose tasks a crew does; ``before`` is called before every job."""

    class WithResidents(InProcess):
        def answers(self, running: Any, job: Job) -> list[Answer]:
            before()
            tasks = self.tasks(job)
            assert tasks is not None, "nothing here needs Spark"
            rows = TaskRows(tuple(portions_of(job.parts) or ()), tuple(job.keys), tasks)
            asker = Asker(running.identity, running.keeps_state, rows=job.rows)
            answers = there.residents.answers(job.work, rows, tasks, asker)
            assert answers is not None, "nobody came"
            return answers

    return WithResidents

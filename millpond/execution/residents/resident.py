"""What a resident does: it takes one task after another from the driver, until that is gone.

One thread works; one listens, so that it hears of the end at once; one beats, so that the driver
knows that it lives. States that it worked on stay in its memory (`storage/worker_states.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from millpond.errors import StoreError
from millpond.execution.answers import Answer
from millpond.execution.residents.packing import Unpacking
from millpond.execution.residents.wire import Connection, Invitation, Kind
from millpond.execution.work import Work, done, own_rows
from millpond.storage.portions import TaskRows

NUMBER_BYTES = 8
"""A task's number comes before it."""

BEAT_SECONDS = 1.0
SILENCE_SECONDS = 60.0
"""Who has not been heard for so long is gone."""


@dataclass(frozen=True)
class Task:
    """What a resident does of a step: the work on one bucket."""

    number: int
    work: Work
    task_rows: TaskRows | None
    bucket: int

    def answer(self) -> Answer:
        """Does it; the answer says what it raised, if it did."""
        rows = partial(own_rows, self.work, self.task_rows, self.bucket)
        try:
            return done(self.work, rows, self.bucket, self.number)
        except StoreError as error:
            return {"store": str(error), "errno": error.errno}
        except Exception as error:  # noqa: BLE001 (the driver is told)
            return _raised(error)


class Resident:
    """A process that works for the driver."""

    def __init__(self, connection: Connection, end: Callable[[], None]) -> None:
        self._connection = connection
        self._end = end
        self._heard = time.monotonic()
        self._tasks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unpacking = Unpacking()

    def work(self) -> None:
        """Takes tasks until the driver has no more for it."""
        self._connection.expect_within(None)
        self._connection.send(Kind.ANSWER, json.dumps(_about_itself()).encode())
        for action in (self._listen, self._beat):
            threading.Thread(target=action, name="millpond-resident", daemon=True).start()
        while (data := self._tasks.get()) is not None:
            number = int.from_bytes(data[:NUMBER_BYTES])
            answer = self._answer(data[NUMBER_BYTES:]) | {"task": number}
            self._connection.send(Kind.ANSWER, json.dumps(answer).encode())
        self._connection.close()

    def _answer(self, data: bytes) -> Answer:
        try:
            task: Task = self._unpacking.unpacked(data)
        except Exception as error:  # noqa: BLE001 (the driver is told)
            self._tasks.put(None)  # what it remembers may be half of what it was told
            return _raised(error)
        return task.answer()

    def _listen(self) -> None:
        try:
            while True:
                kind, data = self._connection.receive()
                self._heard = time.monotonic()
                if kind is Kind.TASK:
                    self._tasks.put(data)
                elif kind is Kind.END:
                    break
        except (OSError, EOFError):
            self._end()
        self._tasks.put(None)

    def _beat(self) -> None:
        with contextlib.suppress(OSError):
            while time.monotonic() - self._heard < SILENCE_SECONDS:
                time.sleep(BEAT_SECONDS)
                self._connection.send(Kind.BEAT)
        self._end()


def _raised(error: Exception) -> Answer:
    return {"raised": f"{type(error).__name__}: {error}", "stack": traceback.format_exc()}


def _about_itself() -> Answer:
    return {"host": socket.gethostname(), "pid": os.getpid()}


def reside(invitation: Invitation, end: Callable[[], None]) -> None:
    """Works for the driver that has sent an invitation; ``end`` ends the process at once."""
    Resident(invitation.connect(), end).work()

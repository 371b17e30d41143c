"""The residents of a Spark session, as the driver sees them: who is there, and who does what.

A task goes to the resident that has the state of its bucket in memory (its *home*), unless that is
busy for long; one without a state goes to anybody. Each resident has one task at a time, so that
what comes next is decided late. A resident that is lost takes nothing with it: its task is given
to another one, and what it may have written is named by nobody.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from millpond.errors import MillpondError, StoreError
from millpond.execution.answers import Answer, checked
from millpond.execution.failures import CancelledStepError
from millpond.execution.residents.durations import Durations, OperatorName
from millpond.execution.residents.encryption import Certificate, EncryptedSocket, Plain
from millpond.execution.residents.homes import Home, Homes
from millpond.execution.residents.packing import Packing
from millpond.execution.residents.resident import NUMBER_BYTES, SILENCE_SECONDS, Task
from millpond.execution.residents.wire import GREETING_SECONDS, Connection, Invitation, Kind
from millpond.execution.work import Work
from millpond.storage.portions import TaskRows

MOVE_SECONDS, MOVE_FACTOR = 0.1, 3.0
"""A task that has waited so long for its home goes to anybody who is free, who has to read the
state: not before a few tasks of its operator could have been done."""

MOST_LOSSES = 3
"""A task that so many residents were lost with is given to no other."""

COME_SECONDS = 120.0
"""So long a step waits for the first resident to come."""

MOST_ENDED = 5
"""When so many have ended, one after another, before they came, nobody waits any longer."""

FOR_NOBODY_SECONDS = 5.0
"""So long a task may go on that was cancelled."""

_FIRST_NUMBER = 1 << 40
"""Numbers of tasks are parts of names of files, as those of Spark's tasks are, which are lower."""


class ResidentLostError(MillpondError):
    """Several residents were lost in the same task."""


class RaisedError(MillpondError):
    """A resident could not do a task, which is no fault of the rows."""


@dataclass(frozen=True)
class Asker:
    """Who has work done: an operator, in a step with a tag, for a thread of the strategy."""

    operator: str = ""
    has_state: bool = False
    tag: str | None = None
    thread: int = 0
    weight: float = 1.0
    rows: int = 0
    """How many rows the step reads, about."""


ANYBODY = Asker()


@dataclass(eq=False)
class _Waiting:
    """A bucket of a job, before and while somebody works on it."""

    job: _Job
    bucket: int
    home: Home | None
    since: float = field(default_factory=time.monotonic)
    losses: int = 0
    number: int = 0
    """Of the task in which somebody works on it."""
    answer: Answer | None = None


@dataclass(eq=False)
class _Job:
    """The work on all buckets of a step, and who waits for it."""

    work: Work
    task_rows: TaskRows | None
    asker: Asker
    is_over: threading.Event = field(default_factory=threading.Event)
    open: int = 0
    error: BaseException | None = None

    @property
    def operator(self) -> OperatorName:
        """Whose work it is."""
        return self.work.destination.directory, self.asker.operator

    def fail(self, error: BaseException) -> None:
        """Has whoever waits for it told of an error."""
        self.error = self.error or error
        self.is_over.set()


@dataclass(eq=False)
class Connected:
    """A resident that is there."""

    name: str
    connection: Connection
    host: str
    pid: int
    packing: Packing = field(default_factory=Packing)
    doing: _Waiting | None = None
    began: float = field(default_factory=time.monotonic)
    """When it was given its task, or came if it has had none."""
    is_lost: bool = False


class Residents:
    """Those who are there, and the tasks that wait for them."""

    def __init__(
        self,
        host: str,
        port: int = 0,
        kill: Callable[[Connected], None] = lambda resident: None,
        idle_seconds: float | None = None,
        let_go: Callable[[Connected], None] = lambda resident: None,
        certificate: Certificate | None = None,
    ) -> None:
        self._secret = secrets.token_bytes(32)
        self._public = "" if certificate is None else certificate.public
        self._encryption = None if certificate is None else certificate.context()
        self._kill = kill
        self._idle_seconds, self._let_go = idle_seconds, let_go
        self._listener = socket.create_server((host, port))
        self._address = host, int(self._listener.getsockname()[1])
        self._changed = threading.Condition()
        self._there: dict[str, Connected] = {}
        self._invited: dict[str, bool] = {}
        """Who may come, and whether they have come before: Spark may begin a task again."""
        self._taken: set[str] = set()
        """The names of those who are there or are just coming."""
        self._waiting: list[_Waiting] = []
        self._homes = Homes()
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._names = itertools.count(1)
        self._spent: dict[int, float] = {}
        self._durations = Durations()
        self._ended = 0
        """How many have ended since the last one came."""
        self._was_awaited_in_vain = False
        self._is_closed = False
        self.lost = 0
        """How many have been lost."""
        threading.Thread(target=self._receive, name="millpond-residents", daemon=True).start()

    # -- coming and going ------------------------------------------------------------------

    def invite(self, host: str | None = None) -> Invitation:
        """An invitation for one more, good for one connection at a time."""
        name = f"resident-{next(self._names)}"
        with self._changed:
            self._invited[name] = False
        own, port = self._address
        return Invitation(host or own, port, name, self._secret, self._public)

    def disinvite(self, name: str) -> bool:
        """One who was invited will not come, or has ended; whether they had come."""
        with self._changed:
            has_come = self._invited.pop(name, True)
            self._ended += not has_come
            self._changed.notify_all()
            resident = self._there.get(name)
        if resident is not None:
            self._lose(resident)
        return has_come

    @property
    def is_awaited(self) -> bool:
        """Whether nobody has come yet, and somebody may."""
        with self._changed:
            return not self._there and not self._was_awaited_in_vain and not self._is_decided()

    @property
    def there(self) -> list[Connected]:
        """Who is there."""
        with self._changed:
            return list(self._there.values())

    def send_home(self, name: str) -> None:
        """Has one end when its task is done."""
        with self._changed:
            resident = self._there.get(name)
        if resident is not None:
            with contextlib.suppress(OSError):
                resident.connection.send(Kind.END)

    def close(self) -> None:
        """Ends all of them."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        with contextlib.suppress(OSError):  # who accepts is told so, which close alone does not
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for resident in self.there:
            self._lose(resident)

    def _receive(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._greet, args=(plain,), name="millpond-resident", daemon=True
            ).start()

    def _greet(self, found: socket.socket) -> None:
        """Lets one in who knows the secret and is expected, and listens to it from then on."""
        name, plain = "", cast("Plain", found)
        try:
            plain = self._encrypted(found)
            connection = Connection(plain)
            name = self._let_in(connection.presented(self._secret))
            connection.accept()
            _, about = connection.receive()
            known = json.loads(about)
        except (OSError, EOFError, ValueError):
            with self._changed:
                self._taken.discard(name)
            plain.close()
            return
        resident = Connected(name, connection, str(known["host"]), int(known["pid"]))
        connection.expect_within(SILENCE_SECONDS)
        with self._changed:
            is_late = self._is_closed
            if not is_late:
                self._there[name] = resident
                self._homes.come(name, len(self._there))
                self._was_awaited_in_vain, self._ended = False, 0
                self._changed.notify_all()
        if is_late:
            connection.close()
            return
        self._hand_out()
        self._listen(resident)

    def _encrypted(self, plain: socket.socket) -> Plain:
        """What somebody talks through who has come; in the clear, if that was not asked for."""
        if self._encryption is None:
            return plain
        plain.settimeout(GREETING_SECONDS)
        return EncryptedSocket(self._encryption.wrap_socket(plain, server_side=True))

    def _let_in(self, name: str) -> str:
        """Takes a name for one who is expected; raises ConnectionRefusedError for anybody else."""
        with self._changed:
            if name not in self._invited or name in self._taken:
                raise ConnectionRefusedError(name)
            self._invited[name] = True
            self._taken.add(name)
        return name

    def _listen(self, resident: Connected) -> None:
        """Hears what one says; one that is silent or overdue is ended, others end by themselves."""
        is_killed = True
        try:
            while True:
                kind, data = resident.connection.receive()
                if kind is Kind.BEAT:
                    resident.connection.send(Kind.BEAT)
                    if self._is_overdue(resident):
                        break
                    if self._is_idle(resident):
                        self._let_go(resident)
                elif kind is Kind.ANSWER:
                    self._answered(resident, json.loads(data))
        except TimeoutError:
            pass
        except (OSError, EOFError, ValueError):
            is_killed = False
        self._lose(resident, is_killed)

    def _is_overdue(self, resident: Connected) -> bool:
        """Whether a resident has worked on a task for longer than it can take, or on one that
        nobody waits for any more."""
        doing, seconds = resident.doing, time.monotonic() - resident.began
        if doing is None:
            return False
        if doing.job.is_over.is_set():
            return seconds > FOR_NOBODY_SECONDS
        task = doing.job.operator, doing.job.asker.rows
        is_overdue = seconds > self._durations.deadline(*task)
        if is_overdue:  # whoever has it next may take longer: it may be just slow
            self._durations.record(*task, seconds)
        return is_overdue

    def _is_idle(self, resident: Connected) -> bool:
        """Whether a resident has had nothing to do for longer than it may."""
        idle = time.monotonic() - resident.began
        return (
            resident.doing is None
            and self._idle_seconds is not None
            and (idle > self._idle_seconds)
        )

    def _lose(self, resident: Connected, is_killed: bool = False) -> None:
        """One is gone: others do what it was doing, and have to read the states that it had."""
        with self._changed:
            if resident.is_lost:
                return
            resident.is_lost = True
            self._there.pop(resident.name, None)
            self._taken.discard(resident.name)
            self.lost += 1
            self._homes.leave(resident.name)
            waiting, resident.doing = resident.doing, None
            if waiting is not None and not waiting.job.is_over.is_set():
                waiting.losses += 1
                if waiting.losses >= MOST_LOSSES:
                    waiting.job.fail(_lost(waiting))
                else:
                    self._waiting.insert(0, waiting)
            self._changed.notify_all()
        resident.connection.close()
        if is_killed:
            self._kill(resident)
        self._hand_out()

    # -- tasks -----------------------------------------------------------------------------

    def answers(
        self, work: Work, task_rows: TaskRows | None, tasks: int, asker: Asker = ANYBODY
    ) -> list[Answer] | None:
        """Does the work on so many buckets; None if there is no resident, and none comes."""
        job = _Job(work, task_rows, asker, open=tasks)
        waiting = [
            _Waiting(job, bucket, (*job.operator, bucket) if asker.has_state else None)
            for bucket in range(tasks)
        ]
        with self._changed:
            self._waiting += waiting
        self._hand_out()
        try:
            is_done = self._is_anybody_there(job) and self._wait(job)
        finally:
            self._forget(job)
        if job.error is not None:
            raise job.error
        if not is_done:
            return None
        return checked([each.answer for each in waiting if each.answer is not None])

    def cancel(self, tag: str) -> None:
        """Has nobody wait any longer for what has a tag, or a tag that begins with it."""
        with self._changed:
            jobs = {each.job for each in self._waiting}
            jobs |= {each.doing.job for each in self._there.values() if each.doing is not None}
            for job in jobs:
                known = job.asker.tag or ""
                if known == tag or known.startswith(f"{tag}-"):
                    job.fail(CancelledStepError("the step was cancelled"))
            self._changed.notify_all()

    def _is_anybody_there(self, job: _Job) -> bool:
        """Whether somebody is there who may do a job, now or soon."""
        with self._changed:
            if not self._there and not self._was_awaited_in_vain:
                self._changed.wait_for(
                    lambda: job.is_over.is_set() or self._is_decided(), COME_SECONDS
                )
                self._was_awaited_in_vain = not self._there and not job.is_over.is_set()
            return bool(self._there)

    def _is_decided(self) -> bool:
        """Whether somebody has come, or nobody will."""
        return bool(self._there) or self._is_closed or self._ended >= MOST_ENDED

    def _wait(self, job: _Job) -> bool:
        """Until a job is over, or nobody is left to do it; whether it is over.

        What waits too long for its home is moved meanwhile.
        """
        seconds = MOVE_SECONDS
        while not job.is_over.wait(seconds):
            self._hand_out()
            if not self._is_anybody_there(job):
                return job.is_over.is_set()
            seconds = min(1.0, 2 * seconds)
        return True

    def _forget(self, job: _Job) -> None:
        """Nobody waits for a job any longer; those who work on it now do so for nobody."""
        with self._changed:
            job.is_over.set()
            self._waiting = [each for each in self._waiting if each.job is not job]

    def _hand_out(self) -> None:
        """Gives those who are free something to do."""
        for resident, waiting, number in self._chosen():
            job = waiting.job
            task = Task(number, job.work, job.task_rows, waiting.bucket)
            try:
                data = resident.packing.packed(task)
            except Exception as error:  # noqa: BLE001 (whoever waits is told)
                with self._changed:
                    resident.doing = None
                job.fail(RaisedError(f"{type(error).__name__}: {error}"))
                continue
            try:
                resident.connection.send(Kind.TASK, number.to_bytes(NUMBER_BYTES) + data)
            except OSError:
                self._lose(resident)

    def _chosen(self) -> list[tuple[Connected, _Waiting, int]]:
        """Who is to do what, under which number."""
        chosen = []
        with self._changed:
            for resident in self._there.values():
                if resident.doing is None and self._waiting:
                    waiting = self._next_for(resident)
                    if waiting is not None:
                        self._waiting.remove(waiting)
                        resident.began, waiting.number = time.monotonic(), next(self._numbers)
                        resident.doing = waiting
                        chosen.append((resident, waiting, waiting.number))
        return chosen

    def _next_for(self, resident: Connected) -> _Waiting | None:
        """What one should do next: of what is for it that of the thread that has had the least."""
        now = time.monotonic()
        own = [each for each in self._waiting if self._may_do(resident, each, now)]
        if not own:
            return None
        waiting = min(own, key=lambda each: self._spent.get(each.job.asker.thread, 0.0))
        if waiting.home is not None:
            self._homes.move(waiting.home, resident.name)
        return waiting

    def _may_do(self, resident: Connected, waiting: _Waiting, now: float) -> bool:
        if waiting.home is None:
            return True
        if self._homes.of(waiting.home, self._there) == resident.name:
            return True
        usual = self._durations.usual(waiting.job.operator, waiting.job.asker.rows)
        return now - waiting.since > max(MOVE_SECONDS, MOVE_FACTOR * usual)

    def _answered(self, resident: Connected, answer: dict[str, Any]) -> None:
        with self._changed:
            waiting = resident.doing
            if waiting is None or answer.pop("task") != waiting.number:
                return  # it was answered before
            resident.doing = None
            seconds, job = time.monotonic() - resident.began, waiting.job
            self._durations.record(job.operator, job.asker.rows, seconds)
            self._charge(job, seconds)
            if "store" in answer:
                job.fail(StoreError(answer["store"], answer["errno"]))
            elif "raised" in answer:
                error = RaisedError(answer["raised"])
                error.add_note(answer["stack"])
                job.fail(error)
            else:
                waiting.answer = answer
                job.open -= 1
                if job.open == 0:
                    job.is_over.set()
        self._hand_out()

    def _charge(self, job: _Job, seconds: float) -> None:
        """Counts what a thread has had by its weight; one that had nothing for long has no claim
        to more than those that had."""
        waiting = {each.job.asker.thread for each in self._waiting}
        least = min((self._spent.get(each, 0.0) for each in waiting), default=0.0)
        spent = max(self._spent.get(job.asker.thread, 0.0), least)
        self._spent[job.asker.thread] = spent + seconds / job.asker.weight


def _lost(waiting: _Waiting) -> ResidentLostError:
    return ResidentLostError(
        f"Python worker exited unexpectedly: {waiting.losses} residents were lost in the same task"
    )

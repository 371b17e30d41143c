"""Residents as Spark runs them: each is a job of one task, which is begun again when it ends.

One job of many tasks would die with the first of them in local mode, and after four failures on a
cluster. Spark gives the residents their places, and ends them with the session.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from millpond.errors import MillpondError
from millpond.execution.residents.encryption import Certificate, made_certificate
from millpond.execution.residents.pool import Connected, Residents
from millpond.execution.residents.resident import reside
from millpond.execution.residents.wire import Invitation, RefusedError
from millpond.settings import AUTO, is_local, local_cores, parse_seconds
from millpond.spark.executors import cores
from millpond.spark.internals import cluster_slots, is_alive, master_of, run_tasks
from millpond.spark.session import RESIDENT_ENCRYPTION, RESIDENT_PORT
from millpond.spark.worker_process import freeze, make_ready

logger = logging.getLogger("millpond")

TAG = "millpond-residents"
"""Their jobs bear it."""

LINGER_SECONDS = 3.0
"""So long a resident whose driver is gone waits to be ended by Spark, which says less then."""

LEAST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.05, 60.0
"""How long it takes until one that has ended is begun again, at first and at last."""

UNWANTED_SECONDS = 60.0
"""So long residents stay when no engine is left: the next one may come."""

ROOM_SECONDS = 5.0
"""So often a cluster is asked how many tasks it runs at once: executors come and go."""

SETTLED_SECONDS = 10.0
"""One that has lived for so long was well."""

_IDLE = "spark.python.worker.idleTimeoutSeconds"
_KILLED = "spark.python.worker.killOnIdleTimeout"

_ENCRYPTED = ("spark.network.crypto.enabled", "spark.ssl.enabled", "spark.ssl.rpc.enabled")
"""What asks Spark to encrypt what its processes say to each other."""


@dataclass(frozen=True)
class _Residing:
    """The task: it works for the driver until that is gone, and its process ends with it."""

    invitation: Invitation

    def __call__(self) -> None:
        make_ready()
        freeze()
        with contextlib.suppress(OSError, EOFError, RefusedError):
            reside(self.invitation, _end_soon)
        _end_soon()


def _end_soon() -> None:
    time.sleep(LINGER_SECONDS)
    os._exit(0)  # it never returns to Spark's pool of workers, with all that it remembers


def slots(session: SparkSession) -> int:
    """How many tasks Spark runs at once, in local mode more than there are cores; 0 if unknown."""
    master = master_of(session)
    return local_cores(master) if is_local(master) else cluster_slots(session) or 0


def most_residents(session: SparkSession) -> int:
    """How many residents there may be: a slot stays free for ordinary jobs."""
    conf = session.sparkContext.getConf()
    is_ended = conf.get(_KILLED, "false") == "true" and conf.get(_IDLE, "0") not in ("0", "0s")
    return 0 if is_ended else max(0, slots(session) - 1)


def _idle_seconds(context: SparkContext) -> float | None:
    """How long a resident may have nothing to do: where executors come and go, as long as one of
    them may."""
    conf = context.getConf()
    if conf.get("spark.dynamicAllocation.enabled", "false") != "true":
        return None
    return parse_seconds(conf.get("spark.dynamicAllocation.executorIdleTimeout") or "60s")


def is_encrypted(context: SparkContext) -> bool:
    """Whether residents and the driver talk in secret: as Millpond was told, else as Spark does."""
    conf = context.getConf()
    said = conf.get(RESIDENT_ENCRYPTION) or AUTO
    if said != AUTO:
        return said == "on"
    return any(conf.get(each, "false") == "true" for each in _ENCRYPTED)


def _certificate(context: SparkContext) -> tuple[Certificate | None, bool]:
    """The session's certificate if one is asked for, and whether there is what is asked for."""
    if not is_encrypted(context):
        return None, True
    try:
        return made_certificate(), True
    except MillpondError as error:
        logger.warning("%s; until then a job of Spark's does each step", error)
        return None, False


class ResidentTasks:
    """Has Spark run residents for all engines of a session."""

    _guard = threading.Lock()
    _latest: ResidentTasks | None = None

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.context = session.sparkContext
        conf = self.context.getConf()
        self._host = conf.get("spark.driver.host") or socket.gethostname()
        bound = conf.get("spark.driver.bindAddress") or self._host
        self._is_local = is_local(master_of(session))
        host = "127.0.0.1" if self._is_local else bound
        certificate, self._has_certificate = _certificate(self.context)
        self.residents = Residents(
            host,
            int(conf.get(RESIDENT_PORT) or 0),
            kill=self._kill,
            idle_seconds=_idle_seconds(self.context) or UNWANTED_SECONDS,
            let_go=self._let_go,
            certificate=certificate,
        )
        self._given: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        """By engine: how many it was given."""
        self._room_known: tuple[int, int] | None = None
        self._room_until = 0.0
        self._hired: dict[int, _Hired] = {}
        self._changing = threading.Lock()

    @staticmethod
    def of(session: SparkSession) -> ResidentTasks:
        """Those of a session's Spark; a process has one at a time."""
        with ResidentTasks._guard:
            latest = ResidentTasks._latest
            if latest is None or latest.context is not session.sparkContext:
                if latest is not None:
                    latest.close()
                latest = ResidentTasks._latest = ResidentTasks(session)
            return latest

    def want(self, engine: object, count: int | None) -> int:
        """Has so many residents for an engine, as many as there are cores if None is said; how many
        it gets. There are as many as the engine that wants most is given."""
        with self._changing:
            most, usual = self._room()
            given = min(most, usual if count is None else count)
            self._given[engine] = given
            wanted = min(most, max(self._given.values()))
            if wanted != len(self._hired):
                self._fill(wanted)
        return given

    def unwant(self, engine: object) -> None:
        """An engine is closed: residents that nobody else wants soon are let go."""
        with self._changing:
            self._given.pop(engine, None)

    @staticmethod
    def known(session: SparkSession) -> ResidentTasks | None:
        """Those of a session's Spark, if there are some."""
        latest = ResidentTasks._latest
        return None if latest is None or latest.context is not session.sparkContext else latest

    def wanted(self, engine: object, count: int | None) -> Residents | None:
        """The residents, so many for an engine; None if there can be none."""
        return self.residents if self.want(engine, count) else None

    def _room(self) -> tuple[int, int]:
        """How many there may be, and how many cores there are; a cluster is asked now and then."""
        now = time.monotonic()
        if self._room_known is None or (not self._is_local and now > self._room_until):
            most = most_residents(self._session) if self._has_certificate else 0
            self._room_known = most, cores(self._session)
            if not most and self._has_certificate:
                logger.info("Spark has no slot to spare for residents: a job does each step")
            self._room_until = now + ROOM_SECONDS
        return self._room_known

    def _fill(self, wanted: int) -> None:
        for number in range(wanted):
            if number not in self._hired:
                self._hired[number] = _Hired(self, number)
        for number in [each for each in self._hired if each >= wanted]:
            self._hired.pop(number).let_go()

    def close(self) -> None:
        """Ends all of them."""
        with self._changing:
            for hired in self._hired.values():
                hired.let_go()
            self._hired = {}
        self.residents.close()

    def run(self, invitation: Invitation, tag: str) -> None:
        """Runs one resident, until it ends."""
        context: Any = self.context
        context.addJobTag(TAG)
        context.addJobTag(tag)
        context.setInterruptOnCancel(True)
        context.setLocalProperty("spark.job.description", invitation.name)
        run_tasks(self._session, 1, _Residing(invitation))

    def cancel(self, tag: str) -> None:
        """Has Spark end one."""
        with contextlib.suppress(Py4JError, OSError, AttributeError):  # a context that was stopped
            self.context.cancelJobsWithTag(tag)

    @property
    def is_alive(self) -> bool:
        """Whether Spark can run residents."""
        return is_alive(self._session)

    @property
    def is_awaited(self) -> bool:
        """Whether some are to come, and none has come yet."""
        return bool(self._hired) and self.residents.is_awaited

    def invite(self) -> Invitation:
        """An invitation for one more."""
        return self.residents.invite(None if self._is_local else self._host)

    def _let_go(self, resident: Connected) -> None:
        """Ends one that has nothing to do, where executors come and go or no engine is left; who
        wants it again says so with the next step."""
        with self._changing:
            if self._given and _idle_seconds(self.context) is None:
                return
            for number, hired in list(self._hired.items()):
                if hired.name == resident.name:
                    del self._hired[number]
                    hired.let_go()

    def _kill(self, resident: Connected) -> None:
        """Ends one that does not answer: by Spark and, if it is here, at once."""
        for hired in list(self._hired.values()):
            if hired.name == resident.name:
                self.cancel(hired.tag)
        if self._is_local:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(resident.pid, signal.SIGKILL)


_tags = itertools.count()


class _Hired:
    """One resident's place: whoever fills it is begun again when it ends."""

    def __init__(self, tasks: ResidentTasks, number: int) -> None:
        self.name = ""
        self.tag = f"millpond-resident-{next(_tags)}"
        self._tasks = tasks
        self._is_wanted = threading.Event()
        self._is_wanted.set()
        self._pause = threading.Event()
        threading.Thread(target=self._run, name=f"millpond-resident-{number}", daemon=True).start()

    def let_go(self) -> None:
        """Ends it for good."""
        self._is_wanted.clear()
        self._pause.set()
        self._tasks.residents.send_home(self.name)
        self._tasks.cancel(self.tag)
        self._tasks.residents.disinvite(self.name)

    def _run(self) -> None:
        pause = LEAST_PAUSE_SECONDS
        while self._is_wanted.is_set() and self._tasks.is_alive:
            began = time.monotonic()
            invitation = self._tasks.invite()
            self.name = invitation.name
            if not self._is_wanted.is_set():
                break
            try:
                self._tasks.run(invitation, self.tag)
            except Exception as error:  # noqa: BLE001 (Spark has many ways to say that it is gone)
                logger.debug("%s has ended: %s", self.name, type(error).__name__)
            has_come = self._tasks.residents.disinvite(self.name)
            if has_come and time.monotonic() - began > SETTLED_SECONDS:
                pause = LEAST_PAUSE_SECONDS
            self._pause.wait(pause)
            pause = min(MOST_PAUSE_SECONDS, 2 * pause)
        self._tasks.residents.disinvite(self.name)
        if self._is_wanted.is_set():
            self._tasks.residents.close()  # Spark has died: nobody else will come

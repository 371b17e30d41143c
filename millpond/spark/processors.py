"""Processors: threads that execute steps, each with a FAIR pool of Spark's of its own, or in the
pool that a strategy's thread has (`pools.py`).

Python's threads are threads of the JVM too (PySpark pins them), so a pool and a tag hold for the
jobs that the same thread starts, and for no other.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millpond.background import BackgroundThreads

MOST_PROCESSORS = 64
"""More steps than this never run at once."""

END_SECONDS = 60.0
"""So long what runs is waited for, unless somebody says how long."""

_engines = itertools.count()


class Processors:
    """Runs functions in threads whose jobs can be told apart and cancelled."""

    def __init__(self) -> None:
        self._tag = f"millpond-{next(_engines)}"
        self._threads = BackgroundThreads(MOST_PROCESSORS, self._tag)
        self._here = _Here()
        self._pools = itertools.count()
        self._works = itertools.count()

    def submit(self, work: Callable[[], None], pool: str | None = None) -> str:
        """Runs ``work`` soon, in a thread of its own; the tag of the jobs that it starts."""
        tag = f"{self._tag}-step-{next(self._works)}"
        self._threads.submit(lambda: self._run(work, tag, pool))
        return tag

    def _run(self, work: Callable[[], None], tag: str, pool: str | None) -> None:
        here = self._here
        here.tag, here.is_marked, here.used, here.pool = tag, False, None, pool
        try:
            work()
        finally:
            here.tag = None
            if here.is_marked and here.session is not None:
                with contextlib.suppress(Py4JError, OSError):  # a JVM that died has forgotten it
                    here.session.sparkContext.removeJobTag(tag)

    def mark(self, session: SparkSession) -> None:
        """Puts the jobs of this thread into a pool of their own, and makes them known as ours."""
        here, context = self._here, session.sparkContext
        here.used = session
        if here.session is not session:
            here.own_pool = f"{self._tag}-{next(self._pools)}"
            context.addJobTag(self._tag)
            context.setInterruptOnCancel(True)  # else tasks run on to their end, for nobody
            here.session, here.is_marked = session, False
        if here.tag is not None and not here.is_marked:
            context.setLocalProperty("spark.scheduler.pool", here.pool or here.own_pool)
            context.addJobTag(here.tag)
            here.is_marked = True

    @property
    def used(self) -> SparkSession | None:
        """The session that the work of this thread has used, if it has."""
        return self._here.used

    def cancel(self, session: SparkSession | None, tag: str | None = None) -> None:
        """Cancels the jobs with a tag that ``submit`` gave, or every job of these threads."""
        if session is not None:
            with contextlib.suppress(Py4JError, OSError):
                session.sparkContext.cancelJobsWithTag(tag or self._tag)

    def close(self, until: float | None = None) -> bool:
        """Lets the threads end; what runs is waited for, until a moment; whether all have ended."""
        return self._threads.close(time.monotonic() + END_SECONDS if until is None else until)


class _Here(threading.local):
    """What a thread knows of itself."""

    session: SparkSession | None = None
    """The session that knows its pool."""
    used: SparkSession | None = None
    """The session that the work at hand uses."""
    own_pool: str = ""
    pool: str | None = None
    """The pool of the work at hand, if not the thread's own."""
    tag: str | None = None
    is_marked: bool = False
    """Whether the jobs of the work at hand bear its tag."""


def was_cancelled(error: BaseException) -> bool:
    """Whether an error is what Spark raises in a thread whose job was cancelled."""
    return isinstance(error, PySparkException | Py4JError) and "SPARK_JOB_CANCELLED" in str(error)

"""Which of Spark's jobs are whose: those of a thread that executes a step bear a tag, and are in a
FAIR pool of the thread's own, or in the pool that a strategy's thread has (`pools.py`).

Python's threads are threads of the JVM too (PySpark pins them), so a pool and a tag hold for the
jobs that the same thread starts, and for no other.
"""

import contextlib
import itertools
import threading
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_engines = itertools.count()


class Marks:
    """Has the jobs of one engine told apart and cancelled."""

    def __init__(self) -> None:
        self._tag = f"millpond-{next(_engines)}"
        self._here = _Here()
        self._pools = itertools.count()
        self._works = itertools.count()

    def new_tag(self) -> str:
        """A tag for the jobs of some work."""
        return f"{self._tag}-step-{next(self._works)}"

    @contextlib.contextmanager
    def working(self, tag: str, pool: str | None = None) -> Iterator[None]:
        """Within it the jobs of this thread bear a tag, and are in a pool if one is named."""
        here = self._here
        here.tag, here.is_marked, here.used, here.pool = tag, False, None, pool
        try:
            yield
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
        """Cancels the jobs with a tag, or every job of the engine."""
        if session is not None:
            with contextlib.suppress(Py4JError, OSError):
                session.sparkContext.cancelJobsWithTag(tag or self._tag)


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

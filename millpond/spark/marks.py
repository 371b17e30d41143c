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

from millpond.spark.pools import pool_of

_engines = itertools.count()


class Marks:
    """Has the jobs of one engine told apart and cancelled."""

    def __init__(self) -> None:
        self.engine = f"millpond-{next(_engines)}"
        """The tag of all jobs of the engine."""
        self._here = _Here()
        self._pools = itertools.count()
        self._works = itertools.count()

    def new_tag(self) -> str:
        """A tag for the jobs of some work."""
        return f"{self.engine}-step-{next(self._works)}"

    @contextlib.contextmanager
    def working(self, tag: str, thread: int = 0, weight: float = 1.0) -> Iterator[None]:
        """Within it the jobs of this thread bear a tag, and are in the pool of a thread of the
        strategy."""
        here = self._here
        here.tag, here.is_marked, here.used = tag, False, None
        here.thread, here.weight, here.pool = thread, weight, pool_of(thread, weight)
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
            here.own_pool = f"{self.engine}-{next(self._pools)}"
            context.addJobTag(self.engine)
            context.setInterruptOnCancel(True)  # else tasks run on to their end, for nobody
            here.session, here.is_marked = session, False
        if here.tag is not None and not here.is_marked:
            context.setLocalProperty("spark.scheduler.pool", here.pool or here.own_pool)
            context.addJobTag(here.tag)
            here.is_marked = True

    @property
    def mine(self) -> tuple[str | None, int, float]:
        """The tag of what this thread works on, the thread of the strategy, and its weight."""
        return self._here.tag, self._here.thread, self._here.weight

    @property
    def used(self) -> SparkSession | None:
        """The session that the work of this thread has used, if it has."""
        return self._here.used

    def cancel(self, session: SparkSession | None, tag: str | None = None) -> None:
        """Cancels the jobs with a tag, or every job of the engine."""
        if session is not None:
            with contextlib.suppress(Py4JError, OSError):
                session.sparkContext.cancelJobsWithTag(tag or self.engine)


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
    thread: int = 0
    weight: float = 1.0
    is_marked: bool = False
    """Whether the jobs of the work at hand bear its tag."""


def was_cancelled(error: BaseException) -> bool:
    """Whether an error is what Spark raises in a thread whose job was cancelled."""
    return isinstance(error, PySparkException | Py4JError) and "SPARK_JOB_CANCELLED" in str(error)

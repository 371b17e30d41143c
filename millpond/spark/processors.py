"""Processors: threads that execute steps, each with a FAIR pool of Spark's of its own."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

MOST_PROCESSORS = 64
"""More steps than this never run at once."""

_engines = itertools.count()


class Processors:
    """Runs functions in threads whose jobs can be told apart and cancelled."""

    def __init__(self) -> None:
        self._tag = f"millpond-{next(_engines)}"
        self._threads = ThreadPoolExecutor(MOST_PROCESSORS, thread_name_prefix=self._tag)
        self._known = threading.local()
        self._pools = itertools.count()

    def submit(self, session: SparkSession, work: Callable[[], None]) -> Future[None]:
        """Runs ``work`` soon, in a thread whose jobs go to a pool of its own."""
        return self._threads.submit(self._run, session, work)

    def _run(self, session: SparkSession, work: Callable[[], None]) -> None:
        if getattr(self._known, "session", None) is not session:
            with contextlib.suppress(Py4JError, ConnectionError):  # the work itself will say so
                context = session.sparkContext
                context.setLocalProperty("spark.scheduler.pool", f"{self._tag}-{next(self._pools)}")
                context.addJobTag(self._tag)
                self._known.session = session
        work()

    def cancel(self, session: SparkSession) -> None:
        """Cancels every job of these threads."""
        with contextlib.suppress(Py4JError, ConnectionError):
            session.sparkContext.cancelJobsWithTag(self._tag)

    def close(self) -> None:
        """Lets the threads end; what runs is waited for."""
        self._threads.shutdown(wait=True, cancel_futures=True)

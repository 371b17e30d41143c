"""Processors: threads that execute steps, each with a FAIR pool of Spark's of its own."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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

    def submit(self, work: Callable[[], None]) -> None:
        """Runs ``work`` soon, in a thread of its own."""
        self._threads.submit(work)

    def mark(self, session: SparkSession) -> None:
        """Puts the jobs of this thread into a pool of their own, and makes them known as ours."""
        if getattr(self._known, "session", None) is not session:
            context = session.sparkContext
            context.setLocalProperty("spark.scheduler.pool", f"{self._tag}-{next(self._pools)}")
            context.addJobTag(self._tag)
            context.setInterruptOnCancel(True)  # else tasks run on to their end, for nobody
            self._known.session = session

    def cancel(self, session: SparkSession | None) -> None:
        """Cancels every job of these threads."""
        if session is not None:
            with contextlib.suppress(Py4JError, OSError):
                session.sparkContext.cancelJobsWithTag(self._tag)

    def close(self) -> None:
        """Lets the threads end; what runs is waited for."""
        self._threads.shutdown(wait=True, cancel_futures=True)

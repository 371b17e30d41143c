"""Spark jobs of a step: they run in a pool of their own and can be cancelled apart from all others.

Python threads are threads of the JVM too (PySpark pins them), so what is said here holds for jobs
that the same thread starts, and for no other.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_POOL = "spark.scheduler.pool"


@dataclass(frozen=True)
class Jobs:
    """The jobs of one step; ``pool`` shares Spark's cores fairly with other pools."""

    session: SparkSession
    pool: str
    tag: str = field(default_factory=lambda: f"millpond-{uuid.uuid4().hex}")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The jobs that this thread starts inside are of this step; Ctrl-C cancels them alone."""
        context = self.session.sparkContext
        pool_before, step_before = context.getLocalProperty(_POOL), _of_this_thread.jobs
        context.setLocalProperty(_POOL, self.pool)
        context.addJobTag(self.tag)
        context.setInterruptOnCancel(True)  # else tasks run on to their end, for nobody
        _of_this_thread.jobs = self
        try:
            yield
        finally:
            _of_this_thread.jobs = step_before
            with contextlib.suppress(Py4JError, OSError):  # a JVM that has died forgets by itself
                context.removeJobTag(self.tag)
                context.setLocalProperty(_POOL, pool_before)  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Cancels what runs; from any thread. Jobs that the step starts later do run."""
        self.session.sparkContext.cancelJobsWithTag(self.tag)


def was_cancelled(error: BaseException) -> bool:
    """Whether an error is what Spark raises in a thread whose job was cancelled."""
    return isinstance(error, PySparkException | Py4JError) and (
        "cancelled" in str(error) and "SPARK_JOB_CANCELLED" in str(error)
    )


def interrupts_cancel_only_their_step() -> None:
    """Makes Ctrl-C cancel the step that the main thread runs, if any; PySpark cancels all jobs."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    jobs = _of_this_thread.jobs
    if jobs is not None:
        # In a thread of its own: the main one may be in the middle of a talk with the JVM.
        canceller = threading.Thread(target=jobs.cancel, daemon=True)
        canceller.start()
        canceller.join(timeout=10)
    raise KeyboardInterrupt


class _OfThisThread(threading.local):
    jobs: Jobs | None = None


_of_this_thread = _OfThisThread()

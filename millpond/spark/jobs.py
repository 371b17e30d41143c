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
    _is_interrupted: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Jobs that this thread starts inside are of this step."""
        step_before, _of_this_thread.jobs = _of_this_thread.jobs, self
        try:
            with self._marked():
                yield
        except Exception as error:
            if self._is_interrupted.is_set():
                raise KeyboardInterrupt from error
            raise
        finally:
            _of_this_thread.jobs = step_before
        if self._is_interrupted.is_set():
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _marked(self) -> Iterator[None]:
        context = self.session.sparkContext
        pool_before = context.getLocalProperty(_POOL)
        context.setLocalProperty(_POOL, self.pool)
        context.addJobTag(self.tag)
        context.setInterruptOnCancel(True)  # else tasks run on to their end, for nobody
        try:
            yield
        finally:
            with contextlib.suppress(Py4JError, OSError):  # a JVM that has died forgets by itself
                context.removeJobTag(self.tag)
                context.setLocalProperty(_POOL, pool_before)  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Cancels what runs; from any thread. Jobs that the step starts later do run."""
        self.session.sparkContext.cancelJobsWithTag(self.tag)

    def interrupt(self) -> None:
        """Cancels what runs, and makes the step end in KeyboardInterrupt."""
        self._is_interrupted.set()
        # In a thread of its own: this one may be in the middle of a talk with the JVM.
        threading.Thread(target=self.cancel, daemon=True).start()

    @property
    def is_interrupted(self) -> bool:
        """Whether the step was asked to end."""
        return self._is_interrupted.is_set()


def was_cancelled(error: BaseException) -> bool:
    """Whether an error is what Spark raises in a thread whose job was cancelled."""
    return isinstance(error, PySparkException | Py4JError) and "SPARK_JOB_CANCELLED" in str(error)


def interrupts_cancel_only_their_step() -> None:
    """Makes Ctrl-C cancel the step that the main thread runs, if any; PySpark cancels all jobs.

    The second one ends it at once, whatever it does.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    jobs = _of_this_thread.jobs
    if jobs is None or jobs.is_interrupted:
        raise KeyboardInterrupt
    jobs.interrupt()


class _OfThisThread(threading.local):
    jobs: Jobs | None = None


_of_this_thread = _OfThisThread()

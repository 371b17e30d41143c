"""Steps on Spark's executors, and what Spark evaluates for the driver.

Tasks read the files themselves where they can evaluate the expressions and there are few buckets;
else Spark evaluates, and shuffles by key.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from weakref import WeakKeyDictionary

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millpond.errors import MillpondError
from millpond.execution.answers import Answer
from millpond.execution.by_jobs import JobExecutor
from millpond.execution.driver import MOST_OFFENDERS
from millpond.execution.jobs import Job, Pairs, Parts
from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.execution.pair_output import PairOutput
from millpond.execution.residents.pool import Asker, Residents
from millpond.execution.steps import Runner
from millpond.execution.surroundings import Limits
from millpond.execution.work import Destination, WriteRows
from millpond.spark.failures import meant
from millpond.spark.frames import Frames, dividing
from millpond.spark.internals import is_alive
from millpond.spark.marks import Marks
from millpond.spark.operator_frames import OperatorFrames, offending
from millpond.spark.residents import ResidentTasks
from millpond.spark.session import for_steps
from millpond.spark.workers import answers_of, answers_of_tasks
from millpond.storage.pages import Page
from millpond.storage.portions import TaskRows
from millpond.storage.store import Store

logger = logging.getLogger("millpond")


class SparkExecutor(JobExecutor):
    """Executes steps on one Spark session, which is started when the first one needs it."""

    def __init__(
        self,
        start_spark: Callable[[], SparkSession],
        store: Store,
        limits: Limits,
        spark_is_there: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(limits)
        self._marks = Marks()
        self._frames = Frames(
            lambda: for_steps(start_spark()), store, self._marks.mark, spark_is_there
        )
        self._of_operators: WeakKeyDictionary[object, OperatorFrames] = WeakKeyDictionary()
        self._guard = threading.Lock()
        self._is_hiring = False

    # -- the session -----------------------------------------------------------------------

    @property
    def session(self) -> SparkSession:
        """The session in which steps run; jobs of the thread that asks are marked as a step's."""
        return self._frames.session

    @property
    def is_awaited(self) -> bool:
        """Whether asking Spark would mean to wait until it, or the first resident, has started."""
        if self._frames.is_awaited:
            return True
        if self.limits.residents == 0:
            return False
        session = self._frames.started
        known = None if session is None else ResidentTasks.known(session)
        return known is None or known.is_awaited

    def expect(self) -> None:
        """Has residents come, if Spark is there."""
        started = self._frames.started
        if self._is_hiring or self._frames.is_awaited or self.limits.residents == 0:
            return
        if started is None or ResidentTasks.known(started) is None:
            self._is_hiring = True
            threading.Thread(target=self._hire, name="millpond-hiring", daemon=True).start()

    def _hire(self) -> None:
        try:
            with contextlib.suppress(MillpondError, PySparkException, Py4JError):
                self._residents(self.session)
        finally:
            self._is_hiring = False

    def close(self) -> None:
        """Gives residents up that nobody else wants."""
        session = self._frames.started
        known = None if session is None else ResidentTasks.known(session)
        if known is not None:
            known.unwant(self)

    @property
    def lost(self) -> SparkSession | None:
        """The session that this thread has worked with, if it has died."""
        used = self._marks.used
        return used if used is not None and not is_alive(used) else None

    def forget(self, lost: object | None) -> bool:
        """Starts Spark again with the next step, if that is the session that has died."""
        if self._frames.started is not lost:
            return False
        self._frames.forget_session()
        return True

    def new_tag(self) -> str:
        """A tag for the jobs of a step."""
        return self._marks.new_tag()

    def working(self, tag: str, thread: int, weight: float) -> AbstractContextManager[None]:
        """Within it the jobs of this thread bear a tag, and are in the pool of a thread of the
        strategy."""
        return self._marks.working(tag, thread, weight)

    def cancel(self, tag: str | None = None) -> None:
        """Cancels the jobs with a tag, or all of the engine's."""
        session = self._frames.started
        self._marks.cancel(session, tag)
        known = None if session is None else ResidentTasks.known(session)
        if known is not None:
            known.residents.cancel(tag or self._marks.engine)

    def let_go(self, operator: object) -> None:
        """Gives up the plans of an operator that is gone; steps of its may still be executed."""
        self._of(operator).close()

    def _of(self, operator: object) -> OperatorFrames:
        with self._guard:
            found = self._of_operators.get(operator)
            if found is None:
                found = self._of_operators[operator] = OperatorFrames(self._frames)
            return found

    # -- jobs ------------------------------------------------------------------------------

    def answers(self, running: RunningOperator, job: Job) -> list[Answer]:
        """Does a job: on each bucket of keys or, without keys, anywhere."""
        tasks = self.tasks(job)
        with meant():
            session = self.session
            if tasks is None:
                return self._answers_of_frame(session, self._of(running), job)
            portions = tuple(job.portions or ())
            task_rows = TaskRows(portions, tuple(job.keys), tasks)
            has_state = running.keeps_state or bool(job.keys)
            asker = Asker(running.identity, has_state, *self._marks.mine, job.rows)
            residents = self._residents(session)
            return answers_of_tasks(session, tasks, job.work, task_rows, residents, asker)

    def _residents(self, session: SparkSession) -> Residents | None:
        """Who does tasks for this engine, beside Spark's jobs."""
        count = self.limits.residents
        try:
            tasks = ResidentTasks.known(session) if count == 0 else ResidentTasks.of(session)
        except OSError as error:  # the port is taken
            logger.warning("no residents: %s", error)
            self.limits.residents = 0
            return None
        return None if tasks is None else tasks.wanted(self, count)

    def _answers_of_frame(
        self, session: SparkSession, frames: OperatorFrames, job: Job
    ) -> list[Answer]:
        """Has Spark evaluate and divide the rows."""
        frame, work = frames.of(job.parts), job.work
        if frame is None:
            return answers_of_tasks(session, job.buckets, work) if job.is_for_all else []
        if not job.keys:
            return frames.run(frame, lambda rows: answers_of(rows, work))
        columns = dividing(job.keys, work.schema)
        return frames.run(
            frame, lambda rows: answers_of(rows.repartition(job.buckets, *columns), work)
        )

    def pairs_put_out(self, running: RunningOperator, pairs: Pairs, page: Page) -> list[Answer]:
        """Has Spark evaluate what becomes of the pairs of a join, in a job of its own."""
        frames, destination = self._of(running), Destination.of(self._frames.store)
        write = WriteRows(destination, running.output_schema)
        with meant():
            frame = frames.of_pairs(pairs, page)
            return [] if frame is None else frames.run(frame, lambda rows: answers_of(rows, write))

    # -- for the driver --------------------------------------------------------------------

    def gathered(self, running: Runner, parts: Parts, schema: pa.Schema) -> pa.Table:
        """The rows of some parts, with their expressions evaluated by Spark."""
        frames = self._of(running)
        with meant():
            return frames.collect(frames.of(parts), schema)

    def put_out(
        self, running: Runner, output: PairOutput, pairs: pa.Table, schema: pa.Schema
    ) -> pa.Table:
        """What becomes of the pairs of a join, evaluated by Spark."""
        frames, page = self._of(running), Page.of(self._frames.store, pairs)
        try:
            with meant():
                frame = frames.of_pairs(Pairs(pairs.schema, output), page)
                return frames.collect(frame, schema)
        finally:
            page.free()

    def offenders(self, step: OperatorStep) -> tuple[str, ...]:
        """Some of the rows on which an expression of a step fails."""
        frame = offending(step.readings)
        if frame is None:
            return ()
        with contextlib.suppress(PySparkException, Py4JError):
            found = self._of(step.running).run(
                frame, lambda rows: rows.limit(MOST_OFFENDERS).collect()
            )
            return tuple(row["row"] for row in found)
        return ()

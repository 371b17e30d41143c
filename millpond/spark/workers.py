"""Steps on Spark's executors, from end to end: the driver sees one answer a task."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from millpond.execution.answers import Answer, checked
from millpond.execution.residents.pool import ANYBODY, Asker, RaisedError, Residents
from millpond.execution.work import Work, done, own_rows
from millpond.spark.internals import run_tasks
from millpond.spark.worker_process import freeze, make_ready
from millpond.storage.portions import TaskRows


def answers_of(frame: DataFrame, work: Work) -> list[Answer]:
    """Does the work on every partition of a frame, on the executors."""

    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answer = _answer(work, lambda task: _received(list(batches), work.schema))
        yield pa.RecordBatch.from_pydict({"answer": [json.dumps(answer)]})

    answers = frame.mapInArrow(tasks, "answer string").toArrow()["answer"].to_pylist()
    return checked([json.loads(answer) for answer in answers])


def answers_of_tasks(
    session: SparkSession,
    count: int,
    work: Work,
    task_rows: TaskRows | None = None,
    residents: Residents | None = None,
    asker: Asker = ANYBODY,
) -> list[Answer]:
    """Does the work in so many tasks on the executors; each reads its rows itself.

    Residents do them, if there are some. Else a job of Spark's does; no data frame is analysed and
    planned for that, which saves half of the time of a small job.
    """
    if residents is not None:
        with contextlib.suppress(RaisedError):  # Spark tries it again, and says what it says
            answers = residents.answers(work, task_rows, count, asker)
            if answers is not None:
                return answers
    return checked(run_tasks(session, count, _OwnRows(work, task_rows)))


@dataclass(frozen=True)
class _OwnRows:
    """A task that reads its rows itself."""

    work: Work
    task_rows: TaskRows | None

    def __call__(self) -> Answer:
        return _answer(self.work, partial(own_rows, self.work, self.task_rows))


def _answer(work: Work, rows: Callable[[int], pa.Table]) -> Answer:
    make_ready()
    context: Any = TaskContext.get()
    bucket, attempt = context.partitionId(), context.taskAttemptId()
    try:
        return done(work, lambda: rows(bucket), bucket, attempt)
    finally:
        freeze()


def _received(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The rows that Spark has sent, if they are those that are meant."""
    if not batches or not set(schema.names) <= set(batches[0].schema.names):
        return schema.empty_table()
    return pa.Table.from_batches(batches).select(schema.names).cast(schema)

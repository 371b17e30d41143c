"""Steps on Spark's executors, from end to end: the driver sees one line a task.

A task gets its rows from Spark, does its work on one bucket of the state, writes its part of the
output and of the new state itself, and answers with counts and names. What a task that was retried
or came second has written is named by nobody, and so is garbage.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from millpond.errors import InputError
from millpond.kernels.kernel import Kernel, MemberKernel, fresh_number, run_bucket, touched
from millpond.spark.nodelay import send_at_once
from millpond.storage.forms import Form, Keyed, Ordered
from millpond.storage.pages import Page, last_end
from millpond.storage.portions import Share
from millpond.storage.state import Delta, StateVersion
from millpond.storage.state_cache import BucketName
from millpond.storage.store import Store, write_parquet
from millpond.storage.worker_states import STATES

Line = dict[str, Any]


class Work(Protocol):
    """What each task of a step does; it is sent to the workers."""

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> Line:
        """Does the work and says what was written."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows it takes."""
        ...

    @property
    def place(self) -> Place:
        """Where the files of the step go."""
        ...


@dataclass(frozen=True)
class Place:
    """Where the files of one step go."""

    directory: str
    page: str
    state: str

    @staticmethod
    def of(store: Store) -> Place:
        """Names in a store that nobody else uses."""
        return Place(str(store.directory), store.new_name("pages"), store.new_name("state"))

    def path(self, name: str) -> Path:
        """Where a file of the store lies."""
        return Path(self.directory) / name

    def write_state(
        self,
        name: BucketName,
        form: Form[Any],
        version: StateVersion,
        changes: pa.Table,
        bucket: int,
        attempt: int,
        until: int,
        part: str = "delta",
    ) -> Line:
        """Writes what changes in a bucket of the state, or of a part of it."""
        if changes.num_rows == 0:
            return {}
        path = f"{self.state}-{part}-{bucket}-{attempt}"
        return {part: STATES.write(name, form, version, changes, path, until).to_json()}

    def write_page(self, table: pa.Table, bucket: int, attempt: int) -> Line:
        """Writes a part of the step's output; the reference to it."""
        if table.num_rows == 0:
            return {}
        name = f"{self.page}-{bucket}-{attempt}.parquet"
        write_parquet(table, self.path(name))
        times = pc.min_max(table["_ts"])
        return {
            "name": name,
            "rows": table.num_rows,
            "bytes": table.nbytes,
            "first": times["min"].as_py(),
            "last": times["max"].as_py(),
            "last_end": last_end(table),
        }


class Shaping(Protocol):
    """Turns the rows of a task into its part of the output; sent to the workers."""

    def __call__(self, rows: pa.Table) -> pa.Table: ...


@dataclass(frozen=True)
class WriteRows:
    """Writes the rows of each task, after a function of the table if there is one."""

    place: Place
    schema: pa.Schema
    shaping: Shaping | None = None

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> Line:
        """One part of the output."""
        shaped = rows if self.shaping is None else self.shaping(rows)
        return self.place.write_page(shaped, bucket, attempt)


@dataclass(frozen=True)
class RunKernel:
    """Runs a kernel on each bucket of its state."""

    place: Place
    schema: pa.Schema
    kernel: Kernel
    operator: str
    version: StateVersion
    after: int
    until: int

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> Line:
        """One bucket: its output, and what changes in its state."""
        if rows.num_rows == 0 and self.kernel.keys:
            return {}
        kernel, version = self.kernel, self.version
        form = Keyed(kernel.state_schema, tuple(kernel.keys))
        name = BucketName(self.place.directory, self.operator, bucket)
        known = STATES.state_at(name, form, version)
        output, changes = run_bucket(kernel, rows, known, self.after, self.until)
        line = self.place.write_page(output, bucket, attempt)
        return line | self.place.write_state(
            name, form, version, changes, bucket, attempt, self.until
        )


@dataclass(frozen=True)
class RunMemberKernel:
    """Runs a kernel on each bucket of its groups and their members."""

    place: Place
    schema: pa.Schema
    kernel: MemberKernel
    operator: str
    versions: tuple[StateVersion, StateVersion]
    after: int
    until: int

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> Line:
        """One bucket: its output, and what changes in its state."""
        kernel = self.kernel
        if rows.num_rows == 0 and kernel.keys:
            return {}
        groups = Keyed(kernel.state_schema, tuple(kernel.keys))
        members = Ordered(kernel.member_schema)
        name = BucketName(self.place.directory, self.operator, bucket)
        member_name = BucketName(self.place.directory, f"{self.operator}.members", bucket)
        known = STATES.state_at(name, groups, self.versions[0])
        state = touched(kernel.keys, known, rows)
        index = STATES.state_at(member_name, members, self.versions[1])
        fresh = fresh_number(self.versions[0].number)
        output, changed, moved = kernel.run_with_members(
            rows, state, index, self.after, self.until, fresh
        )
        line = self.place.write_page(output, bucket, attempt)
        line |= self.place.write_state(
            name, groups, self.versions[0], changed, bucket, attempt, self.until
        )
        return line | self.place.write_state(
            member_name, members, self.versions[1], moved, bucket, attempt, self.until, "members"
        )


def lines_of(frame: DataFrame, work: Work) -> list[Line]:
    """Does the work on every partition of a frame, on the executors."""

    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        line = _line(work, lambda task: _received(list(batches), work.schema))
        yield pa.RecordBatch.from_pydict({"line": [json.dumps(line)]})

    answers = frame.mapInArrow(tasks, "line string").toArrow()["line"].to_pylist()
    return _checked([json.loads(answer) for answer in answers])


def lines_of_tasks(
    session: SparkSession, count: int, work: Work, share: Share | None = None
) -> list[Line]:
    """Does the work in so many tasks on the executors; each reads its share of the rows itself.

    No data frame is analysed and planned for that, which saves half of the time of a small job.
    """
    schema = work.schema

    def rows(task: int) -> pa.Table:
        if share is None:
            return schema.empty_table()
        return share.rows(work.place.path(""), task, schema)

    def tasks(numbers: Iterable[int]) -> Iterator[Line]:
        for _ in numbers:
            yield _line(work, rows)

    numbers = session.sparkContext.parallelize(range(count), count)
    return _checked(numbers.mapPartitions(tasks).collect())


def _checked(lines: list[Line]) -> list[Line]:
    for line in lines:
        if "error" in line:
            raise InputError(line["error"])
    return lines


def _line(work: Work, rows: Callable[[int], pa.Table]) -> Line:
    began = time.monotonic()
    send_at_once()
    context: Any = TaskContext.get()
    bucket, attempt = context.partitionId(), context.taskAttemptId()
    try:
        line = work.run(rows(bucket), bucket, attempt)
    except InputError as error:
        return {"error": str(error)}
    return {**line, "bucket": bucket, "seconds": time.monotonic() - began}


def _received(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The rows that Spark has sent, if they are those that are meant."""
    if not batches or not set(schema.names) <= set(batches[0].schema.names):
        return schema.empty_table()
    return pa.Table.from_batches(batches).select(schema.names).cast(schema)


def page_of(store: Store, lines: list[Line]) -> Page | None:
    """The page whose parts the tasks have written."""
    parts = [line for line in lines if "name" in line]
    if not parts:
        return None
    ends = [line["last_end"] for line in parts if line["last_end"] is not None]
    return Page(
        store,
        rows=sum(line["rows"] for line in parts),
        bytes_=sum(line["bytes"] for line in parts),
        first=min(line["first"] for line in parts),
        last=max(line["last"] for line in parts),
        last_end=max(ends, default=None),
        names=tuple(line["name"] for line in parts),
    )


def deltas_of(lines: list[Line], part: str = "delta") -> dict[int, Delta]:
    """What changes in each bucket of the state, or of a part of it."""
    return {line["bucket"]: Delta.from_json(line[part]) for line in lines if part in line}

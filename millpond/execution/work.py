"""What the tasks of a step do, wherever they run: each on its rows and on one bucket of the state.

A task writes its part of the output and of the new state itself, and answers with counts and names.
What a task that was retried or came second has written is named by nobody, and so is garbage.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from millpond.errors import InputError, OutgrownError
from millpond.execution.answers import Answer
from millpond.identities import OperatorId
from millpond.kernels.kernel import Kernel, MemberKernel, fresh_number
from millpond.kernels.living import LivingRows
from millpond.storage.faults import writing
from millpond.storage.files import PARQUET, write_rows
from millpond.storage.forms import FREED, Form, Keyed, Ordered
from millpond.storage.frees import Frees, sweeps
from millpond.storage.pages import ends_of
from millpond.storage.portions import Portion, Scan, TaskRows
from millpond.storage.readers import Remains
from millpond.storage.state import StateVersion
from millpond.storage.state_cache import BucketName
from millpond.storage.store import WORKER_STATE_BYTES, Store, write_summed
from millpond.storage.worker_states import STATES, keep_to

AnswerAndOutput = tuple[Answer, pa.Table]
"""The answer of a task, and what it has put out."""

NOTHING = pa.table({})
"""The output of work that puts nothing out."""


class Work(Protocol):
    """What each task of a step does; it is sent to the workers."""

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """Does the work; says what was written, and what was put out."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows it takes."""

    @property
    def destination(self) -> Destination:
        """Where the files of the step go."""


@dataclass(frozen=True)
class Destination:
    """Where the files of one step go."""

    directory: str
    page: str
    state: str
    remains: Remains = Remains.ALL
    """What of the output is written: what somebody needs when the step is over."""
    until: int = 0
    """When the step is over."""
    is_durable: bool = False
    """Whether the files are summed up, for a log that knows them."""
    suffix: str = PARQUET
    """What its pages are written as."""
    state_bytes: int = WORKER_STATE_BYTES
    """How much a worker remembers of states."""

    @staticmethod
    def of(store: Store) -> Destination:
        """Names in a store that nobody else uses."""
        return Destination(
            str(store.directory),
            store.new_name("pages"),
            store.new_state_name(),
            is_durable=store.is_durable,
            suffix=store.page_suffix,
            state_bytes=store.worker_state_bytes,
        )

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
    ) -> Answer:
        """Writes what changes in a bucket of the state, or of a part of it."""
        is_swept = isinstance(form, FREED) and sweeps(form.frees) and version.buckets[bucket]
        if changes.num_rows == 0 and not is_swept:
            return {}
        path = f"{self.state}-{part}-{bucket}-{attempt}"
        delta = STATES.write(name, form, version, changes, path, until, self.is_durable)
        return {part: delta.to_line()}

    def write_page(self, table: pa.Table, bucket: int, attempt: int) -> Answer:
        """Writes a part of the step's output, as far as it is needed; the reference to it."""
        made = {"made": table.num_rows, "made_bytes": table.nbytes}
        table = self.remains.of(table, self.until)
        if table.num_rows == 0:
            return made
        name = f"{self.page}-{bucket}-{attempt}{self.suffix}"
        made |= self.write_file(table, name, "sum")
        times = pc.min_max(table["_ts"])
        first_end, last_end = ends_of(table)
        return made | {
            "name": name,
            "rows": table.num_rows,
            "bytes": table.nbytes,
            "first": times["min"].as_py(),
            "last": times["max"].as_py(),
            "last_end": last_end,
            "first_end": first_end,
        }

    def write_file(self, table: pa.Table, name: str, key: str) -> Answer:
        """Writes a file of rows; its sum under a key, if it is to be noted."""
        path = self.path(name)
        with writing(path):
            if not self.is_durable:
                write_rows(table, path)
                return {}
            return {key: write_summed(table, path)}


class Shaping(Protocol):
    """Turns the rows of a task into its part of the output; sent to the workers."""

    def __call__(self, rows: pa.Table) -> pa.Table: ...


@dataclass(frozen=True)
class WriteRows:
    """Writes the rows of each task, after a function of the table if there is one."""

    destination: Destination
    schema: pa.Schema
    shaping: Shaping | None = None

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """Writes one task's part of the output."""
        shaped = rows if self.shaping is None else self.shaping(rows)
        return self.destination.write_page(shaped, bucket, attempt), shaped


@dataclass(frozen=True)
class OfLiving:
    """Work on the rows of queries that are not gone."""

    work: Work
    living: LivingRows

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows that it takes."""
        return self.work.schema

    @property
    def destination(self) -> Destination:
        """Where its files go."""
        return self.work.destination

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """The work on one bucket."""
        return self.work.run(self.living.of(rows), bucket, attempt)


@dataclass(frozen=True)
class RunKernel:
    """Runs a kernel on each bucket of its state."""

    destination: Destination
    schema: pa.Schema
    kernel: Kernel
    operator: OperatorId
    version: StateVersion
    after: int
    until: int
    frees: Frees = ()
    """Which groups are final."""

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """One bucket: its output, and what changes in its state."""
        if rows.num_rows == 0 and self.kernel.keys and not sweeps(self.frees):
            return {}, self.kernel.output_schema.empty_table()
        kernel, version = self.kernel, self.version
        form = Keyed(kernel.state_schema, tuple(kernel.keys), self.frees)
        name = BucketName(self.destination.directory, self.operator, bucket)
        known = STATES.rows_of(name, form, version, rows)
        output, changes = kernel.run(rows, known, self.after, self.until)
        answer = self.destination.write_page(output, bucket, attempt)
        answer |= self.destination.write_state(
            name, form, version, changes, bucket, attempt, self.until
        )
        return answer, output


@dataclass(frozen=True)
class RunMemberKernel:
    """Runs a kernel on each bucket of its groups and their members."""

    destination: Destination
    schema: pa.Schema
    kernel: MemberKernel
    operator: OperatorId
    versions: tuple[StateVersion, StateVersion]
    after: int
    until: int
    frees: tuple[Frees, Frees] = ((), ())
    """Which groups are final, and which members are theirs."""

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """One bucket: its output, and what changes in its state."""
        kernel = self.kernel
        if rows.num_rows == 0 and kernel.keys and not sweeps(self.frees[0]):
            return {}, kernel.output_schema.empty_table()
        groups = Keyed(kernel.state_schema, tuple(kernel.keys), self.frees[0])
        members = Ordered(kernel.member_schema, self.frees[1])
        name = BucketName(self.destination.directory, self.operator, bucket)
        member_name = BucketName(self.destination.directory, f"{self.operator}.members", bucket)
        state = STATES.rows_of(name, groups, self.versions[0], rows)
        index = STATES.state_at(member_name, members, self.versions[1])
        fresh = fresh_number(self.versions[0].number)
        output, changed, moved = kernel.run_with_members(
            rows, state, index, self.after, self.until, fresh
        )
        answer = self.destination.write_page(output, bucket, attempt)
        answer |= self.destination.write_state(
            name, groups, self.versions[0], changed, bucket, attempt, self.until
        )
        answer |= self.destination.write_state(
            member_name, members, self.versions[1], moved, bucket, attempt, self.until, "members"
        )
        return answer, output


@dataclass(frozen=True)
class Rider:
    """Work that is done in the tasks of other work, on what that has just put out there."""

    work: Work
    task_rows: TaskRows
    """What it reads besides."""
    fresh: tuple[tuple[int, Portion], ...]
    """Whose output it reads (its position in the ride), and what it makes of which times of it."""

    def rows(self, outputs: list[pa.Table], bucket: int, scan: Scan) -> pa.Table:
        """What it works on in a bucket."""
        schema = self.work.schema
        tables = [
            table.select(schema.names).cast(schema)
            for source, portion in self.fresh
            for table in portion.made_of(outputs[source])
        ]
        known = self.task_rows.rows(scan, bucket, schema)
        return pa.concat_tables([known, *tables])


@dataclass(frozen=True)
class Ride:
    """Several members of a virtual operator in one job: each task does the work of all of them."""

    first: Work
    riders: tuple[Rider, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows that the first takes."""
        return self.first.schema

    @property
    def destination(self) -> Destination:
        """Where the files of the first go."""
        return self.first.destination

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """Does one bucket: an answer for each member."""
        answers, outputs = list[Answer](), list[pa.Table]()
        with Scan(self.destination.path("")) as scan:
            for rider in (None, *self.riders):
                began = time.monotonic()
                if rider is None:
                    answer, output = self.first.run(rows, bucket, attempt)
                else:
                    read = rider.rows(outputs, bucket, scan)
                    answer, output = rider.work.run(read, bucket, attempt)
                answers.append(answer | {"bucket": bucket, "seconds": time.monotonic() - began})
                outputs.append(output)
        return {"members": answers}, NOTHING


def done(work: Work, rows: Callable[[], pa.Table], bucket: int, attempt: int) -> Answer:
    """Does the work of one task; the answer says what it raised, if that is about its rows."""
    began = time.monotonic()
    keep_to(work.destination.state_bytes)
    try:
        answer, _ = work.run(rows(), bucket, attempt)
    except OutgrownError as error:
        return {"outgrown": str(error), "until": error.until}
    except InputError as error:
        return {"error": str(error), "notes": getattr(error, "__notes__", [])}
    return {**answer, "bucket": bucket, "seconds": time.monotonic() - began}


def own_rows(work: Work, task_rows: TaskRows | None, task: int) -> pa.Table:
    """The rows that a task reads itself."""
    if task_rows is None:
        return work.schema.empty_table()
    with Scan(work.destination.path("")) as scan:
        return task_rows.rows(scan, task, work.schema)

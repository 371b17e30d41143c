"""The interfaces of Spark that are not public: nobody else in Millpond touches them.

Those that make a step quick, by 10 to 30 ms, have a plain way beside them, for a Spark that lacks
the private one, and for tests that set ``MILLPOND_PLAIN_SPARK=1``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import convert_exception
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import Column, DataFrame, SparkSession, SQLContext
from pyspark.sql.classic import column as classic

PLAIN_VARIABLE = "MILLPOND_PLAIN_SPARK"
"""Set to 1 in the environment, only public interfaces are used."""


T = TypeVar("T")


class AnalysedPlan(Protocol):
    """A query over files that is run again and again, whenever the files have changed."""

    def frame(self) -> DataFrame:
        """The query over the files that there are now."""


class PlainPlan:
    """A plan that is built and analysed anew whenever it runs."""

    def __init__(self, build: Callable[[], DataFrame]) -> None:
        self._build = build

    def frame(self) -> DataFrame:
        return self._build()


class ReusedPlan:
    """A plan that is built and analysed once; running it lists its files anew, and nothing else."""

    def __init__(self, frame: DataFrame) -> None:
        self._session = frame.sparkSession
        self._analysed = analysed_of(frame)
        self._listings = listings(self._analysed)
        rerun(self._session, self._analysed)  # fails here if it can not be done

    def frame(self) -> DataFrame:
        for listing in self._listings:
            listing.refresh()
        self._analysed.invalidateStatsCache()
        return rerun(self._session, self._analysed)


def plan(build: Callable[[], DataFrame]) -> AnalysedPlan:
    """A plan for a query over files, reused if this Spark can do that."""
    if is_plain():
        return PlainPlan(build)
    frame = build()
    try:
        return ReusedPlan(frame)
    except Py4JNetworkError:
        raise
    except _MISSING as error:
        _warn_of_the_plain_way(frame.sparkSession, error)
        return PlainPlan(build)


def is_plain() -> bool:
    """Whether only public interfaces are to be used."""
    return os.environ.get(PLAIN_VARIABLE) == "1"


def analysed_of(frame: DataFrame) -> Any:
    """The analysed logical plan of a frame, in the JVM."""
    return frame._jdf.queryExecution().analyzed()


def listings(analysed: Any) -> list[Any]:
    """The lists of files that an analysed plan reads."""
    leaves = analysed.collectLeaves()
    return [leaves.apply(i).relation().location() for i in range(leaves.size())]


def rerun(session: SparkSession, analysed: Any) -> DataFrame:
    """A frame over an analysed plan: planned anew, not analysed."""
    dataset = jvm(session).org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(java_session(session), analysed), session)


def select_prepared(
    session: SparkSession, columns: Sequence[Column]
) -> Callable[[DataFrame], DataFrame]:
    """``select`` of these columns, which are handed to the JVM once and not with every use."""
    if is_plain():
        return lambda frame: frame.select(*columns)
    try:
        prepared = classic._to_seq(session.sparkContext, [column._jc for column in columns])
    except AttributeError as error:
        _warn_of_the_plain_way(session, error)
        return lambda frame: frame.select(*columns)
    return lambda frame: DataFrame(frame._jdf.select(prepared), session)


def collected(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """The rows of a frame in the driver, cast to a schema where Spark's differs."""
    collect: Any = getattr(type(frame), "_collect_as_arrow", None)
    if is_plain() or collect is None:
        table = frame.toArrow()
    else:
        batches = collect(frame)
        if not batches:
            return schema.empty_table()
        table = pa.Table.from_batches(batches)
    return table if table.schema == schema else table.cast(schema)


def run_tasks(session: SparkSession, count: int, task: Callable[[], T]) -> list[T]:
    """The answers of so many tasks on the executors, each of which calls a function.

    Beginning a job the plain way takes forty calls to the JVM, most of them for what is the same
    in every job.
    """
    context = session.sparkContext
    command = _AloneInTask(task)
    if not is_plain():
        try:
            prepared = _PreparedTasks.of(context)
            job = prepared.job(count, command)
        except Py4JNetworkError:
            raise
        except _MISSING as error:
            _warn_of_the_plain_way(session, error)
        else:
            if job is not None:
                return prepared.answers(job)
    return context.parallelize(range(count), count).mapPartitionsWithIndex(command).collect()


class _AloneInTask(Generic[T]):
    """Calls a function once in a task; what the task is given, nothing, is read to its end."""

    def __init__(self, task: Callable[[], T]) -> None:
        self._task = task

    def __call__(self, number: int, nothing: Iterable[Any]) -> Iterator[T]:
        for _ in nothing:
            pass
        yield self._task()


class _PreparedTasks:
    """What the JVM must be told once to begin jobs of Python tasks in a context."""

    _latest: _PreparedTasks | None = None

    def __init__(self, context: Any) -> None:
        self.context = context
        pickling: Any = CloudPickleSerializer  # has no types
        self._pickled = pickling().dumps
        java = context._jvm
        self._function, self._rdd = java.SimplePythonFunction, java.PythonRDD
        self._surroundings = java.java.util.HashMap()
        for key, value in context.environment.items():
            self._surroundings.put(key, value)
        self._nothing = java.java.util.ArrayList()
        self._includes: tuple[list[str], Any] = [], java.java.util.ArrayList()
        self._empty: dict[int, tuple[Any, Any]] = {}
        """By their number: tasks that are given nothing, and how they read that."""
        self._most_bytes = int(java.PythonUtils.getBroadcastThreshold(context._jsc))

    @staticmethod
    def of(context: SparkContext) -> _PreparedTasks:
        """Those of a context; a process has one at a time."""
        latest = _PreparedTasks._latest
        if latest is None or latest.context is not context:
            latest = _PreparedTasks._latest = _PreparedTasks(context)
        return latest

    def job(self, count: int, command: Callable[[int, Iterable[Any]], Iterator[Any]]) -> Any:
        """The job in the JVM, not begun; None if its command is too large to be sent with it."""
        if count not in self._empty:
            empty: Any = self.context.parallelize([], count)
            self._empty[count] = empty._jrdd.rdd(), empty._jrdd_deserializer
        nothing, deserializer = self._empty[count]
        told = (command, None, deserializer, self.context.serializer)
        pickled = self._pickled(told)
        if len(pickled) > self._most_bytes:
            return None
        function = self._function(
            bytearray(pickled),
            self._surroundings,
            self._files(),
            self.context.pythonExec,
            self.context.pythonVer,
            self._nothing,
            self.context._javaAccumulator,
        )
        return self._rdd(nothing, function, False, False)

    def _files(self) -> Any:
        """The files that workers import from, in the JVM."""
        files: list[str] = list(self.context._python_includes)
        known, java = self._includes
        if known != files:
            java = self.context._jvm.java.util.ArrayList()
            for file in files:
                java.add(file)
            self._includes = files, java
        return java

    def answers(self, job: Any) -> list[Any]:
        """What the tasks of a job answer: each one list of its answers, pickled.

        ``collect`` reads the code of the largest classes of Spark before every job, 8 ms long, to
        clean what it sends of what need not be sent.
        """
        try:
            lists = job.asJavaRDD().collectAsync().get()
        except Py4JJavaError as error:
            raise _told(error) from None
        unpickle = self.context.serializer.serializer.loads
        return [answer for i in range(len(lists)) for answer in unpickle(lists[i])]


def _told(error: Any) -> BaseException:
    """What PySpark would raise had the job been waited for where it was begun."""
    cause = error.java_exception.getCause()
    return error if cause is None else convert_exception(cause)


def jvm(session: SparkSession) -> Any:
    """The classes of the driver's JVM."""
    return session._jvm


def java_session(session: SparkSession) -> Any:
    """The session in the JVM."""
    return session._jsparkSession


def java_context(session: SparkSession) -> Any:
    """The Spark context in the JVM; None after it was stopped from Python."""
    java = session.sparkContext._jsc
    return None if java is None else java.sc()


def is_alive(session: SparkSession) -> bool:
    """Whether jobs can be run: the JVM is there, and its Spark context is not stopped."""
    gateway: Any = session.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is not None and process.poll() is not None:
        return False
    try:
        context = java_context(session)
        return context is not None and not context.isStopped()
    except (Py4JError, OSError):
        return False


def running_session() -> SparkSession | None:
    """The session of this process, or None; what is left of a dead one is cleared away."""
    if SparkContext._active_spark_context is None:
        return None
    session = SparkSession._instantiatedSession
    if session is None:  # a context without a session: getOrCreate makes one
        return None
    if is_alive(session):
        return SparkSession.getActiveSession() or session
    _forget(session)
    return None


def _forget(session: SparkSession) -> None:
    """Makes PySpark start anew: a stopped context is let go, and its JVM too if that has died."""
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None or process.poll() is None:
        with contextlib.suppress(Py4JError, OSError):
            session.stop()
            return
    context = session.sparkContext
    context._jsc = None
    context.stop()
    gateway.close()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


def die_quietly(session: SparkSession) -> None:
    """Keeps PySpark from printing a stack when the JVM goes away: who waits for it is told."""
    logging.getLogger().addFilter(_is_for_users)
    server: Any = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is None:
        return
    tell = server.handle_error

    def handle_error(*request: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            tell(*request)

    server.handle_error = handle_error


def leave_quietly() -> None:
    """Has this worker print no stack when Spark lets it go: its Unix socket is closed then."""
    daemon: Any = sys.modules["__main__"]
    if getattr(daemon, "traceback", None) is traceback:
        daemon.traceback = SimpleNamespace(
            format_exc=traceback.format_exc, print_exc=_print_unless_let_go
        )


def _print_unless_let_go() -> None:
    if not isinstance(sys.exception(), BrokenPipeError):
        traceback.print_exc()


def _is_for_users(record: logging.LogRecord) -> bool:
    """Whether it is not what Py4J tells the root logger about a JVM that is gone."""
    return record.msg != "Exception while sending command."


def master_of(session: SparkSession) -> str:
    """Where the tasks of a session run."""
    return str(session.sparkContext.master)


def temporary_directory(session: SparkSession) -> Path:
    """A directory that the driver removes when it ends."""
    return Path(str(session.sparkContext._temp_dir))


def executor_count(session: SparkSession) -> int:
    """How many executors the cluster has given, the driver not counted."""
    return len(java_context(session).statusTracker().getExecutorInfos()) - 1


def cluster_slots(session: SparkSession) -> int | None:
    """How many tasks the executors of a cluster run at once; None if Spark does not tell."""
    try:
        context = java_context(session)
        own = int(context.getConf().get("spark.task.cpus", "1"))
        listing = context.statusStore().executorList(True)
        executors = [listing.apply(i) for i in range(listing.size())]
        cores = [int(each.totalCores()) for each in executors if each.id() != "driver"]
        return sum(each // own for each in cores)
    except Py4JNetworkError:
        raise
    except _MISSING:
        return None


_MISSING = (Py4JError, AttributeError, TypeError)
"""What is raised where a private interface is not there or looks different."""


def _warn_of_the_plain_way(session: SparkSession, error: Exception) -> None:
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    warnings.warn(
        f"Spark {session.version} lacks an interface that makes steps quick ({first_line}): "
        "plans are built anew in each step",
        RuntimeWarning,
        stacklevel=3,
    )

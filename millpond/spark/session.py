"""Starts Spark: small, quiet and tuned for many short jobs from one long-lived driver."""

import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from millpond.errors import MachineError
from millpond.settings import AUTO, Settings, is_local, local_cores
from millpond.spark.cluster import address_options, cluster_options, worker_python
from millpond.spark.executors import cores, join_cluster
from millpond.spark.hadoop import shorten_hadoop_options
from millpond.spark.internals import die_quietly, master_of, running_session
from millpond.spark.java import java_home
from millpond.spark.pools import allocation_file


def create_session(settings: Settings | None = None, **extra: str) -> SparkSession:
    """A Spark session for Millpond, or the one that is already running.

    ``extra`` adds Spark options, with ``__`` for each dot: ``spark__ui__enabled="true"``.
    In the place of one that has died, or that was stopped, a new one is started.
    """
    settings = settings or Settings()
    with _STARTING:
        running = running_session()
        if running is not None:
            check_fit(running, settings)
            return running
        return _new_session(settings, extra)


def check_fit(running: SparkSession, settings: Settings) -> None:
    """Raises MachineError if the settings ask for another master than the one that runs."""
    asked, given = settings.spark_master, _master_asked(running)
    if asked in (given, Settings().spark_master):
        return
    if is_local(asked) and is_local(given) and local_cores(asked) == local_cores(given):
        return
    raise MachineError(
        f'spark_master = "{asked}": this process runs Spark at {given} already, and a process has '
        "one Spark; leave spark_master out, or stop that one first (engine.spark.stop())"
    )


def _master_asked(running: SparkSession) -> str:
    """Where a session's tasks run, as it was asked for: in local mode it has more slots."""
    return running.sparkContext.getConf().get(_MASTER) or master_of(running)


def _with_slots(spark_master: str) -> str:
    """A master with as many slots more as residents may take, which do not leave theirs.

    >>> _with_slots("local[2]"), _with_slots("spark://a:7077")
    ('local[6]', 'spark://a:7077')
    """
    if not is_local(spark_master):
        return spark_master
    cores = local_cores(spark_master)
    return f"local[{cores + max(cores, LEAST_RESIDENTS)}]"


def _new_session(settings: Settings, extra: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName("millpond").master(_with_slots(settings.spark_master))
    options = spark_options(settings) | {k.replace("__", "."): v for k, v in extra.items()}
    for key, value in options.items():
        builder = builder.config(key, value)
    is_ours = SparkContext._active_spark_context is None
    builder = builder.config("spark.scheduler.allocation.file", allocation_file().as_uri())
    session = _start(builder, settings.spark_master)
    if is_ours:
        _prepare(session)
    return session


def _prepare(session: SparkSession) -> None:
    die_quietly(session)
    shorten_hadoop_options(session)
    if not is_local(master_of(session)):
        try:
            join_cluster(session)
        except BaseException:
            session.stop()
            raise


def spark_options(settings: Settings) -> dict[str, str]:
    """The Spark options that Millpond sets, from its own settings."""
    return {
        _MASTER: settings.spark_master,
        RESIDENT_ENCRYPTION: settings.resident_encryption,
        RESIDENT_PORT: "0" if settings.resident_port == AUTO else settings.resident_port,
        **address_options(settings),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile=file:{_LOG_CONFIGURATION}" '
        f"{_LANGUAGE}",
        "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
        "spark.executor.extraJavaOptions": f"{_LOG_LEVEL_OF_EXECUTORS} {_LANGUAGE}",
        **_MANY_SHORT_JOBS,
        **socket_options(),
        **_QUIET,
        **_STEPS,
        **_where_tasks_run(settings),
    }


def socket_options(platform: str = os.name, directory: str | None = None) -> dict[str, str]:
    """How Spark and its Python workers talk: not through TCP, if there is another way.

    TCP holds a small write back until the one before is acknowledged, which takes 40 ms of a job.
    The name of a Unix socket must be short.

    >>> socket_options("nt"), socket_options("posix", "/" + 70 * "x")
    ({}, {})
    """
    directory = directory or tempfile.gettempdir()
    if platform != "posix" or len(os.fsencode(directory)) > _LONGEST_SOCKET_DIRECTORY:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true"}


def _where_tasks_run(settings: Settings) -> dict[str, str]:
    if not is_local(settings.spark_master):
        return cluster_options(settings)
    partitions = str(local_cores(settings.spark_master))
    return {"spark.default.parallelism": partitions, "spark.sql.shuffle.partitions": partitions}


def for_steps(session: SparkSession) -> SparkSession:
    """The session if it has the settings that steps rely on, else a sibling of it that has them.

    A session of the user's own keeps its settings; the sibling shares its Spark.
    """
    wanted = _STEPS | {"spark.sql.shuffle.partitions": str(cores(session))}
    if all(session.conf.get(key, None) == value for key, value in wanted.items()):
        return session
    sibling = session.newSession()
    for key, value in wanted.items():
        sibling.conf.set(key, value)
    return sibling


_STARTING = threading.Lock()

_MASTER = "spark.millpond.master"
"""Where tasks run, as it was asked for."""

RESIDENT_PORT = "spark.millpond.residents.port"
"""Where the driver listens for residents; 0: anywhere."""

RESIDENT_ENCRYPTION = "spark.millpond.residents.encryption"
"""Whether they talk in secret: on, off, or auto."""

LEAST_RESIDENTS = 4
"""In local mode there is room for so many residents at least."""

_LONGEST_SOCKET_DIRECTORY = 60
"""Bytes: a system takes 104 at least, and Spark adds a name of 42."""

_LOG_LEVEL_OF_EXECUTORS = "-Dlog4j2.level=WARN"
"""Unless a worker has a log configuration of its own: a line a task fills a disk in the long run.

Not ERROR, which is Log4j's own default: Spark takes that for no choice, and logs at INFO. And not
``spark.log.level``, which an executor forgets while it starts.
"""
_LANGUAGE = "-Duser.language=en"
"""upper and lower follow the language of the JVM: in Turkish, the capital of i has a dot."""

_LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

_MANY_SHORT_JOBS = {
    "spark.scheduler.mode": "FAIR",
    "spark.locality.wait": "0",
    "spark.python.worker.reuse": "true",
    # How long Spark waits for Python to fetch an answer: 15 s are too few on a busy machine.
    "spark.python.authenticate.socketTimeout": "10min",
    # A table for a broadcast join fills one page with zeros before it is used: 64 MiB by default.
    "spark.buffer.pageSize": "4m",
    "spark.cleaner.periodicGC.interval": "5min",
}

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
}

_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"

_STEPS = {
    "spark.sql.adaptive.enabled": "false",
    # A Spark job to list the files of a slot would cost more than the step itself.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # What expressions mean.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    # An overflow is that of the sum as it is written, and none in a part that is not needed.
    "spark.sql.optimizer.excludedRules": f"{_OPTIMIZER}.ReorderAssociativeOperator",
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    # A name inside a lambda is a column of the input, not one that the select list makes.
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
}


def _start(builder: SparkSession.Builder, spark_master: str) -> SparkSession:
    with _environment(JAVA_HOME=str(java_home()), PYSPARK_PYTHON=worker_python(spark_master)):
        try:
            with _interrupts_as_they_were():
                return builder.getOrCreate()
        except Exception as error:
            raise MachineError(f"Spark does not start: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def _interrupts_as_they_were() -> Iterator[None]:
    """Keeps PySpark from making Ctrl-C cancel all jobs: those of other engines are not meant."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

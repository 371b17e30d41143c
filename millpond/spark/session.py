"""Starts Spark: small, quiet and tuned for many short jobs from one long-lived driver."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from millpond.errors import MachineError
from millpond.settings import Settings, cores
from millpond.spark.java import java_home


def create_session(settings: Settings | None = None, **extra: str) -> SparkSession:
    """A Spark session for Millpond, or the one that is already running.

    ``extra`` adds Spark options, with ``__`` for each dot: ``spark__ui__enabled="true"``.
    """
    settings = settings or Settings()
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName("millpond").master(settings.spark_master)
    for key, value in spark_options(settings).items():
        builder = builder.config(key, value)
    for name, value in extra.items():
        builder = builder.config(name.replace("__", "."), value)
    is_ours = SparkContext._active_spark_context is None
    session = _start(builder)
    if is_ours:
        set_hadoop_options(session, _needed(hadoop_options(session)))
    return session


def spark_options(settings: Settings) -> dict[str, str]:
    """The Spark options that Millpond sets, from its own settings."""
    partitions = str(cores(settings.spark_master))
    return _LOCAL_NETWORK | {
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile=file:{_LOG_CONFIGURATION}" '
        f"{_LANGUAGE}",
        "spark.executor.extraJavaOptions": _LANGUAGE,
        "spark.default.parallelism": partitions,
        "spark.sql.shuffle.partitions": partitions,
        **_MANY_SHORT_JOBS,
        **_QUIET,
        **_STEPS,
    }


def for_steps(session: SparkSession) -> SparkSession:
    """The session if it has the settings that steps rely on, else a sibling of it that has them.

    A session of the user's own keeps its settings; the sibling shares its Spark.
    """
    wanted = _STEPS | {"spark.sql.shuffle.partitions": str(session.sparkContext.defaultParallelism)}
    if all(session.conf.get(key, None) == value for key, value in wanted.items()):
        return session
    sibling = session.newSession()
    for key, value in wanted.items():
        sibling.conf.set(key, value)
    return sibling


def hadoop_options(session: SparkSession) -> list[dict[str, Any]]:
    """Hadoop's configuration in the driver: each entry with key, value and the file it is from."""
    java: Any = session._jsparkSession
    java.sessionState().newHadoopConf()  # loads what would be loaded later
    return _listed(session, _hadoop(session))


def default_hadoop_options(session: SparkSession) -> list[dict[str, Any]]:
    """The configuration as Hadoop brings it."""
    jvm: Any = session._jvm
    return _listed(session, jvm.org.apache.hadoop.conf.Configuration())


def _listed(session: SparkSession, configuration: Any) -> list[dict[str, Any]]:
    jvm: Any = session._jvm
    text = jvm.java.io.StringWriter()
    jvm.org.apache.hadoop.conf.Configuration.dumpConfiguration(configuration, text)
    options: list[dict[str, Any]] = json.loads(text.toString())["properties"]
    return options


def set_hadoop_options(session: SparkSession, options: list[dict[str, Any]]) -> None:
    """Makes these entries the whole configuration."""
    configuration = _hadoop(session)
    configuration.clear()
    for option in options:
        configuration.set(option["key"], option["value"])


def _hadoop(session: SparkSession) -> Any:
    return session.sparkContext._jsc.hadoopConfiguration()


def _needed(options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What Spark and file systems read, without the defaults of YARN, MapReduce and servers.

    Every scan of files sends the whole configuration to its tasks, each entry compressed by itself:
    16 ms for the usual 1,100 entries, 4 ms for these, in each step.
    """
    return [
        option
        for option in options
        if not option["resource"].endswith("-default.xml") or option["key"].startswith("fs.")
    ]


_LANGUAGE = "-Duser.language=en"
"""upper and lower follow the language of the JVM: in Turkish, the capital of i has a dot."""

_LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

_LOCAL_NETWORK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_MANY_SHORT_JOBS = {
    "spark.scheduler.mode": "FAIR",
    "spark.locality.wait": "0",
    "spark.python.worker.reuse": "true",
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


def _start(builder: SparkSession.Builder) -> SparkSession:
    with _environment(JAVA_HOME=str(java_home()), PYSPARK_PYTHON=sys.executable):
        try:
            return builder.getOrCreate()
        except Exception as error:
            raise MachineError(f"Spark does not start: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


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

"""Hadoop's configuration, cut to what is read: Spark sends it to the tasks of every scan."""

import json
from typing import Any

from pyspark.sql import SparkSession

from millpond.spark.internals import java_context, java_session, jvm


def shorten_hadoop_options(session: SparkSession) -> None:
    """Leaves out what neither Spark nor file systems read."""
    set_hadoop_options(session, _needed(hadoop_options(session)))


def hadoop_options(session: SparkSession) -> list[dict[str, Any]]:
    """Hadoop's configuration in the driver: each entry with key, value and the file it is from."""
    java_session(session).sessionState().newHadoopConf()  # loads what would be loaded later
    return _listed(session, java_context(session).hadoopConfiguration())


def default_hadoop_options(session: SparkSession) -> list[dict[str, Any]]:
    """The configuration as Hadoop brings it."""
    return _listed(session, jvm(session).org.apache.hadoop.conf.Configuration())


def set_hadoop_options(session: SparkSession, options: list[dict[str, Any]]) -> None:
    """Makes these entries the whole configuration."""
    configuration = java_context(session).hadoopConfiguration()
    configuration.clear()
    for option in options:
        configuration.set(option["key"], option["value"])


def _listed(session: SparkSession, configuration: Any) -> list[dict[str, Any]]:
    text = jvm(session).java.io.StringWriter()
    jvm(session).org.apache.hadoop.conf.Configuration.dumpConfiguration(configuration, text)
    options: list[dict[str, Any]] = json.loads(text.toString())["properties"]
    return options


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

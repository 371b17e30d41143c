"""Structured Streaming's Kafka source and sink, with the companions that the registry has.

PySpark 4.3.0 has none of its own version there: the source is that of 4.2.0, and what it needs for
tokens that of 4.0.0.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from millpond.spark.java import java_home
from tests.kafka_broker import Broker
from tests.maven import Artifact, jar

SPARK = "org.apache.spark"
COMPANIONS = (
    Artifact(SPARK, "spark-sql-kafka-0-10_2.13", "4.2.0"),
    Artifact(SPARK, "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.0"),
    Artifact("org.apache.commons", "commons-pool2", "2.12.0"),
)


@contextmanager
def session() -> Iterator[SparkSession]:
    """A session with Kafka's source; ``UnreachableError`` if it cannot be fetched."""
    found = ",".join(str(jar(each)) for each in COMPANIONS)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(java_home() or "/usr")}
    settings = {"spark.jars": found, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": 2}
    builder = SparkSession.builder.master("local[2]").appName("peer")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def read(spark: SparkSession, broker: Broker, topic: str, into: str | None) -> dict[str, float]:
    """Reads a topic to its end: counts its rows by a key, or writes them into another topic."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.address)
    messages = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    whole = sql.from_json(sql.col("value").cast("string"), "id BIGINT, k INT, v DOUBLE")
    rows = messages.select(whole.alias("row")).select("row.*")
    jvm = psutil.Process(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    wall, spent = time.perf_counter(), _seconds(jvm)
    with tempfile.TemporaryDirectory(prefix="millpond-peer-") as notes:
        writer = (_counted(rows) if into is None else _sent(rows, broker, into)).trigger(
            availableNow=True
        )
        query = writer.option("checkpointLocation", notes).start()
        query.awaitTermination()
    return {
        "seconds": time.perf_counter() - wall,
        "processor_seconds": _seconds(jvm) - spent,
        "rows": sum(batch["numInputRows"] for batch in query.recentProgress),
    }


def _counted(rows: DataFrame):  # type: ignore[no-untyped-def]
    counted = rows.groupBy("k").count()
    return counted.writeStream.format("noop").outputMode("update")


def _sent(rows: DataFrame, broker: Broker, topic: str):  # type: ignore[no-untyped-def]
    values = rows.select(sql.to_json(sql.struct("id", "v")).alias("value"))
    writer = values.writeStream.format("kafka").option("topic", topic)
    return writer.option("kafka.bootstrap.servers", broker.address)


def _seconds(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)

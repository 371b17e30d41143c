"""Raw Structured Streaming over Parquet pages, with the settings that make it quickest.

One file is one micro-batch, the sink takes rows and forgets them, and everything it logs goes to
the directory given, which should be in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from millpond.spark.hadoop import default_hadoop_options, hadoop_options, set_hadoop_options

Build = Callable[..., DataFrame]
"""Makes the query's DataFrame of one streaming DataFrame for each input."""

_STREAMING = "org.apache.spark.sql.execution.streaming"
_STATE = "spark.sql.streaming.stateStore.providerClass"
_FILES = "spark.sql.streaming.checkpointFileManagerClass"
_CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
_LEAST_LOGGING = {
    _FILES: f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    _CHECKSUMS: "false",
}
_ROCKS = {_STATE: f"{_STREAMING}.state.RocksDBStateStoreProvider"}

VARIANTS: dict[str, dict[str, str]] = {
    "least logging": _LEAST_LOGGING,
    "least logging, RocksDB": _LEAST_LOGGING | _ROCKS,
    "as installed": {},
}
RAW, TUNED = "as installed", "least logging"
"""As installed it also has Hadoop's whole configuration; the others have Millpond's short one."""

STATELESS = ("least logging", "as installed")


@dataclass(frozen=True)
class Run:
    """What a run took, batch by batch, without starting the query."""

    batch_seconds: tuple[float, ...]
    rows_in: int
    rows_out: int

    @property
    def seconds(self) -> float:
        """All batches together."""
        return sum(self.batch_seconds)


def run(
    spark: SparkSession, build: Build, directories: list[Path], variant: str, scratch: Path
) -> Run:
    """Reads the directories to their end, one file of each a micro-batch."""
    with settings_of(spark, variant):
        inputs = [_pages(spark, directory) for directory in directories]
        checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=scratch)
        writer = build(*inputs).writeStream.format("noop").outputMode("append")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [batch for batch in query.recentProgress if _has_read(batch)]
        return Run(
            tuple(batch["durationMs"]["triggerExecution"] / 1000 for batch in batches),
            sum(batch["numInputRows"] for batch in batches),
            sum(batch["sink"]["numOutputRows"] for batch in query.recentProgress),
        )


@contextmanager
def settings_of(spark: SparkSession, variant: str) -> Iterator[None]:
    """Has a session the settings of a variant."""
    with _configured(spark, VARIANTS[variant]), _hadoop(spark, variant == RAW):
        yield


def _has_read(batch: Any) -> bool:
    """Whether there was a file for it, even if none of its rows had to be looked at."""
    return any(source["startOffset"] != source["endOffset"] for source in batch["sources"])


def _pages(spark: SparkSession, directory: Path) -> DataFrame:
    reader = spark.readStream.schema("ts TIMESTAMP_LTZ, key INT, value DOUBLE")
    return reader.option("maxFilesPerTrigger", 1).parquet(str(directory))


def _watermarked(stream: DataFrame) -> DataFrame:
    return stream.withWatermark("ts", "0 seconds")


@contextmanager
def _configured(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    settings = settings | {"spark.sql.streaming.numRecentProgressUpdates": "100000"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


@contextmanager
def _hadoop(spark: SparkSession, as_installed: bool) -> Iterator[None]:
    """Hadoop's own configuration instead of the short one of Millpond's sessions."""
    short = hadoop_options(spark)
    if as_installed:
        set_hadoop_options(spark, default_hadoop_options(spark))
    try:
        yield
    finally:
        if as_installed:
            set_hadoop_options(spark, short)


def filtered(stream: DataFrame) -> DataFrame:
    """The tuples with a large value."""
    return stream.filter(sql.col("value") > 0.9).select("key", "value")


def aggregated(window_seconds: int, hops: int) -> Build:
    """Count and maximum for each key over a hopping window, put out when a window is complete."""

    def build(stream: DataFrame) -> DataFrame:
        length, hop = f"{window_seconds} seconds", f"{1000 * window_seconds // hops} milliseconds"
        groups = _watermarked(stream).groupBy(sql.window("ts", length, hop), "key")
        return groups.agg(sql.count("*").alias("n"), sql.max("value").alias("largest"))

    return build


def joined(window_seconds: int) -> Build:
    """Pairs of equal keys at most a window apart: what the join of two Range windows inserts."""

    def build(left: DataFrame, right: DataFrame) -> DataFrame:
        a, b = _watermarked(left).alias("a"), _watermarked(right).alias("b")
        length = sql.expr(f"INTERVAL {window_seconds} SECONDS")
        after = sql.col("a.ts") >= sql.col("b.ts") - length
        before = sql.col("b.ts") >= sql.col("a.ts") - length
        pairs = a.join(b, (sql.col("a.key") == sql.col("b.key")) & after & before)
        return pairs.select("a.key", sql.col("a.value"), sql.col("b.value").alias("other"))

    return build

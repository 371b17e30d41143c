"""The bursts of `python -m benchmarks.overload` in Structured Streaming, batch by batch.

A batch is all that has come while the one before was under way: the source keeps what waits. It
takes the seconds that the function says for its tuples, and what the batch itself has taken: of
the wall clock, or of the processors if that is less, so that what else the machine does counts
against nobody. Windows are put out once they are complete, by the next batch with tuples: there
always is one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StreamingQuery

from benchmarks.overload_feed import PAGE_SECONDS, SLIDE_TICKS, WINDOW_TICKS, Load
from benchmarks.processor_time import tree_seconds
from benchmarks.streams import scratch_directory
from benchmarks.structured_streaming import TUNED, settings_of
from millpond.settings import Settings
from millpond.spark.session import create_session

WARM_BATCHES = 40
WARM_ROWS = 1_000
_WITHOUT_TUPLES = "spark.sql.streaming.noDataMicroBatches.enabled"


@dataclass
class PeerRun:
    """What a run came to: answers with when they were put out, and memory of the state."""

    answers: list[tuple[float, int, dict[str, float]]] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    seconds: float = 0.0


def peer_run(load: Load, rows_per_second: float) -> PeerRun:
    """Feeds a load at its times, or as soon after them as the batch before is done."""
    spark = create_session(Settings(spark_master="local[2]"))
    try:
        with settings_of(spark, TUNED), scratch_directory() as scratch:
            spark.conf.set(_WITHOUT_TUPLES, "false")
            warm = Path(tempfile.mkdtemp(dir=scratch))
            _fed(spark, warm, _some(load, WARM_BATCHES * WARM_ROWS), 1e6, WARM_ROWS)
            return _fed(spark, Path(tempfile.mkdtemp(dir=scratch)), load, rows_per_second)
    finally:
        spark.stop()


def _some(load: Load, rows: int) -> Load:
    return Load((), load.ticks[:rows], load.groups[:rows], load.values[:rows])


def _fed(
    spark: SparkSession,
    scratch: Path,
    load: Load,
    rows_per_second: float,
    most_rows: int | None = None,
) -> PeerRun:
    """Runs a load through a query of its own; ``most_rows`` of a batch."""
    run, place, came = PeerRun(), 0, list[Any]()
    (pages := scratch / "pages").mkdir()
    with _query(spark, pages, scratch, came) as query:
        while place < len(load.ticks):
            last = int(np.searchsorted(load.ticks, 1000 * run.seconds, side="right"))
            last = min(last, place + most_rows) if most_rows else last
            if last == place:
                run.seconds = max(run.seconds, load.ticks[place] / 1000) + PAGE_SECONDS
                continue
            run.seconds += (last - place) / rows_per_second
            run.seconds += _batch_seconds(query, pages, load, slice(place, last))
            place = last
            run.answers += [(run.seconds, tick, row) for tick, row in map(_answer, came)]
            came.clear()
            run.memory.append((run.seconds, _state_bytes(query)))
    return run


def _batch_seconds(query: StreamingQuery, pages: Path, load: Load, rows: slice) -> float:
    """Has the query take some rows and says how long that was."""
    times = pa.array(1000 * load.ticks[rows], pa.timestamp("us", "UTC"))
    columns = {"ts": times, "key": load.groups[rows], "value": load.values[rows]}
    hidden = pages.parent / "writing"
    pq.write_table(pa.table(columns), hidden)
    began, spent = time.perf_counter(), tree_seconds()
    hidden.replace(pages / f"{rows.start:012}.parquet")
    query.processAllAvailable()
    return min(time.perf_counter() - began, tree_seconds() - spent)


@contextmanager
def _query(
    spark: SparkSession, pages: Path, scratch: Path, came: list[Any]
) -> Iterator[StreamingQuery]:
    """The query of the benchmark over files of a directory; what it puts out is put down."""
    stream = spark.readStream.schema("ts TIMESTAMP_LTZ, key INT, value DOUBLE").parquet(str(pages))
    window = sql.window("ts", f"{WINDOW_TICKS} milliseconds", f"{SLIDE_TICKS} milliseconds")
    kept = stream.withWatermark("ts", "0 seconds").filter(sql.col("value") < 2)
    numbers = sql.count("*").alias("n"), sql.sum("value").alias("s"), sql.avg("value").alias("m")
    answers = kept.groupBy(window, "key").agg(*numbers)
    end = sql.unix_millis(sql.col("window.end")).alias("tick")

    def put_down(batch: DataFrame, _: int) -> None:
        came.extend(batch.select(end, "key", "n", "s", "m").collect())

    writer = answers.writeStream.foreachBatch(put_down).outputMode("append")
    query = writer.option("checkpointLocation", str(scratch / "checkpoint")).start()
    try:
        yield query
    finally:
        query.stop()


def _answer(row: Any) -> tuple[int, dict[str, float]]:
    """When an answer is of, and its numbers, which are their own bounds."""
    numbers = {name: row[name] for name in ("n", "s", "m")}
    bounds = {f"{name}{side}": each for name, each in numbers.items() for side in ("_low", "_high")}
    return row["tick"], {"k": row["key"], **numbers, **bounds}


def _state_bytes(query: StreamingQuery) -> int:
    """What the query's state takes, as it says."""
    last = query.lastProgress or {"stateOperators": ()}
    return sum(each["memoryUsedBytes"] for each in last["stateOperators"])

"""What it saves to leave queues out: a chain of operators over one key, with queues and without.

    python -m benchmarks.virtual_operators [--quick] [--out DIR] [--rows PAGE]

An aggregate over a window, a filter and a projection, a second aggregate by the same key, and the
query's output: Spark jobs and milliseconds a page, medians of warm pages from pushing one to having
its results, in the driver and on the executors.
"""

from __future__ import annotations

import statistics
import time

from pyspark.sql import SparkSession

from benchmarks.reporting import Report, options, progress
from benchmarks.streams import WINDOW_SECONDS, Stream
from millpond import Engine
from millpond.planning.placement import QueuePlacement
from millpond.settings import Settings
from millpond.spark.session import create_session

STREAM = Stream("S", keys=1_000, seed=1)
CHAIN = f"""{STREAM.declaration}
CREATE VIEW counted AS
  SELECT key, count(*) AS n, max(value) AS largest
  FROM S [RANGE {WINDOW_SECONDS} SECONDS] GROUP BY key;
CREATE QUERY q AS
  SELECT key, max(n * 2) AS most, min(largest) AS least FROM counted WHERE n > 1 GROUP BY key;
"""
PLACES = {"driver": 10**12, "executors": 0}


def measured(
    spark: SparkSession, place: str, rows: int, pages: int, warm: int, has_queues: bool
) -> dict[str, float]:
    """Jobs and milliseconds of a page."""
    settings = {"driver_rows": PLACES[place], "place_by": "rows"}
    with Engine(settings, spark, keep_results=False) as engine:
        engine.execute(CHAIN)
        if not has_queues:
            engine.runtime.placement = QueuePlacement().choose(engine.graph, ())
        tracker, spent, jobs = spark.sparkContext.statusTracker(), [], []
        for number in range(warm + pages):
            page, before = STREAM.page(number * rows, rows), tracker.getJobIdsForGroup()
            began = time.perf_counter()
            engine.push("S", page)
            engine.run_until_idle()
            spent.append(1000 * (time.perf_counter() - began))
            jobs.append(len(set(tracker.getJobIdsForGroup()) - set(before)))
        return {
            "jobs": statistics.median(jobs[warm:]),
            "ms": statistics.median(spent[warm:]),
        }


def main() -> None:
    """Measures both placements in both places and prints."""
    chosen = options(__doc__ or "", "rows a page").parse_args()
    report = Report("virtual_operators", chosen.out)
    pages, warm = (9, 6) if chosen.quick else (30, 20)
    sizes = [chosen.rows] if chosen.rows else [1_000, 10_000]
    spark = create_session(Settings(spark_master="local[2]"))
    with progress(2 * len(PLACES) * len(sizes)) as doing:
        for place in PLACES:
            for rows in sizes:
                doing(f"{rows:,} rows, {place}, with queues")
                queued = measured(spark, place, rows, pages, warm, has_queues=True)
                doing(f"{rows:,} rows, {place}, without")
                fused = measured(spark, place, rows, pages, warm, has_queues=False)
                report.ratio(
                    f"chain of one key, {rows:,} rows, {place}: with queues against without",
                    queued["ms"] / fused["ms"],
                    millpond={"with queues": queued, "one virtual operator": fused},
                )
    spark.stop()
    report.close()


if __name__ == "__main__":
    main()

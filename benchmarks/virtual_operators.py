"""What it saves to leave queues out where nobody wants them, with queues and without.

    python -m benchmarks.virtual_operators [--quick] [--out DIR] [--rows PAGE]

The chain: an aggregate over a window, a filter and a projection, a second aggregate by the same
key, and the query's output. The others: an aggregate, and a join, with their output. Spark jobs and
milliseconds a page, medians of warm pages from pushing one to having its results, in the driver and
on the executors; the placement that an engine chooses by itself against queues everywhere.
"""

from __future__ import annotations

import statistics
import time

from pyspark.sql import SparkSession

from benchmarks.reporting import Report, options, progress
from benchmarks.streams import WINDOW_SECONDS, Stream
from millpond import Engine
from millpond.planning.placement import QueuePlacement, edges
from millpond.settings import Settings
from millpond.spark.session import create_session

STREAM = Stream("S", keys=1_000, seed=1)
COUNTED = f"""
  SELECT key, count(*) AS n, max(value) AS largest
  FROM S [RANGE {WINDOW_SECONDS} SECONDS] GROUP BY key;
"""
CASES = {
    "chain of one key": f"""CREATE VIEW counted AS {COUNTED}
CREATE QUERY q AS
  SELECT key, max(n * 2) AS most, min(largest) AS least FROM counted WHERE n > 1 GROUP BY key;
""",
    "aggregate": f"CREATE QUERY q AS {COUNTED}",
    "join": """CREATE QUERY q AS SELECT a.key, a.value, b.value AS other
  FROM S [RANGE 1 SECOND] AS a, S [NOW] AS b WHERE a.key = b.key;
""",
}
PLACES = {"driver": 10**12, "executors": 0}


def measured(
    spark: SparkSession, case: str, place: str, rows: int, counts: tuple[int, int], queued: bool
) -> dict[str, float]:
    """Jobs and milliseconds of a page; counts of warm pages and of those before."""
    pages, warm = counts
    settings = {"driver_rows": PLACES[place], "place_by": "rows"}
    with Engine(settings, spark, keep_results=False) as engine:
        engine.execute(STREAM.declaration + CASES[case])
        if queued:
            everywhere = QueuePlacement().choose(engine.graph, edges(engine.graph))
            engine.runtime.placement = everywhere
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
    counts = (9, 6) if chosen.quick else (30, 20)
    sizes = [chosen.rows] if chosen.rows else [1_000, 10_000]
    runs = [(case, place, rows) for case in CASES for place in PLACES for rows in sizes]
    spark = create_session(Settings(spark_master="local[2]"))
    with progress(2 * len(runs)) as doing:
        for case, place, rows in runs:
            doing(f"{case}, {rows:,} rows, {place}, with queues")
            queued = measured(spark, case, place, rows, counts, queued=True)
            doing(f"{case}, {rows:,} rows, {place}, by default")
            usual = measured(spark, case, place, rows, counts, queued=False)
            report.ratio(
                f"{case}, {rows:,} rows, {place}: with queues against default",
                queued["ms"] / usual["ms"],
                millpond={"with queues": queued, "default": usual},
            )
    spark.stop()
    report.close()


if __name__ == "__main__":
    main()

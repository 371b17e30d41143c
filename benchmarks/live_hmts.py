"""The HMTS paper's comparison on Spark: direct interoperability, graph threads, operator threads
and hybrid threads on the same input, scaled to seconds.

    python -m benchmarks.live_hmts [--quick] [--out DIR] [--rows ROWS]

*One slow operator* (as in Figures 9 and 10): a function that burns CPU in one query, beside
queries that have about as much to do. All that has come waits at the beginning; steps are one task
each, on the executors. *A cheap chain* (Figure 6) and *many cheap queries* (Figure 8) run in the
driver. Seconds until every answer is there, medians.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from benchmarks.reporting import Report, options, progress
from benchmarks.streams import Stream
from millpond import Engine
from millpond.settings import Settings
from millpond.spark.session import create_session

MODES = ("di", "gts", "ots", "hmts")
STREAM = Stream("S", keys=500, seed=1)
BURNS = 60
"""How often the slow function goes over its rows."""


def burn(values: pa.Array) -> pa.Array:
    """Takes some microseconds a row, and never sleeps."""
    numbers = values.to_numpy(zero_copy_only=False)
    for _ in range(BURNS):
        numbers = np.sin(numbers) + 1.0
    return pa.array(numbers)


SLOW = """
CREATE QUERY slow AS SELECT key, burn(value) AS v FROM S WHERE value > 0.1;
CREATE QUERY counted AS SELECT key, count(*) AS n FROM S [RANGE 1 SECOND] GROUP BY key;
CREATE QUERY largest AS SELECT key, max(value) AS m FROM S [ROWS 1000] GROUP BY key;
"""
CHAIN = """
CREATE QUERY chain AS SELECT x + 1 AS y FROM
  (SELECT key * 2 AS x, value FROM (SELECT key, value FROM S WHERE value > 0.2) WHERE value < 0.9)
  WHERE x % 3 = 0;
"""


def many(queries: int) -> str:
    """Cheap queries that have nothing in common but their stream."""
    return "".join(
        f"CREATE QUERY q{n} AS SELECT key FROM S WHERE value * {n + 2} > {n + 1};"
        for n in range(queries)
    )


class Bench:
    """All measurements of this benchmark."""

    def __init__(self, spark: SparkSession, report: Report, times: int) -> None:
        self._spark, self._report, self._times = spark, report, times
        self.found: dict[str, dict[str, float]] = {}

    def case(self, name: str, script: str, rows: int, page: int, **settings: Any) -> None:
        """The median seconds of each mode."""
        spent: dict[str, list[float]] = {mode: [] for mode in MODES}
        for number in range(self._times + 1):
            for mode in MODES:
                seconds = self._seconds(script, rows, page, mode, settings)
                spent[mode] += [seconds] if number else []  # the first round warms everything up
        self.found[name] = {mode: statistics.median(each) for mode, each in spent.items()}

    def _seconds(
        self, script: str, rows: int, page: int, mode: str, settings: dict[str, Any]
    ) -> float:
        chosen = {"mode": mode, "strategy": "fifo", "place_by": "rows", "step_rows": page}
        with Engine(chosen | settings, self._spark, keep_results=False) as engine:
            engine.register_function("burn", burn, ["DOUBLE"], "DOUBLE")
            engine.execute(STREAM.declaration + script)
            began = time.perf_counter()
            for first in range(0, rows, page):
                engine.push("S", STREAM.page(first, page))
            engine.finish()
            return time.perf_counter() - began

    def ratio(self, case: str, slower: str, quicker: str, goal: float | None) -> None:
        """One line: how many times sooner one mode is done than another."""
        found = self.found[case]
        self._report.ratio(
            f"{case}: {slower} against {quicker}",
            found[slower] / found[quicker],
            goal,
            millpond={f"{mode}_seconds": seconds for mode, seconds in found.items()},
        )

    def draw(self, figure: Figure) -> None:
        """Seconds of each mode, a group a case."""
        axes = figure.subplots(1, len(self.found))
        for ax, (case, found) in zip(np.atleast_1d(axes), self.found.items(), strict=True):
            ax.bar(list(found), list(found.values()))
            ax.set(title=case, ylabel="seconds")


def main() -> None:
    """Measures all cases and prints."""
    chosen = options(__doc__ or "", "rows of the case with one slow operator").parse_args()
    report = Report("live_hmts", chosen.out)
    rows = chosen.rows or (160_000 if chosen.quick else 640_000)
    spark = create_session(Settings(spark_master="local[2]"))
    bench = Bench(spark, report, 1 if chosen.quick else 3)
    cheap = {"driver_rows": 10**12, "linear": "apart"}
    with progress(3) as doing:
        doing("one slow operator")
        bench.case("one slow operator", SLOW, rows, 20_000, driver_rows=0, linear="functions")
        bench.ratio("one slow operator", "gts", "hmts", 1.5)
        doing("a cheap chain")
        bench.case("a cheap chain", CHAIN, rows, 1_000, **cheap)
        bench.ratio("a cheap chain", "gts", "di", 1.0)
        bench.ratio("a cheap chain", "ots", "di", 1.0)
        doing("many cheap queries")
        bench.case("many cheap queries", many(30), rows // 4, 2_000, **cheap)
        bench.ratio("many cheap queries", "ots", "gts", 1.0)
        bench.ratio("many cheap queries", "ots", "hmts", 1.0)
    spark.stop()
    report.draw("modes", bench.draw)
    report.close()


if __name__ == "__main__":
    main()

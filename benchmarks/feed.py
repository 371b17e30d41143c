"""Engines with one operator each, fed page by page, and how their pages are timed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.streams import TUPLES_PER_SECOND, WINDOW_SECONDS, Stream
from millpond import Engine
from millpond.settings import Settings

_RANGE = f"RANGE {WINDOW_SECONDS} SECONDS"


@dataclass(frozen=True)
class Case:
    """An operator, as a query that consists of little else."""

    name: str
    cql: str
    inputs: tuple[str, ...] = ("S",)
    keys: int = 1_000

    @property
    def streams(self) -> list[Stream]:
        """The streams it reads; several share the tuples of a page."""
        each = TUPLES_PER_SECOND // len(self.inputs)
        return [Stream(name, self.keys, seed, each) for seed, name in enumerate(self.inputs)]


AGGREGATE = Case(
    "grouped aggregate",
    f"SELECT key, count(*) AS n, max(value) AS largest FROM S [{_RANGE}] GROUP BY key",
)
CASES = (
    Case("filter", "SELECT key, value FROM S WHERE value > 0.9"),
    Case("project", "SELECT key + 1 AS next, value * 2 AS twice FROM S"),
    Case("range window", f"SELECT count(*) AS n FROM S [{_RANGE}]"),
    Case("rows window", "SELECT DSTREAM key, value FROM S [ROWS 1000]"),
    Case(
        "window join",
        f"SELECT L.key, L.value, R.value AS other FROM L [{_RANGE}], R [{_RANGE}] "
        "WHERE L.key = R.key",
        ("L", "R"),
        keys=TUPLES_PER_SECOND * WINDOW_SECONDS // 2,
    ),
    AGGREGATE,
)


class Feed:
    """An engine with one query and full windows, fed page by page."""

    def __init__(self, case: Case, page_rows: int, settings: Settings, spark: SparkSession) -> None:
        self.engine = Engine(settings, spark, keep_results=False)
        each = page_rows // len(case.streams)
        fill = TUPLES_PER_SECOND * WINDOW_SECONDS // len(case.streams)
        for stream in case.streams:
            self.engine.execute(stream.declaration)
        self.engine.execute(f"CREATE QUERY q AS {case.cql};")
        for stream in case.streams:
            self.engine.push(stream.name, stream.page(0, fill))
        self.engine.run_until_idle()
        self._pages = {stream.name: stream.pages(each, fill) for stream in case.streams}

    def page(self) -> float:
        """The seconds of one page, from pushing it to having its results."""
        ready = {name: next(pages) for name, pages in self._pages.items()}
        return seconds_of(lambda: self._run(ready))

    def _run(self, ready: dict[str, pa.Table]) -> None:
        for name, page in ready.items():
            self.engine.push(name, page)
        self.engine.run_until_idle()

    @property
    def steps(self) -> int:
        """The operators' steps so far."""
        return sum(each.tally.steps for each in self.engine.runtime.statistics.values())


def seconds_of(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def median_milliseconds(work: Callable[[], float], times: int, warm: int) -> float:
    """The median of warm repetitions."""
    for _ in range(warm):
        work()
    return 1000 * statistics.median(work() for _ in range(times))


def fitted(sizes: list[int], milliseconds: list[float]) -> tuple[float, float]:
    """The a and b of a + b·n by least squares of relative errors, neither negative."""
    n, spent = np.array(sizes, dtype=float), np.array(milliseconds)
    design = np.stack([1 / spent, n / spent], axis=1)
    (fixed, slope), *_ = np.linalg.lstsq(design, np.ones(len(n)), rcond=None)
    if slope < 0:
        return float(len(n) / np.sum(1 / spent)), 0.0
    return max(float(fixed), 0.0), float(slope)

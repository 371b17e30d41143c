"""The HMTS paper's comparison on Spark: direct interoperability, graph threads, operator threads
and hybrid threads on the same input, scaled to seconds.

*One slow operator* (as in Figures 9 and 10): a function that burns CPU in one query, beside
queries that have about as much to do. All that has come waits at the beginning; steps are one task
each, on the executors. Beside them stands GTS with steps of two tasks: Spark's own parallelism,
which needs no threads of ours. *A cheap chain* (Figure 6) and *many cheap queries* (Figure 8) run
in the driver.
"""

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.facade.engine import Engine

MODES = ("di", "gts", "ots", "hmts")
TWO_TASKS = "gts, two tasks a step"
"""The rival of all modes, where there are tasks."""
KEYS, TUPLES_PER_SECOND = 500, 10_000
STREAM = "CREATE STREAM S (ts TIMESTAMP, key INT, value DOUBLE) TIMESTAMP BY ts;"
BURNS = 1000
"""How often the slow function goes over its rows: often enough to be slow beside a step."""


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


def page(first: int, count: int) -> pa.Table:
    """Tuples number ``first`` to ``first + count - 1``; time moves evenly."""
    numbers = np.arange(first, first + count)
    values = np.random.default_rng(first).random(count)
    return pa.table(
        {
            "ts": pa.array(numbers * 1_000_000 // TUPLES_PER_SECOND, pa.timestamp("us")),
            "key": pa.array((values * KEYS).astype(np.int32)[::-1]),
            "value": pa.array(values),
        }
    )


@dataclass(frozen=True)
class Case:
    """Queries, with how many rows and in which settings they are run."""

    name: str
    script: str
    rows: int
    page_rows: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def modes(self) -> tuple[str, ...]:
        """Those that are compared."""
        return (*MODES, TWO_TASKS) if self.settings.get("driver_rows") == 0 else MODES

    def seconds(self, spark: Any, mode: str) -> float:
        """Until every answer is there."""
        chosen = {"mode": mode, "strategy": "fifo", "place_by": "rows", "step_rows": self.page_rows}
        chosen |= {"mode": "gts", "tasks": 2} if mode == TWO_TASKS else {"tasks": 1}
        with Engine(chosen | dict(self.settings), spark, keep_results=False) as engine:
            engine.register_function("burn", burn, ["DOUBLE"], "DOUBLE")
            engine.execute(STREAM + self.script)
            began = time.perf_counter()
            for first in range(0, self.rows, self.page_rows):
                engine.push("S", page(first, self.page_rows))
            engine.finish()
            return time.perf_counter() - began


def cases(rows: int) -> list[Case]:
    """The three of them."""
    cheap = {"driver_rows": 10**12, "linear": "apart", "sharing": "off"}
    return [
        Case("one slow operator", SLOW, rows, 20_000, {"driver_rows": 0}),
        Case("a cheap chain", CHAIN, rows, 1_000, cheap),
        Case("many cheap queries", many(30), rows // 4, 2_000, cheap),
    ]


def medians(case: Case, spark: Any, times: int) -> dict[str, float]:
    """The median seconds of each mode; a first round warms everything up."""
    spent: dict[str, list[float]] = {mode: [] for mode in case.modes}
    for number in range(times + 1):
        for mode in case.modes:
            seconds = case.seconds(spark, mode)
            spent[mode] += [seconds] if number else []
    return {mode: statistics.median(each) for mode, each in spent.items()}


@dataclass(frozen=True)
class Goal:
    """In a case one mode is to be done at least so many times sooner than another."""

    case: str
    slower: str
    quicker: str
    times: float
    rival: str = ""
    """What a machine can do at best is not known before: ``times`` is the share then of how many
    times sooner this one is."""

    def at_least(self, found: Mapping[str, Mapping[str, float]]) -> float:
        """How many times sooner it has to be."""
        most = self._ratio(found, self.rival) if self.rival else 1.0
        return self.times * most

    def ratio(self, found: Mapping[str, Mapping[str, float]]) -> float:
        """How many times sooner it is."""
        return self._ratio(found, self.quicker)

    def _ratio(self, found: Mapping[str, Mapping[str, float]], quicker: str) -> float:
        return found[self.case][self.slower] / found[self.case][quicker]


GOALS = (
    Goal("one slow operator", "gts", "hmts", 0.9, rival=TWO_TASKS),
    Goal("a cheap chain", "gts", "di", 1.0),
    Goal("a cheap chain", "ots", "di", 1.0),
    Goal("many cheap queries", "ots", "di", 1.0),
    Goal("many cheap queries", "ots", "hmts", 1.0),
)
"""The paper's Figure 8 compares OTS with DI; of GTS it says that it is inferior to both. How much
two threads can do more than one depends on the machine: Spark's own two tasks tell."""

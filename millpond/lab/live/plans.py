"""Plans to compare strategies on, live: a chain, a shared prefix, a join, and dear functions.

Costs are seconds of the processor and the same whoever serves a row. Bursts mean almost twice as
much work as there is time for, and pauses as much time as that takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.facade.engine import Engine
from millpond.lab.live.processor_clock import TICKS_A_SECOND, Arrival

COLUMNS = ("k", "v", "a", "b", "c", "d")
KEYS = 100
BURST_SECONDS, PAUSE_SECONDS, PAGE_SECONDS = 0.5, 1.0, 0.01
BURST_LOAD = 1.8
"""Seconds of work that come in a second of a burst."""
BURN_NUMBERS = np.linspace(0.0, 1.0, 1_024)


def burning(row_seconds: float) -> Callable[[pa.Array], pa.Array]:
    """A function that is on the processor for so long with each value."""

    def score(values: pa.Array) -> pa.Array:
        until = time.thread_time() + row_seconds * len(values)
        while time.thread_time() < until:
            np.sin(BURN_NUMBERS)
        return pa.array(np.sin(np.asarray(values)))

    return score


@dataclass(frozen=True)
class LivePlan:
    """Queries over streams, with what a row of each stream costs, about."""

    name: str
    queries: str
    row_seconds: Mapping[str, float]
    functions: Mapping[str, float]

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads."""
        return tuple(self.row_seconds)

    def start(self, engine: Engine, has_queues: bool = True) -> None:
        """Declares it, with queues behind filters if a mode does not put them somewhere."""
        for name, seconds in self.functions.items():
            engine.register_function(name, burning(seconds), ["BIGINT"], "DOUBLE")
        columns = ", ".join(f"{column} BIGINT" for column in (*COLUMNS, "ts"))
        engine.execute(
            "".join(
                f"CREATE STREAM {stream} ({columns}) TIMESTAMP BY ts;" for stream in self.streams
            )
        )
        engine.execute(self.queries)
        for name, operator in engine.graph.operators.items():
            if has_queues and operator.label().startswith("Filter"):
                engine.execute(f"ALTER PLAN QUEUE AFTER {name}")

    def arrivals(self, bursts: int, seed: int, first_seconds: float = 0.0) -> list[Arrival]:
        """Bursts and pauses, of all streams at once."""
        generator = np.random.default_rng(seed)
        pages = sorted(self._pages(bursts, generator), key=lambda page: page[0])
        return [
            Arrival(
                first_seconds + seconds,
                stream,
                _table(first_seconds + seconds, rows, generator),
            )
            for seconds, stream, rows in pages
        ]

    def _pages(
        self, bursts: int, generator: np.random.Generator
    ) -> Iterator[tuple[float, str, int]]:
        for burst in range(bursts):
            began = burst * (BURST_SECONDS + PAUSE_SECONDS)
            for place in range(round(BURST_SECONDS / PAGE_SECONDS)):
                for stream in self.streams:
                    share = BURST_LOAD / len(self.streams) / self.row_seconds[stream]
                    rows = int(generator.poisson(share * PAGE_SECONDS))
                    if rows:
                        yield began + place * PAGE_SECONDS, stream, rows


def _table(seconds: float, rows: int, generator: np.random.Generator) -> pa.Table:
    numbers = {column: generator.integers(0, KEYS, rows) for column in COLUMNS}
    moment = int(seconds * TICKS_A_SECOND)
    return pa.table(numbers | {"ts": np.full(rows, moment)})


CHAIN = LivePlan(
    "chains",
    """
    CREATE QUERY light AS SELECT light(v) AS x FROM L WHERE k < 15;
    CREATE QUERY heavy AS SELECT heavy(v) AS x FROM H WHERE k < 15;
    """,
    {"L": 15e-6 * 0.15 + 2e-6, "H": 60e-6 * 0.15 + 2e-6},
    {"light": 15e-6, "heavy": 60e-6},
)

SHARED = LivePlan(
    "a shared prefix and a dear function",
    """
    CREATE VIEW Kept AS SELECT k, v, a, ts FROM S WHERE light(v) > -2 AND k < 50;
    CREATE QUERY dear AS SELECT dear(v) AS x FROM Kept WHERE a < 10;
    CREATE QUERY cheap AS SELECT heavy(v) AS x FROM Kept WHERE a >= 90;
    """,
    {"S": 15e-6 + 0.5 * (0.1 * 200e-6 + 0.1 * 60e-6) + 6e-6},
    {"light": 15e-6, "heavy": 60e-6, "dear": 200e-6},
)

JOIN = LivePlan(
    "a shared prefix, a join and a dear function",
    """
    CREATE VIEW Kept AS SELECT k, v, a, ts FROM S WHERE light(v) > -2 AND k < 50;
    CREATE QUERY dear AS SELECT dear(v) AS x FROM Kept WHERE a < 10;
    CREATE QUERY joined AS SELECT ISTREAM K.v, T.v AS w
      FROM Kept K [RANGE 20000], T [RANGE 20000] WHERE K.k = T.k;
    """,
    {"S": 15e-6 + 0.5 * (0.1 * 200e-6) + 12e-6, "T": 12e-6},
    {"light": 15e-6, "dear": 200e-6},
)

PLANS = (CHAIN, SHARED, JOIN)

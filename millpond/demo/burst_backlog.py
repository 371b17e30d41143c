"""One burst under one strategy, in a process of its own: what waits, ten times a second.

`python -m millpond.demo.burst_backlog STRATEGY SECONDS` prints a JSON line a sample. A filter keeps
one row in ten, with a queue behind it, and a function burns CPU for what is left; for some seconds
more comes than can be worked on. Chain has the filter run first, as that makes the backlog small.
"""

import json
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from millpond.facade.engine import Engine

ROW_SECONDS = 150e-6
"""So long the function takes for a row."""

CALM_SECONDS, BURST_SECONDS, END_SECONDS = 1.5, 4.0, 11.0
CALM_ROWS, BURST_ROWS = 2_000.0, 150_000.0
"""Rows a second, usually and in the burst: that is more than twice what can be worked on."""

SAMPLE_SECONDS = 0.1
WARM_ROWS = (100, 300, 500, 1_000, 2_000, 1_500, 700, 400)

SCRIPT = """
CREATE STREAM Rows_in (k BIGINT, a BIGINT, b BIGINT, c BIGINT, d BIGINT);
CREATE QUERY scores AS SELECT burn(a) AS score FROM Rows_in WHERE k < 10;
"""
"""The filter keeps ten rows of a hundred."""


def burn(values: pa.Array) -> pa.Array:
    """Is busy for as long as the rows take."""
    until, numbers = time.perf_counter() + ROW_SECONDS * len(values), np.linspace(0.0, 1.0, 4_096)
    while time.perf_counter() < until:
        np.sin(numbers)
    return pa.array(np.sin(np.asarray(values)))


def rate_at(seconds: float) -> float:
    """How many rows come in a second.

    >>> rate_at(0.5), rate_at(2.0), rate_at(9.0)
    (2000.0, 150000.0, 0.0)
    """
    if seconds < CALM_SECONDS:
        return CALM_ROWS
    return BURST_ROWS if seconds < CALM_SECONDS + BURST_SECONDS else 0.0


def observe(strategy: str, seconds: float, tell: Callable[[float, int], None]) -> None:
    """Has a strategy work on the burst for so long, and tells what waits."""
    settings = {"strategy": strategy, "driver_rows": 10**9, "place_by": "rows", "processors": 1}
    with Engine(settings, keep_results=False) as engine:
        engine.register_function("burn", burn, ["BIGINT"], "DOUBLE")
        engine.execute(SCRIPT)
        for name, operator in list(engine.graph.operators.items()):
            if operator.label().startswith("Filter"):
                engine.execute(f"ALTER PLAN QUEUE AFTER {name}")
        generator = np.random.default_rng(5)
        for rows in WARM_ROWS:
            engine.push("Rows_in", _rows(generator, rows))
            engine.run_until_idle()
        engine.start()
        _feed(engine, generator, seconds, tell)
        engine.stop(drain=False)


def _feed(
    engine: Engine,
    generator: np.random.Generator,
    seconds: float,
    tell: Callable[[float, int], None],
) -> None:
    began, last, owed = time.monotonic(), 0.0, 0.0
    pause = threading.Event()
    while last < seconds:
        pause.wait(SAMPLE_SECONDS)
        now = time.monotonic() - began
        owed += rate_at(now) * (now - last)
        last = now
        if owed >= 1:
            engine.push("Rows_in", _rows(generator, int(owed)))
            owed -= int(owed)
        tell(now, engine.runtime.backlog.bytes)


def _rows(generator: np.random.Generator, rows: int) -> pa.Table:
    return pa.table({name: generator.integers(0, 100, rows) for name in "kabcd"})


def main() -> None:
    """Tells of one strategy on standard output."""

    def tell(seconds: float, backlog_bytes: int) -> None:
        sys.stdout.write(json.dumps({"seconds": seconds, "bytes": backlog_bytes}) + "\n")
        sys.stdout.flush()

    observe(sys.argv[1], float(sys.argv[2]), tell)


if __name__ == "__main__":
    main()

"""Functions OVER rows beside DuckDB, which is asked anew at every instant."""

from __future__ import annotations

import random
from collections import Counter
from itertools import groupby

import duckdb
import pyarrow as pa
import pytest

from millpond import Engine

LENGTH = 6
ORDERS = ("ORDER BY t, n", "PARTITION BY k ORDER BY v DESC NULLS FIRST, n", "PARTITION BY k")
FRAMES = (
    "",
    "ROWS 2 PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
)
BY_VALUE = (
    "PARTITION BY k ORDER BY t RANGE 2 PRECEDING",
    "ORDER BY t DESC RANGE BETWEEN 1 PRECEDING AND 3 FOLLOWING",
    "ORDER BY v NULLS LAST RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
)
OVER = (
    *(
        f"{f} OVER ({o} {frame})"
        for f in ("sum(v)", "max(v)")
        for o in ORDERS[:2]
        for frame in FRAMES
    ),
    *(f"count(v) OVER ({over})" for over in (*ORDERS, *BY_VALUE)),
    *(f"sum(v) FILTER (WHERE v > 2) OVER ({over})" for over in BY_VALUE),
    f"avg(v) OVER ({ORDERS[0]})",
    f"first_value(v) OVER ({ORDERS[1]} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    f"last_value(v) OVER ({ORDERS[0]} ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
    f"lag(v, 2) OVER ({ORDERS[1]})",
    f"lead(v) OVER ({ORDERS[0]})",
    f"ntile(3) OVER ({ORDERS[0]})",
)


def rows_of(seed):
    rng = random.Random(seed)
    times = sorted(rng.randint(0, 24) for _ in range(40))
    return [(t, rng.randint(1, 2), rng.choice([None, *range(6)]), n) for n, t in enumerate(times)]


def answers(rows):
    """The changes that each query puts out."""
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, k INT, v INT, n INT) TIMESTAMP BY t")
        for number, over in enumerate(OVER):
            engine.execute(
                f"CREATE QUERY q{number} AS SELECT n, {over} AS x FROM S [RANGE {LENGTH}]"
            )
        for _, some in groupby(rows, key=lambda row: row[0] // 9):
            engine.push("S", list(some))
            engine.run_until_idle()
        engine.finish()
        return [engine.results(f"q{number}").to_pylist() for number in range(len(OVER))]


def contents(changes, instants):
    """What each instant has, of the changes up to it."""
    content, pending = Counter(), list(changes)
    for instant in instants:
        while pending and pending[0]["ts"] <= instant:
            change = pending.pop(0)
            content[change["n"], change["x"]] += change["weight"]
        yield +content


@pytest.mark.slow
def test_every_instant_is_as_duckdb_has_it():
    rows = rows_of(3)
    found = answers(rows)
    instants = range(26 + LENGTH)
    ours = [list(contents(changes, instants)) for changes in found]
    connection = duckdb.connect()
    columns = dict(zip("tkvn", zip(*rows, strict=True), strict=True))
    connection.register("S", pa.table({name: list(each) for name, each in columns.items()}))
    for instant in instants:
        alive = f"(SELECT * FROM S WHERE t BETWEEN {instant - LENGTH} AND {instant})"
        wanted = connection.sql(f"SELECT n, {', '.join(OVER)} FROM {alive}").fetchall()
        for number, over in enumerate(OVER, 1):
            expected = Counter((row[0], row[number]) for row in wanted)
            assert ours[number - 1][instant] == expected, (instant, over)

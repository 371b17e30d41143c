"""SESSION windows against another way to find sessions: intervals that merge as tuples arrive."""

from __future__ import annotations

import random

import pytest

from millpond import Engine
from tests.kernels.test_sessions import sessions

GAP, DELAY = 5, 12
QUERIES = {
    "ended": "SELECT k, window_start, window_end, count(*) AS n, sum(v) AS s"
    " FROM S [SESSION 5 PARTITION BY k] GROUP BY k, window_start, window_end EMIT FINAL",
    "listed": "SELECT * FROM TABLE(SESSION(TABLE S PARTITION BY k, DESCRIPTOR(t), INTERVAL '5'"
    " MICROSECONDS)) EMIT FINAL",
    "running": "SELECT k, window_start, window_end, count(*) AS n, sum(v) AS s"
    " FROM S [PARTITION BY k SESSION 5] GROUP BY k, window_start, window_end",
    "rows": "RELATION SELECT * FROM S [SESSION 5 PARTITION BY k]",
}


def arrivals(seed: int) -> list[tuple[int, int, int]]:
    """Tuples that come out of order, none later than the stream allows."""
    rng = random.Random(seed)
    rows = [(rng.randint(0, 150), rng.randint(1, 3), rng.randint(0, 9)) for _ in range(80)]
    return sorted(rows, key=lambda row: row[0] + rng.randint(0, DELAY))


def answers(rows: list[tuple[int, int, int]]) -> dict[str, list[dict[str, int]]]:
    with Engine({"validate": "on"}) as engine:
        engine.execute(f"CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t DELAY {DELAY}")
        for name, text in QUERIES.items():
            engine.execute(f"CREATE QUERY {name} AS {text}")
        for first in range(0, len(rows), 7):
            engine.push("S", rows[first : first + 7])
            engine.run_until_idle()
        engine.finish()
        return {name: engine.results(name).to_pylist() for name in QUERIES}


@pytest.mark.parametrize("seed", range(6))
def test_tuples_that_come_late_join_sessions_as_intervals_merge(seed: int) -> None:
    rows = arrivals(seed)
    found = answers(rows)
    expected = sessions([(t, (k, v)) for t, k, v in rows], GAP, (0,))
    assert len(expected) > 20
    told = [
        (inside[0][1][0], begin, end, len(inside), sum(row[1] for _, row in inside))
        for begin, end, inside in expected
    ]
    columns = ("k", "window_start", "window_end", "n", "s")
    ended = [(row["ts"], *(row[name] for name in columns)) for row in found["ended"]]
    assert sorted(ended) == sorted((row[2], *row) for row in told)
    listed = sorted(
        (row["t"], row["k"], row["v"], row["window_start"], row["window_end"])
        for row in found["listed"]
        for _ in range(row["weight"])
    )
    assert listed == sorted(
        (t, k, v, begin, end) for begin, end, inside in expected for t, (k, v) in inside
    )


def test_what_runs_says_in_the_end_of_a_session_what_is_final() -> None:
    found = answers(arrivals(7))
    last = {
        (row["k"], row["window_start"]): (row["window_end"], row["n"], row["s"])
        for row in found["running"]
        if row["weight"] > 0
    }
    final = {
        (row["k"], row["window_start"]): (row["window_end"], row["n"], row["s"])
        for row in found["ended"]
    }
    assert last == final
    assert sum(row["weight"] for row in found["running"]) == 0
    assert sum(row["weight"] for row in found["rows"]) == 0

"""Latencies and statistics of steps on the executors, each in a job of its own or riding along."""

from __future__ import annotations

import time

import pytest

from millpond import Engine
from millpond.planning.placement import QueuePlacement

SCRIPT = """
CREATE STREAM S (t BIGINT, k INT) TIMESTAMP BY t;
CREATE VIEW Counts AS SELECT k, count(*) AS n FROM S [RANGE 100] GROUP BY k;
CREATE QUERY q AS SELECT k, max(n) AS m FROM Counts GROUP BY k;
"""


@pytest.mark.parametrize("is_fused", [False, True])
def test_results_of_the_executors_have_the_arrivals_of_their_tuples(spark, is_fused):
    with Engine({"driver_rows": 0}, spark) as engine:
        engine.execute(SCRIPT)
        if is_fused:
            engine.runtime.placement = QueuePlacement().choose(engine.graph, ())
        before = time.monotonic()
        for page in range(2):
            engine.push("S", [(page, k % 3) for k in range(30)])
        engine.advance("S", 1)
        engine.run_until_idle()
        seconds = time.monotonic() - before
        known = engine.latency("q")
        assert known.results == engine.result_count("q") == 9
        assert known.without_arrival == 0
        assert 0 < known.mean_seconds <= known.largest_seconds <= seconds
        measured = engine.statistics()["operators"]
        assert [round(each["inputs"][0]["selectivity"], 6) for each in measured][:1] == [0.1]
        assert engine.runtime.tally.executor_steps == engine.runtime.tally.steps > 0

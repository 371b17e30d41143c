"""EXPLAIN ANALYZE tells what was measured, and statistics are plain data that predict."""

from __future__ import annotations

import json
import re

import pytest

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.simulator.prediction import Prediction, predicted

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE VIEW Counts AS SELECT a, count(*) AS n FROM S [RANGE 2] GROUP BY a;
CREATE QUERY often AS SELECT a FROM Counts WHERE n > 1;
CREATE QUERY idle INACTIVE AS SELECT a FROM S;
"""


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute(SCRIPT)
        yield engine


def fed(engine):
    for page in range(4):
        engine.push("S", [(page, a % 20) for a in range(100)])
        engine.run_until_idle()
    engine.finish()


def test_explain_analyze_tells_operators_units_queues_and_the_chart(engine):
    fed(engine)
    (plan,) = engine.execute("EXPLAIN ANALYZE often")
    text = str(plan)
    assert plan.stage == "analyze"
    assert re.search(r"op1: Aggregate count\(\*\) BY a\n +[4-8]\d\d rows in, ", text)
    assert re.search(
        r"units and the queues before them\n  op1 \+ op2\n    stream:s: 0 rows wait", text
    )
    chart = text[text.index("progress chart of a tuple of stream:s, through op1, op2") :]
    points = re.findall(r"([\d.]+) (µs|ms|s) +([\d.]+) bytes", chart)
    assert len(points) == 3
    assert float(points[-1][2]) == 0.0
    assert "lower envelope:" in chart
    assert str(engine.explain("often", "analyze")).startswith("query often: latency mean ")


def test_what_does_not_run_was_not_measured(engine):
    for statement in ("EXPLAIN ANALYZE idle", "EXPLAIN ANALYZE SELECT a FROM S"):
        with pytest.raises(CqlError, match="does not run, so nothing was measured of it"):
            engine.execute(statement)
    with pytest.raises(StateError, match="nothing has run, so nothing was measured"):
        engine.statistics()


def test_many_ways_to_the_output_are_cut_short():
    views = [
        "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;",
        "CREATE VIEW V0 AS SELECT a FROM S [RANGE 1];",
    ]
    for i in range(1, 12):
        join = f"SELECT x.a FROM V{i - 1} x, V{i - 1} y WHERE x.a = y.a"
        views.append(f"CREATE VIEW V{i} AS {join};")
    with Engine() as engine:
        engine.execute("".join(views) + "CREATE QUERY q AS SELECT a FROM V11;")
        engine.push("S", [(1, 1)])
        engine.finish()
        assert str(engine.explain("q", "analyze")).count("progress chart") <= 8


def test_statistics_are_plain_data_from_which_strategies_are_predicted(engine):
    fed(engine)
    measured = json.loads(json.dumps(engine.statistics()))
    assert sum(measured["streams"]["stream:s"]["arrivals"]) == 400
    assert measured["operators"][0]["name"].startswith("Aggregate")
    assert measured["latency"]["often"]["results"] > 0
    assert measured["backlog"]["peak_bytes"] > 0
    found = predicted(measured, ["chain", "fifo"], budget_bytes=1e9)
    assert all(isinstance(each, Prediction) and each.mean_latency_seconds > 0 for each in found)

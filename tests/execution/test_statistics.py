"""What an engine measures of its operators, and what strategies see of that."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.execution.statistics import Statistics
from millpond.execution.steps import Outcome

QUERIES = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE STREAM T (t BIGINT, a INT) TIMESTAMP BY t;
CREATE QUERY big AS SELECT a FROM S WHERE a >= 75;
CREATE QUERY counts AS
  SELECT S.a, count(*) AS n FROM S [RANGE 10], T [RANGE 10] WHERE S.a = T.a GROUP BY S.a;
"""


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute(QUERIES)
        yield engine


def fed(engine):
    for page in range(3):
        engine.push("S", [(page, a) for a in range(100)])
        engine.push("T", [(page, a) for a in range(10)])
        engine.run_until_idle()


def test_show_statistics_tells_what_operators_do(engine):
    fed(engine)
    engine.finish()
    (table,) = engine.execute("SHOW STATISTICS")
    rows = {row["does"]: row for row in table.to_pylist()}
    big = rows["Output big (arrivals)"]
    assert big["selectivity"] == 0.25
    assert big["bytes in"] > 4 * 300
    assert big["bytes out"] >= 4 * 75
    assert big["rows in/s"] == pytest.approx(4 * big["rows out/s"], rel=0.01)
    assert big["arriving rows/s"] > 0
    assert big["waiting rows"] == 0
    assert 0 < big["load"] <= 1
    assert big["driver cost"].endswith("µs a row")


def test_a_tuple_costs_its_row_and_its_end(engine):
    fed(engine)
    engine.finish()
    (joined,) = [
        measured
        for identity, measured in engine.runtime.statistics.items()
        if engine.graph.operators[identity].label().startswith("Aggregate")
    ]
    tally = joined.tally
    assert tally.rows_taken < tally.rows_in <= 2 * tally.rows_taken
    ratio = tally.rows_in / tally.rows_taken
    assert joined.selectivity == pytest.approx(joined.row_selectivity * ratio)


def test_strategies_see_the_rates_of_their_inputs(engine):
    fed(engine)
    plan = engine.runtime.plan()
    rates = {
        each.stream: each.tuples_per_second
        for operator in plan.operators
        for each in operator.inputs
        if each.stream is not None
    }
    assert rates["stream:s"] == pytest.approx(10 * rates["stream:t"], rel=0.2)


def test_what_waits_is_seen_before_it_is_worked_off(engine):
    engine.push("S", [(1, a) for a in range(1_000)])
    engine.push("T", [(1, 1)])
    engine.finish()
    assert engine.runtime.backlog.peak_bytes >= 1_000 * 4
    assert engine.runtime.backlog.bytes == 0


def test_what_a_row_makes_is_known_after_the_first_step():
    statistics = Statistics()
    assert statistics.made_bytes == 0
    for rows, made in ((100, 50), (300, 150)):
        statistics.record(rows, Outcome(None, rows=made, bytes=40 * made))
    assert statistics.made_bytes == pytest.approx(0.5 * 40)

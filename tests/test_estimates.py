"""EXPLAIN PHYSICAL before registering: about how much a query would cost."""

from __future__ import annotations

import re

import pytest

from millpond import Engine

STREAM = "CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;"
COUNT = "SELECT k, count(*) AS n FROM S [RANGE 2] GROUP BY k"


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute(STREAM)
        yield engine


def pages(engine, count, rows=500):
    for ts in range(count):
        engine.push("S", [(ts, i % 5, i) for i in range(rows)])
        engine.run_until_idle()


def told(engine, query):
    """The line about the cost, if there is one, and its milliseconds and tuples."""
    (plan,) = engine.execute(f"EXPLAIN PHYSICAL CREATE QUERY z AS {query}")
    lines = [each for each in plan.text.splitlines() if each.startswith("estimated cost")]
    if not lines:
        return None, 0.0, 0
    found = re.match(r"estimated cost: ([\d.]+) (µs|ms) more for a step of ([\d,]+)", lines[0])
    if found is None:
        return lines[0], 0.0, 0
    scale = 1.0 if found[2] == "ms" else 1e-3
    return lines[0], float(found[1]) * scale, int(found[3].replace(",", ""))


def test_nothing_is_told_before_something_was_measured(engine):
    engine.execute(f"CREATE QUERY counts AS {COUNT}")
    assert told(engine, COUNT)[0] is None


def test_operators_cost_what_those_of_their_kind_do(engine):
    engine.execute(f"CREATE QUERY counts AS {COUNT}")
    pages(engine, 6)
    line, milliseconds, tuples = told(engine, COUNT.replace("count(*)", "max(v)"))
    assert line.endswith("as others like it take")
    assert milliseconds > 0
    assert 400 <= tuples <= 500


def test_what_has_no_like_is_named(engine):
    engine.execute("CREATE QUERY large AS SELECT ts FROM S WHERE v > 400")
    pages(engine, 4)
    line, _, _ = told(engine, "SELECT DISTINCT k FROM S [RANGE 2]")
    assert line.endswith("without Distinct, the like of which has not run")


def test_a_row_of_constants_costs_a_part_of_its_group(engine):
    engine.execute(
        ";".join(f"CREATE QUERY q{i} AS SELECT ts FROM S WHERE v = {i}" for i in range(50))
    )
    pages(engine, 6)
    # the group is for those who began together; what comes later founds one of its own
    engine.execute("CREATE QUERY late1 AS SELECT ts FROM S WHERE v = 60")
    engine.execute("CREATE QUERY late2 AS SELECT ts FROM S WHERE v = 61")
    engine.push("S", [(9, 1, 1)] * 300)
    engine.push("S", [(10, 1, 1)])
    engine.run_until_idle()
    line, milliseconds, _ = told(engine, "SELECT ts FROM S WHERE v = 62")
    assert line.endswith("its part of what the group takes")
    assert milliseconds > 0

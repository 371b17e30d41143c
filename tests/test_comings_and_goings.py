"""Queries that come and go at moments at which nothing else happens."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.planning.placement import MOST_SHAPES
from tests.crashing import die

STREAM = "CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;"
RELATION = (
    "CREATE RELATION R (k INT PRIMARY KEY, name STRING); INSERT INTO R VALUES (0, 'a'), (1, 'b');"
)
SHAPES = (
    "SELECT k, count(*) AS n FROM S [RANGE 5] WHERE v > {} GROUP BY k",
    "SELECT v, sum(k) AS n FROM S [RANGE 3] WHERE k > {} GROUP BY v",
    "SELECT v, max(k) AS n FROM S [RANGE 4] WHERE k < {} GROUP BY v",
)


def page(engine, ts):
    engine.push("S", [(ts, n % 4, (ts * 7 + n) % 5) for n in range(6)])
    engine.advance("S", ts)
    engine.run_until_idle()
    engine.validate()


def test_a_query_that_goes_and_comes_again_at_once_sees_its_relation():
    for is_alone in (False, True):
        with Engine() as engine:
            engine.execute(STREAM + RELATION + "CREATE QUERY z AS SELECT k FROM S [RANGE 5];")
            page(engine, 0)
            if not is_alone:
                engine.execute("CREATE QUERY other AS SELECT v FROM S [RANGE 4]")
            text = "CREATE QUERY q AS SELECT S.k, name FROM S [RANGE 3], R WHERE S.k = R.k"
            engine.execute(f"{text}; DROP QUERY q; {text}")
            page(engine, 1)
            assert sum(row["weight"] for row in engine.results("q").to_pylist()) == 4


def test_a_log_that_is_shortened_before_anything_ran_loses_nothing(tmp_path):
    with Engine(store=tmp_path) as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT sum(v) AS s FROM S [UNBOUNDED];")
        engine.push("S", [(0, 1, 1)])
        engine.compact_log()
        engine.push("S", [(1, 1, 10)])
        engine.finish()
        assert engine.results("q").to_pylist()[-1]["s"] == 11


def test_results_outlive_their_group(tmp_path):
    engine = Engine(store=tmp_path)
    engine.execute(STREAM)
    for i in range(2):
        engine.execute(f"CREATE QUERY q{i} AS {SHAPES[0].format(i)}")
    for ts in range(3):
        page(engine, ts)
    expected = [engine.results(f"q{i}").to_pylist() for i in range(2)]
    for i in range(2):
        engine.execute(f"ALTER QUERY q{i} DEACTIVATE")
    engine.compact_log()
    die(engine)
    with Engine(store=tmp_path) as again:
        assert [again.results(f"q{i}").to_pylist() for i in range(2)] == expected != [[], []]


def answers(moved):
    """Of two queries of each shape, of which some go and queues are moved for others."""
    with Engine() as engine:
        engine.execute(STREAM)
        for shape, text in enumerate(SHAPES):
            for i in range(2):
                engine.execute(f"CREATE QUERY q{shape}{i} AS {text.format(i)}")
        for ts in range(4):
            page(engine, ts)
        if moved is not None:
            edges = sorted(
                (one, other)
                for one in engine.graph.operators
                for other in engine.graph.readers(one)
            )
            placement = engine.runtime.placement
            engine.runtime.placement = placement.say(edges[moved % len(edges)][0], True)
        for ts in range(4, 7):
            page(engine, ts)
        engine.execute("DROP QUERY q20; DROP QUERY q21; DROP QUERY q10; DROP QUERY q11")
        identities = [m.identity for unit in engine.runtime.units for m in unit.members]
        assert sorted(identities) == sorted(engine.runtime.running)
        page(engine, 7)
        engine.finish()
        return [engine.results(f"q0{i}").to_pylist() for i in range(2)]


@pytest.mark.slow
def test_operators_of_shapes_beside_one_another_are_in_one_unit_each():
    expected = answers(None)
    for moved in range(8):
        assert answers(moved) == expected


def test_plans_that_are_gone_are_forgotten():
    with Engine() as engine:
        engine.execute(STREAM)
        for i in range(3):
            engine.execute(f"CREATE QUERY q{i} AS SELECT k + {i} AS n FROM S [ROWS {i + 1}]")
        for i in range(3):
            engine.execute(f"DROP QUERY q{i}")
        assert not engine.queries.groups._plans


def shapes_one_by_one(engine, number):
    """So many shapes of two queries each, a page of data after every one of these."""
    page(engine, 0)
    for shape in range(number):
        for i in range(2):
            text = f"SELECT v{' - k' * shape} AS n FROM S WHERE k = {i}"
            engine.execute(f"CREATE QUERY q{shape}_{i} AS {text}")
            page(engine, 2 * shape + i + 1)


def units_of_shapes(engine):
    """How many shapes the units have that match queries."""
    outputs = {group.output for group in engine.queries.groups}
    found = [len(outputs & unit.identities) for unit in engine.runtime.units]
    return sorted(number for number in found if number)


@pytest.mark.slow
def test_shapes_that_come_one_by_one_while_data_flows_are_one_unit():
    with Engine() as engine:
        engine.execute(STREAM + "CREATE QUERY first AS SELECT k FROM S [RANGE 5];")
        shapes_one_by_one(engine, MOST_SHAPES + 3)
        engine.runtime.move_queues()
        assert len(list(engine.queries.groups)) == MOST_SHAPES + 3
        assert units_of_shapes(engine) == [3, MOST_SHAPES]
        for shape in range(5):
            engine.execute(f"DROP QUERY q{shape}_0; DROP QUERY q{shape}_1;")
        page(engine, 1_000)
        engine.runtime.move_queues()
        assert units_of_shapes(engine) == [MOST_SHAPES - 2]

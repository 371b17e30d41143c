"""What the log says of plans is read as it was written."""

from __future__ import annotations

import json

import pytest

from millpond import Engine
from millpond.catalog import QueryEntry
from millpond.planning.graph import Graph
from millpond.planning.optimise import optimise
from millpond.planning.plan_data import from_data, to_data
from tests.generator import unevaluated_case

SEEDS = 120


def again(value, functions=()):
    """A value that was written down, and read."""
    return from_data(json.loads(json.dumps(to_data(value))), dict(functions))


@pytest.mark.parametrize("part", range(4))
def test_entries_plans_and_operators_are_what_they_were(part):
    for seed in range(part, SEEDS, 4):
        case = unevaluated_case(seed, 3)
        with Engine() as engine:
            engine.execute(case.ddl() + "".join(case.query_ddl()))
            for entry in engine.catalog.entries.values():
                assert again(entry) == entry
                assert getattr(again(entry), "warnings", ()) == getattr(entry, "warnings", ())
            for entry in engine.catalog.of_kind(QueryEntry):
                plan = optimise(entry.plan, entry.on_error)
                assert again(plan).digest == plan.digest
                assert str(again(plan)) == str(plan)
            graph = Graph()
            graph.add(again(engine.graph.whole()))
            assert graph.operators == engine.graph.operators
            assert graph.describe() == engine.graph.describe()
            assert graph.whole() == engine.graph.whole()


def test_what_a_plan_reads_twice_is_written_once():
    text = "SELECT DISTINCT a FROM S [RANGE 3]"
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM push();")
        engine.execute(f"CREATE VIEW v AS {text};")
        engine.execute("CREATE QUERY q AS SELECT x.a FROM v x, v y, v z WHERE x.a = y.a;")
        told = json.dumps(to_data(engine.catalog.entries["q"].plan))
    assert told.count("StreamScan") == 1


def test_functions_of_the_user_are_named(tmp_path):
    with Engine() as engine:
        engine.register_function("twice", lambda a: a, ["INT"], "INT")
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM push();")
        engine.execute("CREATE QUERY q AS SELECT twice(a) AS b FROM S;")
        whole = engine.graph.whole()
        assert again(whole, engine.catalog.functions) == whole
        with pytest.raises(KeyError):
            again(whole)

"""Constraints and punctuations on the executors: the same answers, and rows go there too."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.execution.steps import EXECUTORS

pytestmark = pytest.mark.spark

PAGES, ROWS = 3, 8_000
OWN = "UNIQUE (id) CLUSTERED BY (part) WITHIN 2 ROWS"
THEIRS = "ORDERED BY (id) WITHIN 3 ROWS REFERENCES O (id) WITHIN 5 ROWS"
QUERIES = {
    "pairs": "SELECT O.v, F.v AS w FROM O, F WHERE O.id = F.id",
    "counted": "SELECT id, count(*) AS n, max(v) AS v FROM F GROUP BY id",
    "parts": "SELECT part, v FROM O [PARTITION BY part ROWS 1]",
}


def answers(own, theirs, punctuates=False, **given):
    """What queries answer, and how many rows their operators have freed."""
    with Engine(**given) as engine:
        columns = "(t BIGINT, id INT, part INT, v INT) TIMESTAMP BY t"
        engine.execute(f"CREATE STREAM O {columns} {own}; CREATE STREAM F {columns} {theirs}")
        for name, text in QUERIES.items():
            engine.execute(f"CREATE QUERY {name} AS {text}")
        for page in range(PAGES):
            numbers = range(page * ROWS, (page + 1) * ROWS)
            engine.push("O", [(n, n, n // 2, n) for n in numbers])
            engine.push("F", [(n, n // 2 * 2, n // 2, n) for n in numbers])
            if punctuates:
                engine.execute(f"PUNCTUATE O WHERE part < {numbers[-1] // 2}")
                engine.execute(f"PUNCTUATE F WHERE id < {numbers[-1]}")
            engine.run_until_idle()
        running = engine.runtime.running.values()
        freed = {type(each).__name__: getattr(each, "freed_rows", 0) for each in running}
        if given:
            assert all(each.places.known_rows(EXECUTORS) for each in running if each.state)
        engine.finish()
        found = {name: sorted(map(str, engine.results(name).to_pylist())) for name in QUERIES}
        return found, freed


@pytest.fixture(scope="module")
def plain():
    return answers("", "")[0]


@pytest.mark.parametrize("residents", ["auto", "0"])
def test_answers_are_those_without_constraints(spark, plain, residents):
    way = {"driver_rows": 0, "place_by": "rows", "residents": residents}
    found, freed = answers(OWN, THEIRS, spark=spark, settings=way)
    assert found == plain
    stateful = ("RunningJoin", "RunningAggregate", "RunningRowsWindow")
    assert min(freed[each] for each in stateful) > ROWS // 4


def test_answers_are_those_without_punctuations(spark, plain):
    way = {"driver_rows": 0, "place_by": "rows"}
    found, freed = answers("", "", punctuates=True, spark=spark, settings=way)
    assert found == plain
    assert min(freed[each] for each in ("RunningAggregate", "RunningRowsWindow")) > ROWS // 4

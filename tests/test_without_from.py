"""SELECT without FROM: one row, in queries of any age, in groups, behind a restart, asked once."""

from __future__ import annotations

from pathlib import Path

from millpond import Engine
from millpond.cql.check.statements import check_statement
from millpond.errors import Position
from millpond.server import one_time
from millpond.server.limits import Limits

S = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t"


def rows(engine: Engine, name: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in engine.results(name).to_pylist()]


def test_a_query_that_begins_late_has_the_row_too(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with Engine({"validate": "on"}, store=store) as engine:
        engine.execute(f"{S}; CREATE QUERY one AS SELECT 1 AS x; CREATE QUERY two AS SELECT 2 AS x")
        engine.push("S", [(1, 1), (2, 1)])
        engine.run_until_idle()
        engine.execute(
            "CREATE VIEW Limits AS SELECT 2 AS least;"
            "CREATE QUERY three AS SELECT 3 AS x;"
            "CREATE QUERY joined AS SELECT a FROM S [NOW], Limits WHERE a >= least"
        )
        engine.run_until_idle()
    with Engine({"validate": "on"}, store=store) as engine:
        engine.push("S", [(3, 1), (4, 2)])
        engine.finish()
        assert [rows(engine, name) for name in ("one", "two", "three")] == [
            [(None, 1, 1)],
            [(None, 1, 2)],
            [(None, 1, 3)],
        ]
        assert rows(engine, "joined") == [(4, 1, 2)]


def test_it_is_asked_once() -> None:
    with Engine() as engine:
        engine.execute(f"{S}; CREATE RELATION R (a INT); INSERT INTO R VALUES (1), (2)")
        text = "SELECT a, (SELECT 5) AS f FROM R WHERE a IN (SELECT 1) UNION ALL SELECT 7, 8"
        statement = check_statement(text, Position(1, 1), engine.catalog)
        table, when = one_time.answer(engine, statement, Limits())
        assert sorted(tuple(row.values())[2:] for row in table.to_pylist()) == [(1, 5), (7, 8)]
        assert when is None


def test_no_relation_is_shown_that_nobody_has_declared() -> None:
    with Engine() as engine:
        engine.execute("CREATE QUERY q AS SELECT 1 AS x")
        engine.finish()
        (shown,) = engine.execute("SHOW RELATIONS")
        assert shown.num_rows == 0
        (plan,) = engine.execute("EXPLAIN q")
        assert str(plan.text) == "Project 1 AS x\n  One row"

"""IF [NOT] EXISTS, OR REPLACE and parameters: what is done, shown, and there after a restart."""

from datetime import date

import pytest

from millpond import Engine
from millpond.errors import CqlError, StateError

SCRIPT = """
CREATE STREAM IF NOT EXISTS S (t BIGINT, a INT) TIMESTAMP BY t;
DROP VIEW IF EXISTS V;
CREATE VIEW V (b) AS SELECT a FROM S WHERE a > 5;
CREATE OR REPLACE VIEW V (c) AS -- the small ones
  SELECT a FROM S WHERE a < 5;
DROP QUERY IF EXISTS q;
CREATE QUERY IF NOT EXISTS q AS SELECT c FROM V;
"""
ROWS = [{"t": 1, "a": 3}, {"t": 2, "a": 9}]


def answers(engine):
    return [row["c"] for row in engine.results("q").to_pylist()]


def test_what_is_there_is_left_alone():
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.push("S", ROWS)
        engine.execute("CREATE QUERY IF NOT EXISTS q AS SELECT nothing FROM nowhere")
        engine.execute("CREATE STREAM IF NOT EXISTS s (other INT)")
        engine.finish()
        assert answers(engine) == [3]


def test_a_view_that_is_replaced_means_something_else_from_then_on():
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.execute("CREATE OR REPLACE VIEW V (c) AS SELECT a + 1 FROM S")
        engine.execute("CREATE QUERY later AS SELECT c FROM V")
        engine.push("S", ROWS)
        engine.finish()
        assert answers(engine) == [3]
        assert [row["c"] for row in engine.results("later").to_pylist()] == [4, 10]


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_script_started_again_does_nothing_twice(tmp_path, checkpointed):
    store = {"store": str(tmp_path / "store")}
    with Engine(store) as engine:
        engine.execute(SCRIPT)
        engine.push("S", ROWS[:1])
        engine.run_until_idle()
        if checkpointed:
            engine.compact_log()
    with Engine(store) as engine:
        engine.execute(SCRIPT)
        engine.push("S", ROWS[1:])
        engine.finish()
        assert answers(engine) == [3]
        assert engine.show("v")["columns"].to_pylist() == ["(c INT)"]
        assert "-- the small ones" in engine.show("v")["text"][0].as_py()


def test_parameters_are_constants():
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT, s STRING, d DATE) TIMESTAMP BY t")
        engine.execute(
            "CREATE QUERY q AS SELECT count(*) AS n FROM S [ROWS :rows] "
            "WHERE a > 1 -:least AND s <> ':least' AND s = :it AND d < :day -- :least",
            parameters={"rows": 2, "least": -1, "it": "it's", "day": date(2024, 2, 29)},
        )
        assert "[ROWS 2] WHERE a > 1 -(-1)" in engine.query_entry("q").text
        engine.push("S", [{"t": 1, "a": 3, "s": "it's", "d": date(2024, 1, 1)}])
        engine.finish()
        assert engine.results("q").to_pylist()[-1]["n"] == 1


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("SHOW :a", {}, "line 1, column 6: :a is a parameter, whose value is to be given"),
        (
            "SHOW\n :limt",
            {"limit": 1},
            'line 2, column 2: no value for :limt; did you mean "limit"?',
        ),
        ("SHOW ALL", {"a": 1}, "the text has no :a, for which a value is given"),
        ("SHOW :a", {"a": float("nan")}, "parameter 'a' is nan; it can be a text"),
        ("SHOW :a", {"a": {1}}, "parameter 'a' is {1}; it can be a text"),
    ],
)
def test_what_parameters_cannot_be(text, parameters, message):
    with Engine() as engine, pytest.raises((CqlError, StateError)) as refused:
        engine.execute(text, parameters=parameters)
    assert str(refused.value).startswith(message)

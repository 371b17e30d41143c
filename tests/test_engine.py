"""The engine as a user meets it, as far as no Spark is needed."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pyarrow as pa
import pytest

from millpond import Engine, Plan
from millpond.errors import CqlError, InputError, MillpondError, StateError

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE RELATION R (k INT, n STRING);
CREATE QUERY q AS SELECT a FROM S WHERE a > 1;
"""


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute(SCRIPT)
        yield engine


# Statements and their faults.


def test_a_fault_says_where_it_is_and_what_came_before_it_stands(engine):
    with pytest.raises(CqlError, match="line 3, column 33") as caught:
        engine.execute(
            "CREATE VIEW v AS SELECT a FROM S;\n\nCREATE QUERY p AS SELECT a FROM Nobody"
        )
    assert "Nobody" in str(caught.value)
    assert engine.show("views").num_rows == 1
    assert engine.show("queries").num_rows == 1


def test_a_source_that_cannot_be_opened_leaves_nothing_behind(engine, tmp_path):
    with pytest.raises(MillpondError, match="missing"):
        engine.execute("CREATE STREAM T (a INT) FROM csv('missing.csv')")
    assert [r["name"] for r in engine.show("streams").to_pylist()] == ["S"]


def test_a_name_is_given_once(engine):
    with pytest.raises(CqlError, match="q"):
        engine.execute("CREATE QUERY q AS SELECT a FROM S")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.results("nothing"), 'no query "nothing"; known: q'),
        (lambda e: e.results("q", "xml"), 'no form "xml"'),
        (lambda e: e.subscribe("nothing", print), "no query"),
        (lambda e: e.push("nothing", [{"a": 1}]), 'no stream or relation "nothing"; known: r, s'),
        (lambda e: e.push_changes("S", [(1, "+", {"k": 1})]), "no stream or relation"),
        (lambda e: e.advance("nothing", 3), "no stream or relation"),
        (lambda e: e.late("R"), 'no stream "R"'),
        (lambda e: e.query("nothing"), "nothing"),
        (lambda e: e.explain("nothing"), "nothing"),
        (lambda e: e.drop("nothing"), "nothing"),
        (lambda e: e.advance("S", "soon"), "S: 'soon' is not a time"),
        (
            lambda e: e.advance("S", 2**70),
            f"S: the time {2**70} is out of range; times lie between",
        ),
        (lambda e: e.execute(None), "a script is text, not None"),
        (lambda e: e.execute(b"SHOW ALL"), "a script is text, not b'SHOW ALL'"),
        (lambda e: e.drop(None), "a name is text, not None"),
        (lambda e: e.push(None, []), "a name is text, not None"),
        (lambda e: e.push_changes(5, []), "a name is text, not 5"),
        (lambda e: e.advance(None, 5), "a name is text, not None"),
        (lambda e: e.results(None), "a name is text, not None"),
        (lambda e: e.late(["S"]), "a name is text, not"),
        (lambda e: e.explain(None), "a name is text, not None"),
        (lambda e: e.query(None), "a name is text, not None"),
        (lambda e: e.format_time(None, 5), "a name is text, not None"),
        (
            lambda e: e.push_changes("R", [(5, "+")]),
            r"R, row 1: a change is \(ts, '\+' or '-', row\)",
        ),
        (lambda e: e.push_changes("R", [(5, ["+"], (1, "x"))]), "R, row 1: op must be"),
        (lambda e: e.push_changes("R", 5), "R: changes are tuples"),
        (lambda e: e.push_changes("R", "+-"), "R: changes are tuples"),
        (lambda e: e.push_changes("R", [(2**70, "+", (1, "x"))]), f"R, row 1: the time {2**70} is"),
    ],
)
def test_unknown_names_are_named(engine, call, message):
    with pytest.raises(MillpondError, match=message):
        call(engine)


@pytest.mark.parametrize(
    "rows",
    [
        [{"t": 1, "a": "x"}],
        [{"t": 1, "b": 1}],
        [(1, 2, 3)],
        [{"t": 1, "a": 2**40}],
        pa.table({"t": [1], "b": [2]}),
        "text",
        7,
    ],
)
def test_rows_that_do_not_fit_are_refused_whole(engine, rows):
    with pytest.raises(InputError, match="S"):
        engine.push("S", rows)
    assert "0 tuples" in engine.show("streams")["detail"][0].as_py()


@pytest.mark.parametrize(
    "rows",
    [
        [{"t": 1, "a": 5}, {"t": 2, "a": None}],
        [(1, 5), (2, None)],
        pa.table({"t": [1, 2], "a": pa.array([5, None], pa.int64())}),
        pd.DataFrame({"t": [1, 2], "a": pd.array([5, None], dtype="Int32")}),
    ],
    ids=["dicts", "tuples", "arrow", "pandas"],
)
def test_rows_come_in_many_forms(engine, rows):
    engine.push("S", rows)
    engine.push("S", [])
    assert "2 tuples, 0 late" in engine.show("streams")["detail"][0].as_py()


def test_late_tuples_are_counted_and_kept(engine):
    engine.push("S", [(5, 1), (3, 2)])
    engine.advance("S", 9)
    engine.push("S", [(9, 3), (10, 4)])
    assert engine.late("S").to_pylist() == [{"t": 3, "a": 2}, {"t": 9, "a": 3}]
    assert "2 tuples, 2 late" in engine.show("streams")["detail"][0].as_py()


# Life and death.


def test_a_closed_engine_says_so():
    engine = Engine()
    with engine:
        engine.execute(SCRIPT)
    for call in (
        lambda: engine.execute("SHOW QUERIES"),
        lambda: engine.push("S", []),
        lambda: engine.advance("S", 1),
        engine.run_until_idle,
        engine.finish,
        lambda: engine.subscribe("q", print),
        lambda: engine.drop("q"),
    ):
        with pytest.raises(StateError, match="closed"):
            call()
    engine.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda e: e.push("S", [(1, 1)]),
        lambda e: e.push("R", [(1, "x")]),
        lambda e: e.execute("INSERT INTO R VALUES (1, 'x')"),
    ],
)
def test_nothing_can_follow_the_end(engine, call):
    engine.drop("q")
    engine.finish()
    with pytest.raises(MillpondError, match=r"(S|R) has ended: .* nothing can follow"):
        call(engine)


def test_an_engine_without_queries_has_nothing_to_do():
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a INT)")
        engine.push("S", [(1,)])
        engine.run_until_idle()
        engine.finish()


def test_what_somebody_uses_cannot_be_dropped(engine):
    with pytest.raises(MillpondError, match="q"):
        engine.drop("S")
    engine.drop("q")
    engine.execute("DROP STREAM S; DROP RELATION R;")
    assert engine.show("all").num_rows == 0
    with pytest.raises(MillpondError):
        engine.results("q")


def test_a_dropped_name_may_be_used_again(engine):
    engine.push("S", [(1, 1)])
    engine.execute("DROP QUERY q; DROP STREAM S; CREATE STREAM S (x STRING)")
    assert "0 tuples" in engine.show("streams")["detail"][0].as_py()


# Settings.


def test_settings_are_checked():
    for settings, message in (
        ({"nonsense": 1}, "no setting"),
        ({"tick": "soon"}, "tick"),
        ({"strategy": "magic"}, "magic"),
        ({"strategy": "chain(slices = 3)"}, "its settings: max_tuples"),
    ):
        with pytest.raises(MillpondError, match=message):
            Engine(settings=settings)


def test_set_changes_a_setting_and_a_wrong_one_is_refused(engine):
    engine.execute("SET strategy = 'fifo'; SET step_rows = 1000")
    shown = {r["setting"]: r["value"] for r in engine.show("settings").to_pylist()}
    assert (shown["strategy"], shown["step_rows"]) == ("fifo", "1000")
    with pytest.raises(CqlError, match="magic"):
        engine.execute("SET strategy = 'magic'")
    with pytest.raises(CqlError, match=r"line 2, column 3: no strategy \"dj\""):
        engine.execute("SET page_rows = 10;\n  SET strategy = 'dj'")
    assert engine.settings.strategy == "fifo"


def test_settings_of_a_strategy_are_set_with_it_and_the_budget_is_its_memory(engine):
    engine.execute("SET strategy = 'threshold(beta = 0.8)'; SET budget = '64 MB'")
    shown = {r["setting"]: r["value"] for r in engine.show("settings").to_pylist()}
    assert (shown["strategy"], shown["budget"]) == ("threshold(beta = 0.8)", "64 MB")
    with pytest.raises(CqlError, match=r"line 1, column 1: .*threshold.*beta is 3; give a number"):
        engine.execute("SET strategy = 'threshold(beta = 3)'")
    with pytest.raises(CqlError, match="memory_bytes is 0; give more"):
        engine.execute("SET budget = 0")
    assert engine.settings.budget_bytes == 64 * 2**20


def test_the_tick_is_fixed_before_the_first_stream(engine):
    with pytest.raises(CqlError, match="tick"):
        engine.execute("SET tick = '1 second'")
    with Engine() as other:
        other.execute("SET tick = '1 second'; CREATE STREAM T (at TIMESTAMP) TIMESTAMP BY at")
        other.push("T", [(dt.datetime(2026, 1, 1),)])
        other.advance("T", dt.datetime(2026, 1, 1, 0, 0, 9))
        other.push("T", [(dt.datetime(2026, 1, 1, 0, 0, 9, 500_000),)])
        assert other.late("T").num_rows == 1


# Looking inside.


def test_show_lists_what_there_is(engine):
    (shown,) = engine.execute("SHOW QUERIES")
    assert shown.to_pylist() == [
        {
            "name": "q",
            "kind": "query",
            "columns": "(a INT)",
            "detail": "active, weight 1, 0 result elements",
            "text": shown["text"][0].as_py(),
        }
    ]
    assert shown["text"][0].as_py().startswith("CREATE QUERY q AS")
    assert [r["kind"] for r in engine.show("all").to_pylist()] == ["stream", "relation", "query"]


def test_alter_changes_weight_and_activity(engine):
    engine.execute("ALTER QUERY q SET WEIGHT 3; ALTER QUERY q DEACTIVATE")
    assert "inactive, weight 3" in engine.show("queries")["detail"][0].as_py()
    engine.execute("ALTER QUERY q ACTIVATE")
    assert "active, weight 3" in engine.show("queries")["detail"][0].as_py()


def test_explain_has_three_stages(engine):
    syntax, logical, physical = engine.execute(
        "EXPLAIN SYNTAX SELECT a FROM S; EXPLAIN SELECT a FROM S; EXPLAIN PHYSICAL SELECT a FROM S"
    )
    assert isinstance(syntax, Plan)
    assert "Select" in str(syntax)
    assert str(logical) == "Arrivals\n  Project a\n    Window NOW\n      Stream S"
    assert "Output" in str(physical)
    assert str(engine.explain("q", "logical")).startswith("Arrivals")
    assert str(engine.query("q").explain()).startswith("op1: Output q (arrivals)")


def test_warnings_are_shown_and_explained(engine):
    assert engine.warnings() == []
    engine.execute("CREATE QUERY d AS SELECT DISTINCT a FROM S [ROWS 2]")
    (warning,) = engine.warnings()
    assert warning.message.startswith("DISTINCT takes rows back")
    (row,) = engine.show("warnings").to_pylist()
    assert (row["name"], row["column"]) == ("d", 19)
    assert str(engine.explain("d")).endswith(f"warning: {warning.message}")
    engine.execute("DROP QUERY d; CREATE QUERY d AS RELATION SELECT DISTINCT a FROM S [ROWS 2]")
    assert engine.warnings() == []


def test_explain_says_which_parts_run_already(engine):
    engine.execute("CREATE QUERY c AS SELECT a, count(*) AS n FROM S [RANGE 5] GROUP BY a")
    (plan,) = engine.execute(
        """EXPLAIN PHYSICAL
        SELECT a FROM (SELECT a, count(*) AS n FROM S [RANGE 5] GROUP BY a) WHERE n > 2"""
    )
    assert "Aggregate count(*) BY a (already running)" in str(plan)


def test_notebooks_show_engines_queries_and_plans(engine):
    engine.execute("CREATE QUERY odd AS SELECT '<b>' AS tag FROM S")
    assert "<table" in engine._repr_html_()
    assert "&lt;b&gt;" in engine.query("odd")._repr_html_()
    assert "0 result elements" in engine.query("odd")._repr_html_()
    plan = engine.explain("odd")._repr_html_()
    assert "<pre>" in plan
    assert "'<b>'" not in plan


def test_results_before_the_first_step_are_empty(engine):
    assert engine.results("q").num_rows == 0
    assert engine.results("Q", "rows") == []
    assert list(engine.results("q", "pandas").columns) == ["ts", "weight", "a"]


def test_rows_are_changed_where_their_expressions_can_be_computed(engine):
    engine.execute("""
        INSERT INTO R VALUES (1, 'a'), (2, 'b'), (3, NULL);
        UPDATE R SET n = n || 'x', k = k + 10 WHERE n IS NOT NULL;
        DELETE FROM R WHERE k = 12;
        CREATE QUERY all_of_it AS SELECT k, n FROM R;
    """)
    engine.finish()
    assert not engine.ground.lazy_spark.is_started
    rows = [(row["k"], row["n"]) for row in engine.results("all_of_it").to_pylist()]
    assert sorted(rows) == [(3, None), (11, "ax")]
    with pytest.raises(CqlError, match="the changed rows: a number does not fit the type"):
        engine.execute("UPDATE R SET k = k + 2147483647")


@pytest.mark.parametrize("ends", [False, True])
def test_a_relation_is_whole_for_whoever_comes_after_others_have_read_it(ends):
    with Engine() as engine:
        engine.execute("CREATE RELATION R (k INT); INSERT INTO R VALUES (1), (2)")
        engine.execute(
            "CREATE STREAM S (t BIGINT) TIMESTAMP BY t; CREATE QUERY q0 AS SELECT t FROM S"
        )
        engine.push("S", [(1,), (2,)])
        engine.finish() if ends else engine.run_until_idle()
        for name in ("q1", "q2", "q3"):  # nothing comes between them
            engine.execute(f"CREATE QUERY {name} AS SELECT k FROM R WHERE k > 0")
            engine.run_until_idle()
            assert [row["k"] for row in engine.results(name).to_pylist()] == [1, 2], name

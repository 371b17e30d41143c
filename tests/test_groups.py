"""Queries that differ in constants only run as one, and nobody notices."""

from __future__ import annotations

import pyarrow.csv
import pytest

from millpond import Engine
from millpond.catalog import QueryEntry
from millpond.errors import MillpondError
from tests.crashing import die
from tests.overflowing import check_set

S = "CREATE STREAM S (ts BIGINT, k INT, v DOUBLE) TIMESTAMP BY ts"


def alert(name, k, rest=""):
    return f"CREATE QUERY {name} AS SELECT ts, v FROM S WHERE k = {k} {rest};"


@pytest.fixture
def engine():
    with Engine() as made:
        made.execute(S)
        yield made


def rows(engine, query):
    return [tuple(row.values()) for row in engine.results(query).to_pylist()]


def groups(engine):
    return {group.name: sorted(group.queries.values()) for group in engine.queries.groups}


def test_from_the_second_query_of_a_shape_on_there_is_one_plan(engine):
    engine.execute(alert("a", 1))
    assert not groups(engine)
    engine.execute("".join(alert(f"b{k}", k) for k in range(50)))
    assert list(groups(engine).values()) == [sorted(["a", *(f"b{k}" for k in range(50))])]
    assert len(engine.graph.operators) == 2
    engine.push("S", [(1, 7, 0.5), (2, 1, 1.5), (2, 99, 2.5)])
    engine.finish()
    assert rows(engine, "b7") == [(1, 1, 1, 0.5)]
    assert rows(engine, "b1") == rows(engine, "a") == [(2, 1, 2, 1.5)]
    assert rows(engine, "b8") == []
    assert engine.result_count("b7") == 1


def test_who_has_put_out_something_goes_on_by_itself(engine):
    engine.execute(alert("a", 1) + alert("other", 1, "AND v > 0"))
    engine.push("S", [(1, 1, 0.5)])
    engine.advance("S", 1)
    engine.run_until_idle()
    engine.execute(alert("b", 1) + alert("c", 2) + alert("d", 1))
    assert sorted(*groups(engine).values()) == ["b", "c", "d"]
    engine.push("S", [(2, 1, 1.5)])
    engine.finish()
    assert rows(engine, "a") == [(1, 1, 1, 0.5), (2, 1, 2, 1.5)]
    assert rows(engine, "b") == rows(engine, "d") == [(2, 1, 2, 1.5)]


def test_who_comes_along_into_a_group_is_found_again(tmp_path):
    """With its subscribers, and after a restart."""
    store = str(tmp_path / "store")
    engine = Engine({"store": store})
    engine.execute(S + ";" + alert("a", 1))
    told = []
    engine.subscribe("a", told.append)
    engine.run_until_idle()
    engine.execute(alert("b", 2))
    assert list(groups(engine).values()) == [["a", "b"]]
    engine.push("S", [(1, 1, 0.5), (2, 2, 1.5)])
    engine.advance("S", 2)
    engine.run_until_idle()
    assert len(told) == 1
    die(engine)
    with Engine({"store": store}) as again:
        assert list(groups(again).values()) == [["a", "b"]]
        again.push("S", [(3, 1, 2.5)])
        again.finish()
        assert [row[-1] for row in rows(again, "a")] == [0.5, 2.5]
        assert [row[-1] for row in rows(again, "b")] == [1.5]


def test_lists_of_any_length_are_one_shape(engine):
    """A tuple that is in a list is put out once, however often it stands there."""
    lists = {"a": "= 1", "b": "IN (1, 1, 2)", "c": "IN (2, 3, NULL, 4)", "d": "IN (1)"}
    for name, asked in lists.items():
        engine.execute(f"CREATE QUERY {name} AS SELECT ts, v FROM S WHERE k {asked}")
    nots = {"x": "<> 1", "y": "NOT IN (1, 2)", "z": "NOT IN (1, NULL)"}
    for name, asked in nots.items():
        engine.execute(f"CREATE QUERY {name} AS SELECT ts, v FROM S WHERE k {asked}")
    assert list(groups(engine).values()) == [["a", "b", "c", "d"], ["x", "y", "z"]]
    plan = engine.execute("EXPLAIN PHYSICAL c")[0].text
    assert "with its own constants: ?1 = (2, 3, None, 4)" in plan
    engine.push("S", [(ts, k, 0.5) for ts, k in enumerate([1, 2, 3, None])])
    engine.finish()
    seen = {name: [row[0] for row in rows(engine, name)] for name in lists | nots}
    wanted = {"a": [0], "b": [0, 1], "c": [1, 2], "d": [0], "x": [1, 2], "y": [2], "z": []}
    assert seen == wanted


def test_windows_of_any_length_are_one_shape(engine):
    """Also of a query that comes while data flows: its window is filled from then on."""
    text = "SELECT count(*) AS n FROM S [RANGE {}] WHERE k = 1 GROUP BY k"
    engine.execute(";".join(f"CREATE QUERY q{n} AS {text.format(n)}" for n in (1, 3, 10**12)))
    for ts in range(4):
        engine.push("S", [(ts, 1, 0.5)])
        engine.advance("S", ts)
        engine.run_until_idle()
    engine.execute(
        f"CREATE QUERY late1 AS {text.format(1)}; CREATE QUERY late2 AS {text.format(9)}"
    )
    engine.push("S", [(4, 1, 0.5), (6, 2, 0.5)])
    engine.advance("S", 6)
    engine.run_until_idle()
    assert list(groups(engine).values()) == [["q1", "q1000000000000", "q3"], ["late1", "late2"]]
    wanted = {
        "q1": [1, 2, 2, 2, 2, 1, 0],
        "q3": [1, 2, 3, 4, 4, 3, 2],
        "q1000000000000": [1, 2, 3, 4, 5, 5, 5],
        "late1": [0, 0, 0, 0, 1, 1, 0],
        "late2": [0, 0, 0, 0, 1, 1, 1],
    }
    assert {name: course(engine, name, 6) for name in wanted} == wanted


def test_rows_windows_and_samples_alone_are_one_shape(engine):
    text = "SELECT count(*) AS n FROM S {} GROUP BY k"
    windows = {"a": "[ROWS 2]", "b": "[ROWS 2]", "c": "[ROWS 3]", "d": "[ROWS 4]"}
    windows |= {"x": "SAMPLE(30)", "y": "SAMPLE(60)", "z": "SAMPLE(100)"}
    for name, window in windows.items():
        engine.execute(f"CREATE QUERY {name} AS {text.format(window)}")
    assert list(groups(engine).values()) == [["a", "b", "c", "d"], ["x", "y", "z"]]
    assert len(engine.graph.operators) == 4 + 3
    engine.push("S", [(ts, 1, 0.5) for ts in range(50)])
    engine.finish()
    last = {name: course(engine, name, 50)[-1] for name in windows}
    assert [last[name] for name in "abcdz"] == [2, 2, 3, 4, 50]
    assert 0 < last["x"] < last["y"] < 50


def course(engine, query, until):
    """What a query's one number was at each time up to another; 0 where it had none."""
    found = engine.results(query).to_pylist()
    changes = [(row["ts"], row["weight"] * row["n"]) for row in found]
    return [sum(change for at, change in changes if at <= ts) for ts in range(until + 1)]


def test_a_select_list_that_may_fail_is_its_own(engine):
    for factor in (1.0, 2.0):
        text = f"SELECT CAST(v AS INT) AS i, v * {factor} AS x FROM S"
        engine.execute(f"CREATE QUERY q{factor:.0f} AS {text}")
    assert not groups(engine)


def test_sharing_can_be_had_from_the_first_query_on_or_never():
    for sharing, there in (("on", 1), ("off", 0)):
        with Engine({"sharing": sharing}) as engine:
            engine.execute(S)
            engine.execute(alert("a", 1) + alert("b", 2))
            assert len(groups(engine)) == there


def test_the_last_query_that_goes_takes_everything_with_it(engine):
    engine.execute("".join(alert(f"q{k}", k) for k in range(3)))
    engine.push("S", [(1, 1, 1.0)])
    engine.run_until_idle()
    engine.execute("DROP QUERY q1")
    engine.push("S", [(2, 1, 1.0), (2, 2, 2.0)])
    engine.run_until_idle()
    assert list(groups(engine).values()) == [["q0", "q2"]]
    engine.execute("DROP QUERY q2; DROP QUERY q0")
    assert not engine.graph.operators
    assert not engine.queries.groups.members
    assert engine.show("queries").num_rows == 0


def test_a_query_that_comes_while_data_flows_sees_what_comes_after_it(engine):
    engine.execute(alert("old", 1))
    for ts in range(5):
        engine.execute(alert(f"q{ts}", 1))
        engine.push("S", [(ts, 1, float(ts))])
        engine.advance("S", ts)
        engine.run_until_idle()
    engine.finish()
    assert list(groups(engine).values()) == [["old", "q0"], ["q2", "q3", "q4"]]
    for ts in range(5):
        assert [row[0] for row in rows(engine, f"q{ts}")] == list(range(ts, 5))


def test_subscribers_and_sinks_get_their_own(engine, tmp_path):
    told = {"a": [], "b": []}
    engine.execute(alert("a", 1) + alert("b", 2))
    engine.execute(alert("c", 1, f"INTO csv('{tmp_path}/c.csv')"))
    for name, seen in told.items():
        engine.subscribe(name, lambda table, seen=seen: seen.extend(table["v"].to_pylist()))
    for ts in range(3):
        engine.push("S", [(ts, 1, 1.0 + ts), (ts, 2, 2.0 + ts)])
        engine.run_until_idle()
    engine.finish()
    assert told == {"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 4.0]}
    engine.close()
    written = pyarrow.csv.read_csv(tmp_path / "c.csv")
    assert written["v"].to_pylist() == [1.0, 2.0, 3.0]


def test_subscribers_get_what_is_not_kept():
    with Engine(keep_results=False) as engine:
        engine.execute(S + ";" + alert("a", 1) + alert("b", 2) + alert("c", 3))
        told = []
        engine.subscribe("c", lambda table: told.extend(table["v"].to_pylist()))
        for ts in range(3):
            engine.push("S", [(ts, 3, float(ts)), (ts, 2, 9.0)])
            engine.run_until_idle()
        engine.finish()
        assert told == [0.0, 1.0, 2.0]
        assert rows(engine, "b") == []
        assert engine.result_count("b") == 3
        assert not engine.deliveries.file_names()


def test_results_stay_when_a_query_leaves_its_group(engine):
    engine.execute("".join(alert(f"q{k}", k) for k in range(3)))
    engine.push("S", [(1, 1, 1.0)])
    engine.advance("S", 1)
    engine.run_until_idle()
    engine.execute("ALTER QUERY q1 DEACTIVATE")
    engine.push("S", [(2, 1, 2.0)])
    engine.run_until_idle()
    assert rows(engine, "q1") == [(1, 1, 1, 1.0)]
    engine.execute("DROP QUERY q2")  # the group is gone
    assert rows(engine, "q1") == [(1, 1, 1, 1.0)]
    assert engine.result_count("q1") == 1


def test_an_error_names_the_queries_of_a_group(engine):
    engine.execute("CREATE STREAM B (ts BIGINT, k INT, n BIGINT) TIMESTAMP BY ts")
    text = "SELECT k, sum(n) AS n FROM B [RANGE 5] WHERE k > {} GROUP BY k"
    engine.execute(";".join(f"CREATE QUERY q{i} AS {text.format(i)}" for i in range(6)))
    engine.push("B", [(1, 9, 2**63 - 1), (1, 9, 2**63 - 1)])
    with pytest.raises(MillpondError, match=r"queries q0, q1, q2 and 3 more, Aggregate sum"):
        engine.finish()
    assert {failure.query for failure in engine.failures()} == {f"q{i}" for i in range(6)}


def test_an_overflow_is_a_querys_own(engine):
    engine.execute("CREATE STREAM B (ts BIGINT, k INT, n BIGINT) TIMESTAMP BY ts")
    text = "SELECT sum(n) AS n FROM B [RANGE 5] WHERE k = {} GROUP BY k"
    engine.execute(";".join(f"CREATE QUERY q{i} AS {text.format(i)}" for i in range(6)))
    engine.push("B", [(1, 3, 2**63 - 1), (1, 3, 1), (1, 4, 7), (2, 3, 1), (2, 4, 8)])
    with pytest.raises(MillpondError, match=r"query q3, Aggregate sum\(n\) BY .*: sum leaves"):
        engine.finish()
    engine.finish()
    assert [failure.query for failure in engine.failures()] == ["q3"]
    assert course(engine, "q4", 8) == [0, 7, 15, 15, 15, 15, 15, 8, 0]
    assert list(groups(engine).values()) == [["q0", "q1", "q2", "q4", "q5"]]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
def test_who_overflows_fails_alone(number):
    found = [check_set(Engine, seed) for seed in range(number * 20, number * 20 + 20)]
    assert any(found)


def test_one_copy_of_a_relation_that_is_read(engine):
    """However many queries come while data flows, what nobody reads is not copied."""
    engine.execute("CREATE RELATION R (k INT); CREATE RELATION Unread (k INT)")
    engine.execute("INSERT INTO R VALUES (1); INSERT INTO Unread VALUES (1)")
    text = "SELECT S.v FROM S [NOW], R WHERE S.k = R.k AND S.v > {}"
    for ts in range(20):
        engine.push("S", [(ts, 1, 5.0)])
        engine.advance("S", ts)
        engine.run_until_idle()
        engine.execute(f"CREATE QUERY q{ts} AS {text.format(ts % 3)}")
    assert len(engine.inputs.relation("Unread").queues) == 1
    assert len(engine.inputs.relation("R").queues) <= 3
    engine.push("S", [(30, 1, 1.5)])
    engine.finish()
    assert [rows(engine, f"q{ts}")[-1][0] for ts in (0, 1, 3, 4)] == [30] * 4
    assert all(ts > 2 for ts, *_ in rows(engine, "q2"))


@pytest.mark.parametrize("shortens", [False, True])
def test_a_group_goes_on_after_a_crash(tmp_path, shortens):
    engine = Engine(store=tmp_path)
    engine.execute(S)
    engine.execute("".join(alert(f"q{k}", k) for k in range(4)))
    engine.push("S", [(1, 1, 1.0), (1, 2, 2.0)])
    engine.advance("S", 1)
    engine.run_until_idle()
    engine.execute("DROP QUERY q3;" + alert("late0", 1) + alert("late1", 2))
    engine.push("S", [(2, 1, 3.0), (2, 2, 4.0)])
    engine.advance("S", 2)
    engine.run_until_idle()
    if shortens:
        engine.compact_log()
    before = groups(engine)
    die(engine)
    with Engine(store=tmp_path) as again:
        assert groups(again) == before
        again.execute(alert("new", 2))
        again.push("S", [(3, 1, 5.0), (3, 2, 6.0)])
        again.finish()
        expected = {"q0": [], "q1": [1.0, 3.0, 5.0], "q2": [2.0, 4.0, 6.0]}
        expected |= {"late0": [3.0, 5.0], "late1": [4.0, 6.0], "new": [6.0]}
        found = {e.name: [r[-1] for r in rows(again, e.name)] for e in
                 again.catalog.of_kind(QueryEntry)}  # fmt: skip
        assert found == expected
        assert again.result_count("q1") == 3


def test_shapes_over_the_same_pages_are_one_virtual_operator(engine):
    """A strategy that says where queues stand has them apart."""
    text = "CREATE QUERY {}{} AS SELECT {} FROM S WHERE v > {};"
    engine.execute("".join(alert(f"a{k}", k) for k in range(3)))
    engine.execute("".join(text.format("b", k, "ts, k", k) for k in range(3)))
    engine.push("S", [(1, 1, 1.5), (2, 2, 0.5)])
    engine.run_until_idle()
    assert [len(unit.members) for unit in engine.runtime.units] == [4]
    engine.runtime.placement = engine.runtime.placement.choose(engine.graph, ())
    engine.push("S", [(3, 2, 2.5)])
    engine.finish()
    assert [len(unit.members) for unit in engine.runtime.units] == [2, 2]
    assert [row[-1] for row in rows(engine, "a2")] == [0.5, 2.5]
    assert [row[-1] for row in rows(engine, "b1")] == [1, 2]

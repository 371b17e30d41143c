"""PRIMARY KEY of relations: one row for each key at the end of an instant, or an error, or the
later row."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.errors import MillpondError
from tests.server.serving import running

S = "CREATE STREAM S (t BIGINT) TIMESTAMP BY t;"
READ = "CREATE QUERY q AS RELATION SELECT k, v FROM R;"


def declared(policy="", options="", source=""):
    return f"CREATE RELATION R (k INT PRIMARY KEY {policy}, v STRING) {source} {options};"


CHANGES = "WITH (changes = true)"


def content(engine):
    """What the query has put out, as it is in the end."""
    rows = {}
    for row in engine.results("q").to_pylist():
        pair = row["k"], row["v"]
        rows[pair] = rows.get(pair, 0) + row["weight"]
    assert all(count in (0, 1) for count in rows.values())
    return sorted((pair for pair, count in rows.items() if count), key=str)


# -- an error ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda engine: engine.push("R", [(1, "b")]),
        lambda engine: engine.push("R", [(1, "a")]),
        lambda engine: engine.push("R", [(3, "x"), (4, "y"), (3, "z")]),
        lambda engine: engine.push("R", [(None, "x"), (None, "y")]),
        lambda engine: engine.execute("INSERT INTO R VALUES (5, 'e'), (1, 'b')"),
        lambda engine: engine.execute("UPDATE R SET k = 1"),
    ],
)
def test_a_second_row_of_a_key_is_refused_and_nothing_is_done(change):
    with Engine({"validate": "on"}) as engine:
        engine.execute(S + declared() + READ)
        engine.push("R", [(1, "a"), (2, "b")])
        engine.push("S", [(5,)])
        with pytest.raises(MillpondError, match=r"relation R: at \d+ there are two rows with the"):
            change(engine)
        engine.push("R", [(7, "g")])
        engine.execute("DELETE FROM R WHERE k = 2")
        engine.push("R", [(2, "c")])
        engine.execute("UPDATE R SET k = 3 - k WHERE k < 3")
        engine.finish()
        assert content(engine) == [(1, "c"), (2, "a"), (7, "g")]


def test_the_error_names_relation_key_time_and_the_way_out():
    with Engine() as engine:
        engine.execute("CREATE RELATION P (i INT, s STRING, d DATE, PRIMARY KEY (i, s))")
        engine.push("P", [(1, "a", "2024-01-01"), (1, None, None)])
        with pytest.raises(MillpondError) as caught:
            engine.push("P", [(1, "b", None), (1, None, "2024-02-29")])
    assert str(caught.value) == (
        "relation P: at the beginning there are two rows with the key i = 1, s = None: "
        "(1, None, None) and (1, None, datetime.date(2024, 2, 29)); remove one at that time, or "
        "declare the PRIMARY KEY with ON CONFLICT REPLACE (the later row stays) or NOT ENFORCED "
        "(both do)"
    )


def test_within_an_instant_a_key_may_be_there_twice():
    with Engine({"validate": "on"}) as engine:
        engine.execute(declared(options=CHANGES) + READ)
        engine.push_changes("R", [(1, "+", (1, "a")), (3, "+", (1, "b"))])
        engine.push_changes("R", [(3, "-", (1, "a"))])
        engine.push_changes("R", [(4, "+", (2, "b"))])
        engine.push_changes("R", [(4, "+", (2, "c"))])
        for end in (
            lambda: engine.push_changes("R", [(5, "+", (9, "z"))]),
            lambda: engine.advance("R", 4),
            engine.finish,
        ):
            with pytest.raises(MillpondError, match="at 4 there are two rows with the key k = 2"):
                end()
        engine.push_changes("R", [(4, "-", (2, "b")), (5, "+", (9, "z"))])
        engine.finish()
        assert content(engine) == [(1, "b"), (2, "c"), (9, "z")]


def test_a_key_of_several_instants_of_one_push_is_looked_at_at_the_end_of_each():
    with Engine() as engine:
        engine.execute(declared(options=CHANGES) + READ)
        with pytest.raises(MillpondError, match="at 2 there are two rows with the key k = 1"):
            engine.push_changes(
                "R", [(3, "-", (1, "a")), (2, "+", (1, "b")), (1, "+", (1, "a")), (4, "+", (2, ""))]
            )
        engine.push_changes("R", [(3, "-", (1, "a")), (3, "+", (1, "b")), (1, "+", (1, "a"))])
        engine.finish()
        assert content(engine) == [(1, "b")]


def test_what_is_no_number_is_one_key_and_both_zeros_are():
    with Engine() as engine:
        engine.execute("CREATE RELATION D (k DOUBLE PRIMARY KEY)")
        for pair in ([(float("nan"),), (float("nan"),)], [(0.0,), (-0.0,)]):
            with pytest.raises(MillpondError, match="two rows with the key k = "):
                engine.push("D", pair)
            engine.push("D", pair[:1])
            with pytest.raises(MillpondError, match="two rows with the key k = "):
                engine.push("D", pair[1:])


# -- where rows come from ----------------------------------------------------------------------


def write(path, rows):
    path.write_text("".join(f"{','.join(map(str, row))}\n" for row in rows))


def test_the_content_of_a_file_is_one_instant(tmp_path):
    rows = [(number % 700, number) for number in range(1_000)]
    write(tmp_path / "r.csv", rows)
    with Engine({"page_rows": 300}, directory=tmp_path) as engine:
        with pytest.raises(MillpondError, match="at the beginning there are two rows with the key"):
            engine.execute(declared(source="FROM csv('r.csv')"))
        engine.execute(declared("ON CONFLICT REPLACE", source="FROM csv('r.csv')") + READ + S)
        engine.finish()
        assert content(engine) == sorted(((k, str(v)) for k, v in dict(rows).items()), key=str)


CHANGED = [(1, "+", 1, "a"), (2, "+", 1, "b"), (2, "-", 1, "a"), (3, "+", 2, "c")]
HEAD = [("ts", "op", "k", "v")]


def stopped(tmp_path, page_rows):
    """A store of an engine that has met a conflict in a file, twice."""
    write(tmp_path / "r.csv", [*HEAD, *CHANGED, (3, "+", 2, "d"), (4, "+", 3, "z")])
    with Engine({"page_rows": page_rows}, directory=tmp_path, store=tmp_path / "store") as engine:
        source = "FROM csv('r.csv', header = true)"
        engine.execute(declared(source=source, options=CHANGES) + READ)
        for _ in range(2):
            with pytest.raises(MillpondError, match="at 3 there are two rows with the key k = 2"):
                engine.finish()


@pytest.mark.parametrize("page_rows", [1, 5])
def test_a_source_stops_at_a_conflict_and_goes_on_when_it_is_mended(tmp_path, page_rows):
    stopped(tmp_path, page_rows)
    with Engine({"page_rows": page_rows}, directory=tmp_path, store=tmp_path / "store") as engine:
        with pytest.raises(MillpondError, match="at 3 there are two rows with the key k = 2"):
            engine.finish()
        engine.push_changes("R", [(3, "-", (2, "d"))])
        engine.finish()
        assert content(engine) == [(1, "b"), (2, "c"), (3, "z")]


def test_of_a_page_with_a_conflict_nothing_is_taken(tmp_path):
    stopped(tmp_path, 100)
    write(tmp_path / "r.csv", [*HEAD, *CHANGED, (3, "+", 4, "d"), (4, "+", 3, "z")])
    with Engine(directory=tmp_path, store=tmp_path / "store") as engine:
        engine.finish()
        assert content(engine) == [(1, "b"), (2, "c"), (3, "z"), (4, "d")]


def test_over_http_a_conflict_is_refused_with_the_reason():
    with running(declared() + S) as server:
        assert (
            server.http.post("/api/relations/R/rows", json=[{"k": 1, "v": "a"}]).status_code < 300
        )
        answer = server.http.post("/api/relations/R/rows", json=[{"k": 1, "v": "b"}])
        assert answer.status_code == 400
        assert "two rows with the key k = 1" in answer.text


# -- the later row -----------------------------------------------------------------------------


def replaced(seed, policy, options, store=None):
    """Rows of few keys, in pieces of their own, with restarts; and what is there in the end."""
    data, rng, model, now = random.Random(3), random.Random(seed), {}, 0
    settings = {"validate": "on", "driver_rows": 10**9}
    engine = Engine(settings, store=store)
    engine.execute(S + declared(policy, options) + READ)
    changes = []
    for _ in range(120):
        now += data.randrange(2)
        key = data.randrange(6)
        if key in model and data.random() < 0.3:
            changes.append((now, "-", (key, model.pop(key))))
        else:
            model[key] = data.choice("abc")
            changes.append((now, "+", (key, model[key])))
    while changes:
        size = rng.choice((1, 2, 7, 20))
        engine.push_changes("R", changes[:size])
        changes = changes[size:]
        if rng.random() < 0.5:
            engine.run_until_idle()
        if store is not None and rng.random() < 0.2:
            if rng.random() < 0.5:
                engine.compact_log()
            engine.close()
            engine = Engine(settings, store=store)
    engine.finish()
    found = sorted(map(str, engine.results("q").to_pylist()))
    assert content(engine) == sorted(model.items(), key=str)
    engine.close()
    return found


def test_a_row_takes_the_place_of_the_one_with_its_key_in_any_pieces(tmp_path):
    replace = "ON CONFLICT REPLACE"
    expected = replaced(0, replace, CHANGES)
    assert replaced(1, replace, CHANGES) == expected
    assert replaced(2, replace, CHANGES, tmp_path / "store") == expected


def test_pushes_and_statements_replace_too_and_the_same_row_is_no_change():
    with Engine({"validate": "on"}) as engine:
        engine.execute(S + declared("ON CONFLICT REPLACE") + READ)
        engine.push("R", [(1, "a"), (2, "b"), (1, "c")])
        engine.push("S", [(5,)])
        engine.execute("INSERT INTO R VALUES (1, 'd'), (3, 'e')")
        engine.push("S", [(9,)])
        before = engine.inputs.relation("R").changed_rows
        engine.push("R", [(1, "d"), (3, "e")])
        assert engine.inputs.relation("R").changed_rows == before
        engine.execute("UPDATE R SET k = 3 WHERE k = 2")
        engine.finish()
        assert content(engine) == [(1, "d"), (3, "b")]


def test_days_that_python_does_not_know_are_replaced():
    with Engine() as engine:
        engine.execute("CREATE RELATION D (k INT PRIMARY KEY ON CONFLICT REPLACE, d DATE)")
        engine.execute("CREATE QUERY q AS RELATION SELECT k, d FROM D;" + S)
        for day in (4_000_000, 4_000_001, 4_000_001):
            days = pa.array([day], pa.int32()).cast(pa.date32())
            engine.push("D", pa.table({"k": pa.array([1], pa.int32()), "d": days}))
        engine.finish()
        assert engine.inputs.relation("D").content()["c1"].cast(pa.int32()).to_pylist() == [
            4_000_001
        ]


# -- a remark ----------------------------------------------------------------------------------


def test_a_key_that_is_not_enforced_is_a_remark():
    with Engine() as engine:
        engine.execute(declared("NOT ENFORCED"))
        engine.push("R", [(1, "a"), (1, "a"), (1, "b")])
        assert sum(engine.inputs.relation("R").content()["_w"].to_pylist()) == 3


@pytest.mark.parametrize("is_compacted", [False, True])
def test_in_a_store_of_before_a_key_stays_a_remark(tmp_path, monkeypatch, is_compacted):
    with monkeypatch.context() as before:
        before.setattr("millpond.sharing.statement._checks_key", lambda action: False)
        with Engine(store=tmp_path) as engine:
            engine.execute(declared())
            engine.push("R", [(1, "a"), (1, "b")])
            if is_compacted:
                engine.compact_log()
    with Engine(store=tmp_path) as engine:
        engine.execute(declared())
        engine.push("R", [(1, "c")])
        engine.execute("CREATE RELATION New (k INT PRIMARY KEY)")
        engine.push("New", [(1,)])
    with Engine(store=tmp_path) as engine:
        engine.push("R", [(1, "c")])
        with pytest.raises(MillpondError, match=r"relation New: .* two rows with the key k = 1"):
            engine.push("New", [(1,)])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("k INT PRIMARY KEY ON CONFLICT IGNORE", "expected REPLACE before 'IGNORE'"),
        ("k INT PRIMARY KEY NOT NULL", "NOT NULL is not supported"),
        ("k INT, PRIMARY KEY (k) ON ERROR", "expected CONFLICT before 'ERROR'"),
    ],
)
def test_what_is_no_policy_of_a_key_is_refused(text, complaint):
    with Engine() as engine, pytest.raises(MillpondError, match=complaint):
        engine.execute(f"CREATE RELATION R ({text})")

"""Constraints that are dropped or widened while queries rely on them: what was freed stays freed,
so what would meet it is put aside until nothing is missing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.execution.operators import freeing
from millpond.storage import state
from tests import changing

WINDOWS = "SELECT A.v, B.v AS w FROM A [RANGE 10], B [RANGE 10] WHERE A.id = B.id"
UNBOUNDED = "SELECT A.v, B.v AS w FROM A, B WHERE A.id = B.id"


@pytest.fixture(autouse=True)
def _freed_at_once(monkeypatch):
    monkeypatch.setattr(state, "COMPACT_ROWS", 0)
    monkeypatch.setattr(freeing, "COMPACT_ROWS", 1)


def running(query, *constraints, store=None):
    """Two streams, of which B has constraints, and a query."""
    engine = Engine({"validate": "on"}, store=store)
    for name, own in (("A", ""), ("B", " ".join(constraints))):
        engine.execute(f"CREATE STREAM {name} (t BIGINT, id INT, v INT) TIMESTAMP BY t {own}")
    engine.execute(f"CREATE QUERY q AS {query}")
    return engine


def step(engine, time, **rows):
    """Tuples of streams at a time, which is over then."""
    for name, ids in rows.items():
        engine.push(name, [(time, each, 100 * time + each) for each in ids])
    for name in "AB":
        engine.advance(name, time)
    engine.run_until_idle()


def rise(engine, times, a=True):
    """Numbers that rise in both streams, or in B alone; in A the one before comes too."""
    for time in times:
        step(engine, time, A=[time - 1, time] if a else [], B=[time])


def shown(engine):
    rows = engine.execute("SHOW CONSTRAINTS")[0].to_pylist()
    return [(row["name"], row["state"], row["complete from"]) for row in rows if row["name"]]


def aside(engine, name="B"):
    return [(row["id"], row["violates"]) for row in engine.violating(name).to_pylist()]


KINDS = {
    "ordered": "ORDERED BY (id) WITHIN 0 ROWS",
    "clustered": "CLUSTERED BY (id) WITHIN 0 ROWS",
    "unique": "UNIQUE (id)",
    "references": "REFERENCES A (id) WITHIN 2",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_compacted", [False, True])
def test_what_was_freed_is_not_met_until_it_would_have_ended(kind, is_compacted, tmp_path):
    with running(
        WINDOWS, f"CONSTRAINT c {KINDS[kind]} ON VIOLATION COUNT", store=tmp_path
    ) as engine:
        rise(engine, range(1, 9))
        freed = sum(row["rows freed"] for row in engine.execute("SHOW CONSTRAINTS")[0].to_pylist())
        assert freed > 0
        (answer,) = engine.execute("ALTER STREAM B DROP CONSTRAINT c")
        assert answer.to_pylist() == [{"constraint": "c", "complete from": "time 19"}]
        assert shown(engine) == [("c", "dropped", "time 19")]
        if is_compacted:
            engine.compact_log()
    with Engine({"validate": "on"}, store=tmp_path) as engine:
        assert shown(engine) == [("c", "dropped", "time 19")]
        asked, name = ("A", "B.c (dropped)") if kind == "references" else ("B", "c (dropped)")
        step(engine, 9, **{asked: [2, 8]})
        step(engine, 18, **{asked: [3]})
        step(engine, 19, **{asked: [4], "AB".strip(asked): [4, 5]})
        step(engine, 20, **{asked: [5]})
        assert [each for each in aside(engine, asked) if each[0] != 8] == [(2, name), (3, name)]
        assert shown(engine) == []
        engine.finish()
        found = sorted(str(row) for row in engine.results("q").to_pylist())
        left = [row["v"] for row in engine.violating(asked).to_pylist()]
    assert found == plain_answers(left, asked)


def plain_answers(left, asked):
    """The same without a constraint, and without the tuples that were put aside."""
    with running(WINDOWS) as engine:
        rise(engine, range(1, 9))
        more = ((9, asked, [2, 8]), (18, asked, [3]), (19, asked, [4]))
        for time, name, ids in more:
            kept = [each for each in ids if 100 * time + each not in left]
            rows = {name: kept} | ({"AB".strip(asked): [4, 5]} if time == 19 else {})
            step(engine, time, **rows)
        step(engine, 20, **{asked: [5]})
        engine.finish()
        return sorted(str(row) for row in engine.results("q").to_pylist())


@pytest.mark.parametrize("early", [0, 1])
def test_what_is_let_in_one_tick_too_early_is_missed(early):
    with running(WINDOWS, f"CONSTRAINT c {KINDS['ordered']} ON VIOLATION COUNT") as engine:
        rise(engine, range(1, 9))
        engine.execute("ALTER STREAM B DROP CONSTRAINT c")
        remnants = engine.inputs.streams["b"].remnants
        ((remnant, owner),) = remnants.values()
        remnants[remnant.name] = replace(remnant, until=remnant.until - early), owner
        step(engine, 18, B=[7])
        engine.finish()
        put_aside, answered = aside(engine), len(engine.results("q").to_pylist())
    with running(WINDOWS) as engine:
        rise(engine, range(1, 9))
        step(engine, 18, B=[] if put_aside else [7])
        engine.finish()
        is_right = answered == len(engine.results("q").to_pylist())
    assert (len(put_aside), is_right) == (1 - early, not early)


def test_what_no_window_lets_go_cannot_be_dropped_until_its_query_is():
    with running(UNBOUNDED, "CONSTRAINT c ORDERED BY (id) WITHIN 0 ROWS") as engine:
        rise(engine, range(1, 9))
        with pytest.raises(CqlError, match="c of stream B has freed rows of q that no window lets"):
            engine.execute("ALTER STREAM B DROP CONSTRAINT c")
        engine.drop("q")
        assert engine.execute("ALTER STREAM B DROP CONSTRAINT c") == []
        step(engine, 9, B=[1])
        assert aside(engine) == []


@pytest.mark.parametrize("kind", ["ordered", "clustered", "unique"])
def test_a_wider_constraint_takes_over(kind):
    wide = KINDS[kind].replace(" WITHIN 0 ROWS", "") + " WITHIN 4 ROWS"
    narrow = f"CONSTRAINT c {KINDS[kind]} ON VIOLATION COUNT"
    with running(UNBOUNDED, narrow, f"CONSTRAINT wide {wide} ON VIOLATION COUNT") as engine:
        rise(engine, range(1, 9))
        (answer,) = engine.execute("ALTER STREAM B DROP CONSTRAINT c")
        assert answer.to_pylist() == [{"constraint": "c", "complete from": "row 12"}]
        with pytest.raises(CqlError, match="wide of stream B is to forbid what c did"):
            engine.execute("ALTER STREAM B DROP CONSTRAINT wide")
        step(engine, 9, B=[6])
        assert aside(engine) == [(6, "c (dropped)")]
        rise(engine, range(10, 14), a=False)
        assert shown(engine) == [("wide", "declared", "")]
        step(engine, 14, B=[12, 7], A=[12])
        engine.finish()
        assert aside(engine) == [(6, "c (dropped)"), (7, "wide")]
        assert len(engine.results("q").to_pylist()) == 17


def test_who_relied_on_it_stops_where_that_was_said_and_no_other():
    with running(WINDOWS, "CONSTRAINT c ORDERED BY (id) WITHIN 0 ROWS") as engine:
        engine.execute("CREATE QUERY all_of_b AS SELECT v FROM B [NOW]")
        rise(engine, range(1, 9))
        engine.execute("ALTER STREAM B DROP CONSTRAINT c")
        with pytest.raises(StateError, match=r"breaks constraint c \(dropped\)"):
            step(engine, 9, B=[2])
        assert [failure.query for failure in engine.failures()] == ["q"]


def test_what_is_left_of_a_constraint_goes_with_its_stream(tmp_path):
    with running(WINDOWS, f"CONSTRAINT c {KINDS['references']}", store=tmp_path) as engine:
        rise(engine, range(1, 9))
        engine.execute("ALTER STREAM B DROP CONSTRAINT c")
        assert shown(engine) == [("c", "dropped", "time 19")]
        engine.drop("q")
        engine.drop("B")
        engine.compact_log()
    with Engine({"validate": "on"}, store=tmp_path) as engine:
        engine.push("A", [(9, 2, 0)])
        assert aside(engine, "A") == []


@pytest.mark.parametrize("clause", ["UNIQUE (id) WITHIN 9", "UNIQUE (id) WITHIN 9 ROWS"])
def test_what_is_ahead_of_a_step_has_adhered_to_the_larger_k(clause):
    """A double has come, and is not read yet, when k becomes smaller."""
    with running(UNBOUNDED, f"CONSTRAINT c {clause}") as engine:
        engine.execute("ALTER STREAM B DELAY 9")
        step(engine, 1, A=[7])
        engine.push("B", [(2, 7, 1), (8, 7, 2)])
        smaller = "0 ROWS" if "ROWS" in clause else "0"
        engine.execute(f"ALTER STREAM B ALTER CONSTRAINT c WITHIN {smaller}")
        for time in range(3, 7):
            step(engine, time, A=[100 + time])
        engine.finish()
        assert [row["w"] for row in engine.results("q").to_pylist()] == [1, 2]


def test_a_partner_that_is_late_has_k_grow_where_it_is_referenced():
    """What references has come by then, and is read when k has grown and time has passed."""
    with running(UNBOUNDED, f"CONSTRAINT c {KINDS['references']} ON VIOLATION WIDEN") as engine:
        step(engine, 1, B=[1])
        engine.push("B", [(8, 7, 87), (8, 8, 88)])
        engine.advance("B", 13)
        engine.push("A", [(9, 1, 91)])
        told = engine.execute("SHOW CONSTRAINTS")[0].to_pylist()[0]
        assert (told["within"], told["complete from"]) == (
            "2 microseconds, grown to 8 microseconds",
            "time 15",
        )
        step(engine, 13)
        step(engine, 14, A=[8, 7])
        engine.finish()
        assert aside(engine, "A") == [(1, "B.c")]
        assert sorted(row["w"] for row in engine.results("q").to_pylist()) == [87, 88]


@pytest.mark.parametrize("seed", [3, 8])
def test_whatever_changes_answers_are_those_of_what_was_not_put_aside(seed, tmp_path):
    rng = random.Random(seed)
    rows, queries = changing.rows_of(rng, 40), changing.chosen(rng)
    way = {"changes": True, "store": str(tmp_path), "restarts": True}
    found, put_aside, said = changing.answers(seed, rows, queries, **way)
    left = [each for each in rows if each[1][2] not in put_aside]
    assert said
    assert changing.answers(seed + 1, left, queries, changes=False)[0] == found


# -- what stands beside a constraint that is dropped ----------------------------------------------


@pytest.mark.parametrize("kind", ["UNIQUE (id){}", "CLUSTERED BY (id){}"])
def test_who_was_not_asked_as_long_does_not_take_over(kind):
    """It does not know of the values by which the other has freed rows."""
    first = kind.format("" if kind.startswith("UNIQUE") else " WITHIN 0 ROWS")
    with running(UNBOUNDED, f"CONSTRAINT c {first} ON VIOLATION COUNT") as engine:
        rise(engine, range(1, 9))
        wide = kind.format(" WITHIN 4 ROWS")
        engine.execute(f"ALTER STREAM B ADD CONSTRAINT wide {wide} ON VIOLATION COUNT")
        with pytest.raises(CqlError, match="missing for ever"):
            engine.execute("ALTER STREAM B DROP CONSTRAINT c")


def test_an_order_takes_over_once_it_forbids_as_much():
    with running(UNBOUNDED, "CONSTRAINT c ORDERED BY (id) WITHIN 0 ROWS ON VIOLATION COUNT") as e:
        rise(e, range(1, 9))
        e.execute(
            "ALTER STREAM B ADD CONSTRAINT w ORDERED BY (id) WITHIN 4 ROWS ON VIOLATION COUNT"
        )
        e.execute("ALTER STREAM B DROP CONSTRAINT c")
        for time in range(9, 13):
            step(e, time, B=[time + 100])
        step(e, 13, B=[3])
        assert aside(e) == [(3, "c (dropped)")]


def test_rows_that_two_constraints_freed_together_are_not_met_when_both_are_dropped():
    query = (
        "SELECT B.v, U.v AS w FROM B [RANGE 100], (SELECT id, v FROM A [RANGE 100] UNION ALL"
        " SELECT id, v FROM C [RANGE 100]) U WHERE B.id = U.id"
    )
    ordered = "CONSTRAINT c ORDERED BY (id) WITHIN 0 ROWS ON VIOLATION COUNT"
    with Engine({"validate": "on"}) as engine:
        for name, own in (("A", ordered), ("B", ""), ("C", ordered)):
            engine.execute(f"CREATE STREAM {name} (t BIGINT, id INT, v INT) TIMESTAMP BY t {own}")
        engine.execute(f"CREATE QUERY q AS {query}")
        for time in range(1, 9):
            for name in "ABC":
                engine.push(name, [(time, time, time)])
            engine.run_until_idle()
        for name in "AC":
            (answer,) = engine.execute(f"ALTER STREAM {name} DROP CONSTRAINT c")
            assert answer.to_pylist() == [{"constraint": "c", "complete from": "time 108"}]
        engine.push("C", [(9, 3, 9)])
        assert aside(engine, "C") == [(3, "c (dropped)")]


def test_who_has_taken_over_can_be_dropped_too(tmp_path):
    own = "CONSTRAINT {} REFERENCES A (id) WITHIN {} ROWS ON VIOLATION COUNT"
    with running(UNBOUNDED, own.format("c", 0), own.format("wide", 4), store=tmp_path) as engine:
        for time in range(1, 9):
            step(engine, time, A=[time + 1000], B=[time])
        engine.execute("ALTER STREAM B DROP CONSTRAINT c")
        for time in range(9, 16):
            step(engine, time, B=[time + 100])
        engine.drop("q")
        engine.execute("ALTER STREAM B DROP CONSTRAINT wide")
        assert shown(engine) == []
        engine.push("A", [(16, 3, 1)])
        assert aside(engine, "A") == []
    with Engine(store=tmp_path) as engine:
        engine.validate()


def test_a_larger_k_of_references_counts_once_both_streams_have_come_so_far():
    own = "CONSTRAINT c REFERENCES A (id) WITHIN 2 ON VIOLATION COUNT"
    with running(UNBOUNDED, own) as engine:
        for time in range(1, 11):
            step(engine, time, A=[time + 1000], B=[time])
        engine.execute("ALTER STREAM B ALTER CONSTRAINT c WITHIN 100")
        engine.push("B", [(300, 999, 0)])
        engine.advance("B", 300)
        engine.run_until_idle()
        assert [each[2] for each in shown(engine)] == ["time 109"]
        engine.push("A", [(11, 2, 77)])
        assert aside(engine, "A") == [(2, "B.c")]


def test_how_far_the_quicker_stream_is_does_not_matter():
    own = "CONSTRAINT c ORDERED BY (id) WITHIN 0 ROWS ON VIOLATION COUNT"
    with running(WINDOWS, own) as engine:
        rise(engine, range(1, 9))
        engine.advance("A", 1_000)
        engine.run_until_idle()
        (answer,) = engine.execute("ALTER STREAM B DROP CONSTRAINT c")
        assert answer.to_pylist() == [{"constraint": "c", "complete from": "time 19"}]


def test_another_constraint_that_goes_does_not_end_what_clusters_free(monkeypatch):
    monkeypatch.setattr(freeing, "COMPACT_ROWS", 100)
    own = (
        "CONSTRAINT c CLUSTERED BY (id) WITHIN 0 ROWS",
        "CONSTRAINT u UNIQUE (id, v) WITHIN 5 ROWS",
    )
    with running(UNBOUNDED, *own) as engine:
        for first in range(0, 3_000, 100):
            if first == 1_500:
                engine.execute("ALTER STREAM B DROP CONSTRAINT u")
                freed = engine.execute("SHOW CONSTRAINTS")[0].to_pylist()[0]["rows freed"]
            for name in "AB":
                engine.push(name, [(i, i, i) for i in range(first, first + 100)])
            engine.run_until_idle()
        now = engine.execute("SHOW CONSTRAINTS")[0].to_pylist()[0]["rows freed"]
        assert now - freed > 1_000


@pytest.mark.parametrize("kind", ["UNIQUE (id)", "ORDERED BY (id)"])
def test_k_that_has_grown_is_altered_back_to_the_declared_one(kind):
    with running(UNBOUNDED, f"CONSTRAINT c {kind} WITHIN 2 ROWS ON VIOLATION WIDEN") as engine:
        engine.push("B", [(i, 100 + i, 0) for i in range(20)] + [(20, 101, 0)])
        engine.execute("ALTER STREAM B ALTER CONSTRAINT c WITHIN 2 ROWS")
        (said,) = engine.execute("SHOW CONSTRAINTS")[0].to_pylist()[:1]
        assert said["within"] == "2 rows"

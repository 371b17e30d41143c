"""Constraints of streams: rows that nothing can meet any more are freed, and no answer changes."""

from __future__ import annotations

import random

import pytest

from millpond import Engine
from millpond.errors import CqlError, MillpondError
from millpond.execution.operators.join import RunningJoin
from millpond.execution.operators.keyed import RunningKeyed
from millpond.intake.orderings import Ordering
from millpond.storage.bounds import Bounds
from millpond.storage.state import COMPACT_ROWS
from tests.execution.in_process import WORKS, InProcess

pytestmark = pytest.mark.slow

STREAMS = ("O", "F", "P")
QUERIES = {
    "two": "SELECT O.id, O.v, F.v FROM O, F WHERE O.id = F.id",
    "on_both": "SELECT O.id, F.t FROM O, F WHERE O.id = F.id AND O.v = F.v",
    "three": "SELECT O.id, F.v, P.v FROM O, F, P WHERE O.id = F.id AND F.id = P.id",
    "ranged": "SELECT O.id, F.v FROM O [RANGE 9], F WHERE O.id = F.id",
    "taken_back": "SELECT O.id FROM O [RANGE 4], F [RANGE 5] WHERE O.id = F.id",
    "sliding": "SELECT O.id FROM O [RANGE 8 SLIDE 4], F WHERE O.id = F.id",
    "itself": "SELECT A.id, B.v FROM O A, O B WHERE A.id = B.id",
    "missing": "SELECT O.id FROM O WHERE NOT EXISTS (SELECT * FROM F WHERE F.id = O.id)",
    "groups": "SELECT id, count(*) AS n, sum(v) AS s, max(v) AS m FROM O GROUP BY id",
    "groups_of_pairs": "SELECT O.id, count(*) AS n FROM O, F WHERE O.id = F.id GROUP BY O.id",
    "once": "SELECT DISTINCT id FROM O WHERE v > 1",
    "other_key": "SELECT O.v, F.t FROM O, F WHERE O.v = F.v AND O.id = F.id + 1",
    "last_rows": "SELECT O.id, F.v FROM O [ROWS 3], F WHERE O.id = F.id",
}
WITHIN = 4


def ordered_rows(rng, count, within=WITHIN):
    """Tuples of which each comes at most so many rows behind a larger one, and some just as far."""
    rows, peaks = [], []
    for number in range(count):
        limit = max(peaks[: max(0, number - within)], default=0)
        value = max(limit, number // 2 - rng.randrange(4)) if rng.random() < 0.8 else limit
        peaks.append(value)
        rows.append((number // 3, value, rng.randrange(6)))
    return rows


def declared(clause):
    return ";".join(
        f"CREATE STREAM {name} (t BIGINT, id INT, v INT) TIMESTAMP BY t {clause}"
        for name in STREAMS
    )


def answers(clause, seed, *, count=45, store=None, restarts=False, **settings):
    """What all queries answer when tuples come in pieces of their own."""
    rng, data = random.Random(seed), random.Random(0)
    left = {name: ordered_rows(data, count) for name in STREAMS}
    engine = Engine(settings, store=store)
    engine.execute(declared(clause))
    for name, text in QUERIES.items():
        engine.execute(f"CREATE QUERY {name} AS {text}")
    while any(left.values()):
        name = min(STREAMS, key=lambda each: (left[each] or [(count,)])[0][0])
        size = rng.choice((1, 3, 9))
        piece, left[name] = left[name][:size], left[name][size:]
        engine.push(name, piece)
        if rng.random() < 0.5 and all(left.values()):
            for each in STREAMS:
                engine.advance(each, left[each][0][0] - 1)
        if rng.random() < 0.4:
            engine.run_until_idle()
        if restarts and rng.random() < 0.15:
            engine.close()
            engine = Engine(settings, store=store)
    engine.finish()
    found = {name: sorted(map(str, engine.results(name).to_pylist())) for name in QUERIES}
    assert not any(
        engine.violating(name).num_rows or engine.late(name).num_rows for name in STREAMS
    )
    engine.close()
    return found


@pytest.fixture(scope="module")
def expected():
    return answers("", 0)


ORDERED = f"ORDERED BY (id) WITHIN {WITHIN} ROWS"


@pytest.mark.parametrize("seed", range(1, 3))
def test_answers_are_those_without_the_constraint(expected, seed):
    assert answers(ORDERED, seed) == expected


@pytest.mark.parametrize("clause", ["ORDERED BY (id) WITHIN 2", "ORDERED BY (id) WITHIN 9 ROWS"])
def test_in_time_and_with_more_room_too(expected, clause):
    assert answers(clause, 1) == expected


def test_executors_strategies_and_queues_do_not_matter(expected, monkeypatch):
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    WORKS.clear()
    assert answers(ORDERED, 2, driver_rows=0, place_by="rows", strategy="chain") == expected
    assert WORKS["RunJoin"]
    assert (
        answers(ORDERED, 3, linear="apart", sharing="off", strategy="round-robin", validate="on")
        == expected
    )


def test_a_restart_does_not_matter(expected, tmp_path):
    assert answers(ORDERED, 5, store=tmp_path / "store", restarts=True) == expected


# -- no row too early -------------------------------------------------------------------------


def sharp(clause, within=2, rounds=40):
    """What a join answers whose every third row comes as far behind as it may, each row alone."""
    values = []
    for number in range(rounds):
        limit = max(values[: max(0, number - within)], default=0)
        values.append(limit if number % 3 == 2 else 2 * number)
    with Engine() as engine:
        engine.execute(declared(clause))
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        for number, value in enumerate(values):
            engine.push("O", [(number, 2 * number, number)])
            engine.push("F", [(number, value, number)])
            for name in STREAMS:
                engine.advance(name, number)
            engine.run_until_idle()
        (join,) = joins(engine)
        return engine.results("q").to_pylist(), join.freed_rows


def test_rows_that_come_as_late_as_they_may_are_answered():
    answered, freed = sharp("ORDERED BY (id) WITHIN 2 ROWS")
    assert answered == sharp("")[0]
    assert freed > 50


def test_what_is_freed_one_row_too_early_is_missed(monkeypatch):
    """If the bound rose one row earlier than it may, rows would be missing: k - 1 is too little."""
    bound = Ordering.bound
    monkeypatch.setattr(Ordering, "bound", lambda self, place: bound(self, place + 1))
    assert sharp("ORDERED BY (id) WITHIN 2 ROWS")[0] != sharp("")[0]


def test_what_is_freed_at_the_bound_is_missed(monkeypatch):
    """If rows went whose key is the bound itself, some would be missing."""
    bound = Ordering.bound
    monkeypatch.setattr(Ordering, "bound", lambda self, place: (bound(self, place) or -1) + 1)
    assert sharp("ORDERED BY (id) WITHIN 2 ROWS")[0] != sharp("")[0]


def test_what_is_freed_before_its_time_is_missed(monkeypatch):
    """If a bound held for tuples that have come and are still to be read, some would be missing."""
    note = Bounds.note
    monkeypatch.setattr(Bounds, "note", lambda self, after, bound: note(self, after - 10, bound))
    rows = [(n, n // 2, n) for n in range(40)]
    found = []
    for clause in ("DELAY 100 ORDERED BY (id) WITHIN 0 ROWS", "DELAY 100"):
        with Engine() as engine:
            engine.execute(declared(clause))
            engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
            engine.push("O", rows)
            engine.push("F", rows)
            for time in range(40):
                for name in STREAMS:
                    engine.advance(name, time)
                engine.run_until_idle()
            found.append(engine.results("q").num_rows)
    assert found[0] < found[1]


# -- how much is kept ------------------------------------------------------------------------


def joins(engine):
    return [each for each in engine.runtime.running.values() if isinstance(each, RunningJoin)]


def retained(engine):
    """The rows that the only join keeps, on either side."""
    (join,) = joins(engine)
    counts = [sum(d.rows for deltas in v.buckets for d in deltas) for v in join.state.versions]
    return counts, join.buckets, join.freed_rows


@pytest.mark.parametrize("driver_rows", [10**9, 0])
def test_an_unbounded_join_keeps_no_more_than_it_says(driver_rows, monkeypatch):
    """At most twice the rows that are not below the bound, and some rows a bucket."""
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    pages, rows, within = 25, 1_500, 20
    settings = {"driver_rows": driver_rows, "place_by": "rows"}
    with Engine(settings) as engine:
        engine.execute(declared(f"ORDERED BY (id) WITHIN {within} ROWS"))
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        for page in range(pages):
            for name in STREAMS[:2]:
                start = page * rows
                numbers = range(start, start + rows)
                engine.push(name, [(n, max(0, n - n * 7 % within), n) for n in numbers])
            engine.run_until_idle()
            counts, buckets, freed = retained(engine)
            needed = 2 * rows + 2 * within  # what came since the last bound that all have passed
            assert max(counts) <= 2 * needed + COMPACT_ROWS * buckets
        assert freed > 2 * pages * rows - 2 * (2 * needed + COMPACT_ROWS * buckets)
        assert engine.result_count("q") > pages * rows / 2
        (shown,) = engine.execute("SHOW CONSTRAINTS")[0].slice(0, 1).to_pylist()
        assert shown["rows freed"] == freed
        assert shown["measured"] == "17 rows"


@pytest.mark.parametrize("driver_rows", [10**9, 0])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT id, count(*) AS n, max(v) AS m FROM O GROUP BY id", "frees groups with id"),
        ("SELECT DISTINCT id FROM O", "frees groups with id"),
    ],
)
def test_groups_that_are_final_go(driver_rows, text, told, monkeypatch):
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    pages, rows, within, found = 20, 2_000, 20, []
    settings = {"driver_rows": driver_rows, "place_by": "rows"}
    for clause in (f"ORDERED BY (id) WITHIN {within} ROWS", ""):
        with Engine(settings) as engine:
            engine.execute(declared(clause))
            engine.execute(f"CREATE QUERY q AS {text}")
            for page in range(pages):
                numbers = range(page * rows, (page + 1) * rows)
                engine.push("O", [(n, max(0, n - n * 7 % within), n) for n in numbers])
                engine.run_until_idle()
                if clause:
                    assert groups(engine) <= 2 * (2 * rows + within) + COMPACT_ROWS * 2
            found.append(engine.results("q").to_pylist())
            if clause:
                assert told in str(engine.explain("q"))
                held = engine.runtime.states.bytes
                (shown,) = engine.execute("SHOW CONSTRAINTS")[0].slice(0, 1).to_pylist()
                assert shown["rows freed"] > 10_000
            elif driver_rows:
                assert engine.runtime.states.bytes > 2 * held
    assert found[0] == found[1]


def groups(engine):
    """The rows that the only keyed operator keeps."""
    (keyed,) = (r for r in engine.runtime.running.values() if isinstance(r, RunningKeyed))
    return sum(d.rows for deltas in keyed.state.version.buckets for d in deltas)


def test_explain_says_what_frees_which_rows():
    with Engine() as engine:
        engine.execute(declared("CONSTRAINT rising ORDERED BY (id) WITHIN 5 ROWS"))
        (plan,) = engine.execute(f"EXPLAIN PHYSICAL {QUERIES['two']}")
        assert "op1: F.rising frees rows of its left side with id < bound; it keeps" in str(plan)
        engine.execute(f"CREATE QUERY q AS {QUERIES['three']}")
        told = str(engine.explain("q"))
        assert "O.rising, F.rising frees" in told or "F.rising, O.rising frees" in told
        (plan,) = engine.execute("EXPLAIN PHYSICAL SELECT O.id FROM O, F WHERE O.v = F.v")
        assert "frees" not in str(plan)


# -- violations ------------------------------------------------------------------------------


def broken(policy, store=None):
    engine = Engine({"validate": "on"}, store=store)
    engine.execute(declared(f"ORDERED BY (id) WITHIN 1 ROW ON VIOLATION {policy}"))
    engine.execute(f"CREATE QUERY joined AS {QUERIES['two']}")
    engine.execute("CREATE QUERY alone AS SELECT id FROM O")
    for name in ("O", "F"):
        engine.push(name, [(t, t, t) for t in range(5)])
    engine.push("O", [(5, 2, 9), (6, 4, 9)])
    return engine


def test_a_violation_stops_those_that_rely_on_the_constraint_and_no_other():
    with broken("STOP") as engine:
        engine.push("F", [(7, 7, 7)])
        with pytest.raises(MillpondError, match=r"O: a tuple breaks constraint ordered_by_id; it"):
            engine.finish()
        engine.finish()
        assert [failure.query for failure in engine.failures()] == ["joined"]
        assert not engine.result_count("joined")
        assert [row["id"] for row in engine.results("alone").to_pylist()] == [0, 1, 2, 3, 4, 4]
        assert engine.violating("O").to_pylist() == [
            {"t": 5, "id": 2, "v": 9, "violates": "ordered_by_id", "missed_by": "alone"}
        ]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_violation_is_counted_and_put_aside_also_over_a_restart(tmp_path, is_compacted):
    with broken("COUNT", tmp_path / "store") as engine:
        seen, peaks = engine.violating("O"), engine.inputs.streams["o"].orderings
        if is_compacted:
            engine.compact_log()
    with Engine({"validate": "on"}, store=tmp_path / "store") as engine:
        assert engine.violating("O").equals(seen)
        assert engine.inputs.streams["o"].orderings == peaks
        engine.push("O", [(7, 3, 9), (8, 9, 9)])
        engine.finish()
        assert [row["id"] for row in engine.violating("O").to_pylist()] == [2, 3]
        (shown,) = (
            row for row in engine.execute("SHOW CONSTRAINTS")[0].to_pylist() if row["stream"] == "O"
        )
        assert (shown["within"], shown["measured"], shown["violations"]) == ("1 rows", "2 rows", 2)
        assert engine.entities().get("stream", "O").get("violating") == 2
        assert len(engine.results("joined")) == 6
        assert engine.violating("O")["missed_by"].to_pylist() == ["joined, alone"] * 2


def test_a_query_that_was_stopped_stays_stopped_over_a_restart(tmp_path):
    broken("STOP", tmp_path / "store").close()
    with Engine(store=tmp_path / "store") as engine:
        assert [failure.query for failure in engine.failures()] == ["joined"]


def test_a_violating_tuple_moves_time_and_takes_no_number():
    with Engine() as engine:
        engine.execute(declared("ORDERED BY (id) WITHIN 0 ROWS ON VIOLATION COUNT"))
        engine.push("O", [(0, 5, 0), (9, 4, 0), (8, 6, 0), (9, 6, 0)])
        assert engine.inputs.streams["o"].arrived == 2
        assert engine.late("O").num_rows == 1


def test_a_pair_is_new_with_either_of_its_rows(monkeypatch):
    """What is over in one stream frees nothing that meets pairs of it and another one."""
    monkeypatch.setattr("millpond.storage.state.COMPACT_ROWS", 0)
    with Engine() as engine:
        engine.execute(declared(""))
        engine.execute(f"CREATE QUERY q AS {QUERIES['three']}")
        engine.execute(f"ALTER STREAM O ADD {ORDERED}")
        for time in range(20):
            for name in ("O", "P"):
                engine.push(name, [(time, time, 0)])
            engine.advance("F", time)
            engine.run_until_idle()
        engine.push("F", [(20, 3, 1)])
        engine.finish()
        assert [row["id"] for row in engine.results("q").to_pylist()] == [3]


# -- while data flows ------------------------------------------------------------------------


def test_a_constraint_is_added_while_data_flows_and_dropped_if_it_has_freed_nothing():
    with Engine({"validate": "on"}) as engine:
        engine.execute(declared(""))
        engine.push("F", [(0, 9, 0), (1, 1, 0)])
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        engine.execute("ALTER STREAM F ADD CONSTRAINT up ORDERED BY (id) WITHIN 0 ROWS")
        assert "F.up frees" in str(engine.explain("q"))
        engine.push("F", [(2, 2, 0), (3, 4, 0)])
        assert engine.execute("ALTER STREAM F DROP CONSTRAINT UP") == []
        engine.push("F", [(4, 0, 0)])
        assert not engine.violating("F").num_rows
        assert not engine.inputs.queues["stream:f"].bounds


def test_a_column_with_the_name_of_what_is_told_is_refused():
    with Engine() as engine:
        engine.execute("CREATE STREAM T (t BIGINT, id INT, missed_by INT) TIMESTAMP BY t")
        with pytest.raises(CqlError, match='T has a column "missed_by"'):
            engine.execute("CREATE STREAM U (t BIGINT, id INT) REFERENCES T (id) WITHIN 1")
    with Engine() as engine, pytest.raises(CqlError, match='has a column "Violates"'):
        engine.execute("CREATE STREAM S (t BIGINT, Violates INT) ORDERED BY (t) WITHIN 1 ROW")


def test_the_log_of_a_stream_that_rises_has_no_more_than_is_remembered(tmp_path):
    with Engine(store=tmp_path) as engine:
        engine.execute("CREATE STREAM S (t BIGINT) TIMESTAMP BY t ORDERED BY (t) WITHIN 2 ROWS")
        for page in range(3):
            engine.push("S", [(1000 * page + each,) for each in range(1000)])
    sizes = [file.stat().st_size for file in tmp_path.glob("*.log")]
    assert sizes
    assert sum(sizes) < 10_000


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("ADD ORDERED BY (nix) WITHIN 1 ROW", 'no column "nix"'),
        ("ADD ORDERED BY (name) WITHIN 1 ROW", '"name" is a STRING; a stream is ordered by an INT'),
        ("ADD ORDERED BY (id) WITHIN -1 ROWS", "WITHIN cannot be negative"),
        ("ADD ORDERED BY (id) WITHIN 100001 ROWS", "WITHIN is at most 100,000 ROWS"),
        ("ADD ORDERED BY (id) WITHIN 1 ROW", 'has a constraint "ordered_by_id" already'),
        ("ADD CONSTRAINT a@b ORDERED BY (id) WITHIN 1 ROW", "expected ORDERED BY, CLUSTERED"),
        ("ADD ORDERED BY (id) WITHIN 1 ROW ON VIOLATION SKIP", "expected STOP, COUNT or WIDEN"),
        ("ADD UNIQUE (id) AS MEASURED", "unique_id of stream S was not measured: the column"),
        ("ADD SORTED BY (id)", "expected ORDERED BY, CLUSTERED BY, UNIQUE, REFERENCES or FOREIGN"),
        ("DROP CONSTRAINT ordered_by", 'no constraint "ordered_by"; did you mean "ordered_by_id"'),
        ("RENAME", "expected DELAY, IDLE AFTER, AHEAD, KEEP, ADD, ALTER or DROP"),
        (
            "ALTER CONSTRAINT ordered_by_id WITHIN 5 ROWS",
            "ordered_by_id is within a time, and stays",
        ),
        (
            "ADD CONSTRAINT b ORDERED BY (id) AS MEASURED",
            "b of stream S was not measured: the column",
        ),
    ],
)
def test_what_is_no_constraint_is_refused_with_its_place(text, complaint):
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (id INT, name STRING) CONSTRAINT ordered_by_id ORDERED BY (id) "
            "WITHIN 5 SECONDS ON VIOLATION COUNT"
        )
        with pytest.raises(CqlError) as caught:
            engine.execute(f"ALTER STREAM S {text}")
        assert complaint in str(caught.value)
        assert str(caught.value).startswith("line 1, column ")


# -- k that is changed -----------------------------------------------------------------------


def loose_rows(seed, count=40):
    """Tuples of which some come further behind than a small k allows."""
    rng = random.Random(seed)
    return [
        (number // 3, max(0, number // 2 - rng.choice((0, 0, 1, 2, 9))), rng.randrange(4))
        for number in range(count)
    ]


def fed(engine, rows, seed):
    """What queries answer when tuples come in pieces."""
    rng = random.Random(seed)
    for name in ("two", "groups"):
        engine.execute(f"CREATE QUERY {name} AS {QUERIES[name]}")
    place = 0
    while place < 40:
        size = rng.choice((1, 4, 9))
        for name in STREAMS[:2]:
            engine.push(name, rows[name][place : place + size])
        place += size
        engine.run_until_idle()
    engine.finish()
    return [sorted(map(str, engine.results(name).to_pylist())) for name in ("two", "groups")]


@pytest.mark.parametrize("policy", ["WIDEN", "COUNT"])
def test_answers_are_those_without_what_was_put_aside(policy):
    """However tuples are cut; and with WIDEN fewer are put aside."""
    rows, aside, found = {name: loose_rows(name) for name in STREAMS[:2]}, [], []
    for seed in (1, 2):
        with Engine() as engine:
            engine.execute(declared(f"ORDERED BY (id) WITHIN 1 ROW ON VIOLATION {policy}"))
            found.append(fed(engine, rows, seed))
            aside.append({n: engine.violating(n).to_pylist() for n in STREAMS[:2]})
            assert not engine.failures()
    assert aside[0] == aside[1]
    assert found[0] == found[1]
    left = dict(rows)
    for name, broken in aside[0].items():
        for each in broken:
            left[name] = list(left[name])
            left[name].remove((each["t"], each["id"], each["v"]))
    with Engine() as engine:
        engine.execute(declared(""))
        assert fed(engine, left, 3) == found[0]
    count = sum(map(len, aside[0].values()))
    assert count == (16 if policy == "WIDEN" else 22)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_k_that_has_grown_is_told_and_stays_over_a_restart(tmp_path, is_compacted):
    with Engine({"validate": "on"}, store=tmp_path) as engine:
        engine.execute(declared("ORDERED BY (id) WITHIN 2 ROWS ON VIOLATION WIDEN"))
        engine.push("O", [(t, v, 0) for t, v in enumerate([1, 2, 3, 6, 7, 8, 5])])
        told = engine.execute("SHOW CONSTRAINTS")[0].to_pylist()[0]
        assert told["within"] == "2 rows, grown to 4 rows"
        assert told["complete from"] == "row 8"
        if is_compacted:
            engine.compact_log()
    with Engine({"validate": "on"}, store=tmp_path) as engine:
        assert engine.execute("SHOW CONSTRAINTS")[0].to_pylist()[0] == told
        engine.push("O", [(7, 9, 0), (8, 9, 0), (9, 6, 0)])
        assert engine.violating("O").num_rows == 1
        assert engine.execute("SHOW CONSTRAINTS")[0].to_pylist()[0]["complete from"] == ""


@pytest.mark.parametrize("is_compacted", [False, True])
def test_another_k_may_be_said_while_queries_rely_on_it(tmp_path, is_compacted):
    values = [1, 2, 3, 6, 7, 8]
    with Engine({"validate": "on"}, store=tmp_path) as engine:
        engine.execute(declared("ORDERED BY (id) WITHIN 2 ROWS ON VIOLATION COUNT"))
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        engine.push("O", [(t, v, 0) for t, v in enumerate(values)])
        engine.execute("ALTER STREAM O ALTER CONSTRAINT ordered_by_id WITHIN 5 ROWS")
        told = engine.execute("SHOW CONSTRAINTS")[0].to_pylist()[0]
        assert (told["within"], told["complete from"]) == ("5 rows", "row 9")
        engine.push("O", [(6, 5, 0), (7, 6, 0)])  # 6 was forbidden from 5 on: it may be freed
        assert [row["id"] for row in engine.violating("O").to_pylist()] == [5]
        if is_compacted:
            engine.compact_log()
    with Engine({"validate": "on"}, store=tmp_path) as engine:
        engine.push("O", [(8, 6, 0), (9, 6, 0), (10, 5, 0)])
        assert [row["id"] for row in engine.violating("O").to_pylist()] == [5, 5]
        engine.execute("ALTER STREAM O ALTER CONSTRAINT ordered_by_id WITHIN 0 ROWS")
        engine.push("O", [(11, 7, 0), (12, 8, 0)])
        assert [row["id"] for row in engine.violating("O").to_pylist()] == [5, 5, 7]


def test_tuples_that_an_earlier_version_has_put_aside_are_read_with_those_of_now():
    with broken("COUNT") as engine:
        before = engine.violating("O").drop_columns(["missed_by"])
        intake = engine.inputs.streams["o"]
        intake.violating_log.append(intake._aside_page(before, intake._place_after(1, 1)))
        assert engine.violating("O")["missed_by"].to_pylist() == ["joined, alone", None]
        assert engine.violating("O", last_rows=1)["missed_by"].to_pylist() == [None]

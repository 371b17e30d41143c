"""Punctuations of streams: what no tuple is like any more frees rows, and no answer changes."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from millpond import Engine
from millpond.cql.patterns import Values
from millpond.errors import CqlError, InputError, MillpondError, StateError
from millpond.execution.operators.freeing import FreeingOperator
from millpond.execution.operators.join import RunningJoin
from millpond.execution.operators.keyed import RunningKeyed
from millpond.identities import StreamId
from millpond.intake.taking import Taking, admit_elsewhere
from millpond.planning.punctuated import Way
from millpond.storage.punctuations import Punctuations
from millpond.storage.state import COMPACT_ROWS
from tests.execution.in_process import WORKS, InProcess
from tests.punctuating import patterns

STREAMS = ("O", "F", "P")
QUERIES = {
    "two": "SELECT O.id, O.v, F.v FROM O, F WHERE O.id = F.id",
    "on_both": "SELECT O.id, F.t FROM O, F WHERE O.id = F.id AND O.s = F.s",
    "three": "SELECT O.id, F.v, P.v FROM O, F, P WHERE O.id = F.id AND F.id = P.id",
    "ranged": "SELECT O.id, F.v FROM O [RANGE 9], F WHERE O.id = F.id",
    "taken_back": "SELECT O.id FROM O [RANGE 4], F [RANGE 5] WHERE O.id = F.id",
    "sliding": "SELECT O.id FROM O [RANGE 8 SLIDE 4], F WHERE O.id = F.id",
    "hopping": "SELECT O.id FROM O [HOP 8 SLIDE 4], F WHERE O.id = F.id",
    "itself": "SELECT A.id, B.v FROM O A, O B WHERE A.id = B.id AND A.s = B.s",
    "selected": "SELECT O.id, F.v FROM O, F WHERE O.id = F.id AND F.s = 'a' AND O.s = 'a'",
    "missing": "SELECT O.id FROM O WHERE NOT EXISTS (SELECT * FROM F WHERE F.id = O.id)",
    "found": "SELECT O.id, O.v FROM O WHERE O.id IN (SELECT id FROM F WHERE s = 'b')",
    "lefts": "SELECT O.id, F.v FROM O LEFT JOIN F ON O.id = F.id",
    "groups": "SELECT id, s, count(*) AS n, sum(v) AS a, max(v) AS m FROM O GROUP BY id, s",
    "groups_of_groups": "SELECT id, count(*) AS n, sum(n) AS a FROM (SELECT id, s, count(*) AS n "
    "FROM O GROUP BY id, s) G GROUP BY id",
    "groups_of_pairs": "SELECT O.id, count(*) AS n FROM O, F WHERE O.id = F.id GROUP BY O.id",
    "ranged_groups": "SELECT id, count(*) AS n FROM O [RANGE 6] GROUP BY id",
    "joined_groups": "SELECT G.id, n, F.v FROM (SELECT id, count(*) AS n FROM O GROUP BY id) G, F "
    "WHERE G.id = F.id",
    "once": "SELECT DISTINCT id, s FROM O WHERE v > 1",
    "except_one": "SELECT id, s FROM O EXCEPT SELECT id, s FROM F",
    "except_all": "SELECT id, s FROM O EXCEPT ALL SELECT id, s FROM F",
    "intersected": "SELECT id FROM O INTERSECT SELECT id FROM F",
    "distinct_counts": "SELECT id, count(DISTINCT s) AS n FROM O GROUP BY id",
    "other_key": "SELECT O.v, F.t FROM O, F WHERE O.v = F.v AND O.id = F.id + 1",
    "last_rows": "SELECT O.id, F.v FROM O [ROWS 3], F WHERE O.id = F.id",
    "per_part": "SELECT id, v FROM O [PARTITION BY id ROWS 2]",
    "inserted": "ISTREAM(SELECT O.id, F.v FROM O, F WHERE O.id = F.id)",
}
COLUMNS = "t BIGINT, id INT, v INT, s STRING, p STRING"
SCHEMA = [tuple(each.split()) for each in COLUMNS.split(", ")[:-1]]


def tuples(rng, count):
    """Tuples whose values come back for a while, and then no more."""
    return [
        (n // 3, max(0, n // 2 - rng.randrange(5)), rng.randrange(5), rng.choice("abc"), None)
        for n in range(count)
    ]


def declared(clause=""):
    return ";".join(
        f"CREATE STREAM {name} ({COLUMNS}) TIMESTAMP BY t DELAY 2 {clause}" for name in STREAMS
    )


def answers(seed, *, punctuates="", count=30, store=None, restarts=False, **settings):
    """What all queries answer when tuples come in pieces of their own, with punctuations between
    them (``said``), among them (``carried``), or none."""
    rng, data = random.Random(seed), random.Random(0)
    left = {name: tuples(data, count) for name in STREAMS}
    before = {name: [] for name in STREAMS}
    engine = Engine(settings, store=store)
    engine.execute(declared("PUNCTUATED BY (p)" if punctuates == "carried" else ""))
    for name, text in QUERIES.items():
        engine.execute(f"CREATE QUERY {name} AS {text}")
    while any(left.values()):
        name = min(STREAMS, key=lambda each: (left[each] or [(count,)])[0][0])
        size = rng.choice((1, 3, 9))
        piece, left[name] = left[name][:size], left[name][size:]
        before[name] += piece
        said = patterns(rng, SCHEMA, before[name], left[name]) if punctuates else []
        carried = [(0, None, None, None, each) for each in said]
        engine.push(name, piece + (carried if punctuates == "carried" else []))
        for each in said if punctuates == "said" else ():
            engine.punctuate(name, each)
        if rng.random() < 0.4:
            engine.run_until_idle()
        if restarts and rng.random() < 0.08:
            if rng.random() < 0.5:
                engine.compact_log()
            engine.close()
            engine = Engine(settings, store=store)
    engine.finish()
    found = {name: sorted(map(str, engine.results(name).to_pylist())) for name in QUERIES}
    freed = sum(
        each.freed_rows
        for each in engine.runtime.running.values()
        if isinstance(each, FreeingOperator)
    )
    assert not any(
        engine.violating(name).num_rows or engine.late(name).num_rows for name in STREAMS
    )
    engine.close()
    return found, freed


@pytest.fixture(scope="module")
def expected():
    return answers(0)[0]


@pytest.fixture
def few_rows(monkeypatch):
    """States are written whole when a few rows are new, so that groups go at once."""
    monkeypatch.setattr("millpond.storage.state.COMPACT_ROWS", 2)


def test_answers_are_those_without_punctuations(expected, few_rows):
    found, freed = answers(1, punctuates="said")
    assert found == expected
    assert freed > 100


@pytest.mark.slow
def test_executors_and_strategies_do_not_matter(expected, few_rows, monkeypatch):
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    WORKS.clear()
    settings = {"driver_rows": 0, "place_by": "rows", "strategy": "chain"}
    assert answers(3, punctuates="said", **settings)[0] == expected
    assert WORKS["RunJoin"]


@pytest.mark.slow
def test_queues_restarts_and_who_carries_them_do_not_matter(expected, few_rows, tmp_path):
    settings = {"linear": "apart", "sharing": "off", "strategy": "round-robin"}
    store = {"store": tmp_path / "store", "restarts": True}
    found, freed = answers(5, punctuates="carried", **store, **settings)
    assert found == expected
    assert freed > 100


# -- no row too early -------------------------------------------------------------------------


SHARP = ("two", "groups", "missing", "intersected", "groups_of_groups")


def sharp(punctuates=True, rounds=12):
    """What a join answers of which the last row of each number comes just before it is closed."""
    with Engine() as engine:
        engine.execute(declared())
        for name in SHARP:
            engine.execute(f"CREATE QUERY {name} AS {QUERIES[name]}")
        for n in range(rounds):
            for name, number in (("O", n), ("F", n), ("F", n - 1), ("O", n - 1)):
                engine.push(name, [(n, number, n, "a", None)])
            for name in ("O", "F") if punctuates else ():
                engine.punctuate(name, f"id <= {n - 1}")
            for name in STREAMS:
                engine.advance(name, n)
            engine.run_until_idle()
        found = {name: engine.results(name).to_pylist() for name in SHARP}
        return found, sum(each.freed_rows for each in running(engine, FreeingOperator))


@pytest.fixture(scope="module")
def sharp_answers():
    return sharp(punctuates=False)[0]


def running(engine, kind):
    return [each for each in engine.runtime.running.values() if isinstance(each, kind)]


def test_rows_that_come_just_before_their_number_is_closed_are_answered(few_rows, sharp_answers):
    found, freed = sharp()
    assert found == sharp_answers
    assert freed > 100


def test_what_is_freed_one_number_too_early_is_missed(few_rows, sharp_answers, monkeypatch):
    """If rows went whose key is one above what is closed, answers would be missing."""
    keys_of = Way.keys_of

    def too_much(way, pattern):
        return tuple(
            (key, Values(tuple((low, high + 1) for low, high in values.ranges), values.texts))
            for key, values in keys_of(way, pattern) or ()
        )

    monkeypatch.setattr(Way, "keys_of", too_much)
    found = sharp()[0]
    assert all(found[name] != sharp_answers[name] for name in SHARP)


def test_what_is_freed_before_its_time_is_missed(monkeypatch):
    """If punctuations held for tuples that have come and are still to be read, some would be."""
    note = Punctuations.note
    monkeypatch.setattr(Punctuations, "note", lambda self, after, known: note(self, -99, known))
    rows, found = [(n, n // 2, n, "a", None) for n in range(40)], []
    for punctuates in (True, False):
        with Engine() as engine:
            engine.execute(declared().replace("DELAY 2", "DELAY 100"))
            engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
            for name in ("O", "F"):
                engine.push(name, rows)
                if punctuates:
                    engine.punctuate(name, "id < 100")
            for time in range(40):
                for name in STREAMS:
                    engine.advance(name, time)
                engine.run_until_idle()
            found.append(engine.results("q").num_rows)
    assert found[0] < found[1]


def test_columns_of_two_tuples_are_not_taken_for_those_of_one():
    """A pattern of two columns says nothing of a pair that has them from different tuples."""
    text = "SELECT A.id, C.v FROM O A, O B, F C WHERE A.v = B.v AND A.id = C.id AND B.s = C.s"
    found = []
    for punctuates in (True, False):
        with Engine() as engine:
            engine.execute(declared())
            engine.execute(f"CREATE QUERY q AS {text}")
            engine.push("F", [(1, 1, 0, "a", None)])
            engine.push("O", [(1, 1, 7, "b", None)])
            if punctuates:
                engine.punctuate("O", "id = 1 AND s = 'a'")
            for name in STREAMS:
                engine.advance(name, 2)
            engine.run_until_idle()
            engine.push("O", [(5, 2, 7, "a", None)])  # the pair of both has id 1 and s a
            engine.finish()
            found.append(engine.results("q").to_pylist())
    assert found[0] == found[1]
    assert len(found[0]) == 1


# -- how much is kept ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("driver_rows", "text", "told"),
    [
        (
            0,
            "SELECT O.id, F.v FROM O, F WHERE O.id = F.id",
            "op1: punctuations of O (id) free rows",
        ),
        (
            0,
            "SELECT id, count(*) AS n, max(v) AS m FROM O GROUP BY id",
            "op1: punctuations of O (id) free groups",
        ),
        (10**9, "SELECT DISTINCT id FROM O", "op1: punctuations of O (id) free groups"),
        (
            10**9,
            "SELECT id FROM O EXCEPT SELECT id FROM F",
            "op1: punctuations of O (id) and punctuations of F (id) free groups whose keys they",
        ),
    ],
)
def test_no_more_is_kept_than_is_said(driver_rows, text, told, monkeypatch):
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    pages, rows = 8, 2_000
    with Engine({"driver_rows": driver_rows, "place_by": "rows"}) as engine:
        engine.execute(declared().replace("DELAY 2", ""))
        engine.execute(f"CREATE QUERY q AS {text}")
        for page in range(pages):
            first = page * rows
            for name in ("O", "F"):
                new = [(n, n - n % 10, n, "a", None) for n in range(first, first + rows)]
                engine.push(name, new)
                engine.punctuate(name, "id < :first", {"first": first + rows - 10})
            engine.run_until_idle()
            assert max(kept(engine)) <= 2 * 2 * rows + COMPACT_ROWS * 2
        assert told in str(engine.explain("q"))
        (shown,) = engine.execute("SHOW PUNCTUATIONS")[0].slice(0, 1).to_pylist()
        assert shown["nothing follows with"] == f"id <= {pages * rows - 11}"
        assert shown["rows freed"] == sum(
            each.freed_rows for each in running(engine, FreeingOperator)
        )
        assert shown["rows freed"] > 0


def kept(engine):
    """The rows of each state."""
    for each in running(engine, RunningKeyed):
        yield sum(delta.rows for deltas in each.state.version.buckets for delta in deltas)
    for each in running(engine, RunningJoin):
        for version in each.state.versions:
            yield sum(delta.rows for deltas in version.buckets for delta in deltas)


def test_not_exists_frees_what_is_answered_for_good():
    with Engine() as engine:
        engine.execute(declared().replace("DELAY 2", ""))
        engine.execute(f"CREATE QUERY q AS {QUERIES['missing']}")
        for page in range(6):
            first = page * 2_000
            for name, step in (("O", 1), ("F", 2)):
                new = range(first, first + 2_000, step)
                engine.push(name, [(n, n, n, "a", None) for n in new])
                engine.punctuate(name, f"id < {first + 2_000}")
            engine.run_until_idle()
            assert max(kept(engine)) <= 2 * 2 * 2_000 + COMPACT_ROWS * 2
        engine.finish()
        assert [row["id"] for row in engine.results("q").to_pylist() if row["id"] % 2 == 0] == []
        assert engine.result_count("q") == 6_000


def test_explain_says_nothing_where_nothing_is_punctuated():
    with Engine() as engine:
        engine.execute(declared())
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        assert "punctuations" not in str(engine.explain("q"))
        engine.punctuate("O", "v = 1")
        assert "punctuations" not in str(engine.explain("q"))
        engine.punctuate("O", "id = 1 AND v = 1")
        assert "punctuations" not in str(engine.explain("q"))
        text = "SELECT id, v, count(*) AS n FROM O GROUP BY id, v"
        (plan,) = engine.execute(f"EXPLAIN PHYSICAL {text}")
        assert "punctuations of O (id, v) free groups" in str(plan)


@pytest.mark.parametrize("type_name", ["BIGINT", "TIMESTAMP"])
def test_a_heartbeat_is_the_punctuation_on_time(type_name, few_rows):
    """Groups and joins by the time of tuples keep what is not over, and no more."""
    texts = {
        "counts": "SELECT t, count(*) AS n FROM S GROUP BY t",
        "pairs": "SELECT S.t, S.a, R.a FROM S, R WHERE S.t = R.t",
    }
    with Engine({"tick": "1 ms"}) as engine:
        for name in "SR":
            columns = f"(t {type_name}, a INT)"
            engine.execute(f"CREATE STREAM {name} {columns} TIMESTAMP BY t DELAY 20")
        for name, text in texts.items():
            engine.execute(f"CREATE QUERY {name} AS {text}")
        times = [n // 2 + n * 7 % 10 for n in range(400)]
        for start in range(0, 400, 20):
            for name in "SR":
                engine.push(name, [(moment(t, type_name), t) for t in times[start : start + 20]])
            engine.run_until_idle()
            assert max(kept(engine)) < 120
        assert "heartbeats of S (t) free groups" in str(engine.explain("counts"))
        assert "heartbeats of S (t) free rows of its right side" in str(engine.explain("pairs"))
        engine.finish()
        last = {row["t"]: row["n"] for row in engine.results("counts").to_pylist()}
        assert last == {moment(t, type_name): times.count(t) for t in times}
        pairs = sum(times.count(t) ** 2 for t in set(times))
        assert sum(engine.results("pairs")["weight"].to_pylist()) == pairs


def moment(ticks, type_name):
    """A time in milliseconds, between two of which there are others."""
    if type_name == "BIGINT":
        return ticks
    return datetime(1970, 1, 1) + timedelta(milliseconds=ticks, microseconds=ticks % 2 * 999)


# -- tuples that contradict a punctuation ----------------------------------------------------


def contradicted(policy, store=None):
    engine = Engine({"validate": "on"}, store=store)
    engine.execute(declared().replace("DELAY 2", ""))
    engine.execute(f"CREATE QUERY joined AS {QUERIES['two']}")
    engine.execute("CREATE QUERY alone AS SELECT id FROM O")
    engine.execute("CREATE QUERY others AS SELECT v, count(*) AS n FROM O GROUP BY v")
    for name in ("O", "F"):
        engine.push(name, [(t, t, 0, "a", None) for t in range(4)])
        engine.execute(f"PUNCTUATE {name} WHERE id <= 2 ON VIOLATION {policy}")
    engine.push("O", [(5, 3, 1, "a", None), (6, 2, 1, "a", None), (7, None, 1, "a", None)])
    return engine


def test_a_contradiction_stops_those_that_rely_on_the_punctuation_and_no_other():
    with contradicted("STOP") as engine:
        with pytest.raises(MillpondError, match=r"O: a tuple contradicts punctuation \(id\); it"):
            engine.finish()
        engine.finish()
        assert [failure.query for failure in engine.failures()] == ["joined"]
        assert not engine.result_count("joined")
        assert [row["id"] for row in engine.results("alone").to_pylist()] == [0, 1, 2, 3, 3, None]
        (aside,) = engine.violating("O").to_pylist()
        told = aside["t"], aside["violates"], aside["missed_by"]
        assert told == (6, "punctuation (id)", "alone, others")


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_contradiction_is_counted_and_put_aside_also_over_a_restart(tmp_path, is_compacted):
    with contradicted("COUNT", tmp_path / "store") as engine:
        seen, remembered = engine.violating("O"), engine.inputs.streams["o"].punctuations
        if is_compacted:
            engine.compact_log()
    with Engine({"validate": "on"}, store=tmp_path / "store") as engine:
        assert engine.violating("O").equals(seen)
        assert engine.inputs.streams["o"].punctuations == remembered
        engine.push("O", [(8, 1, 1, "a", None)])
        engine.finish()
        assert engine.violating("O")["t"].to_pylist() == [6, 8]
        shown = {row["stream"]: row for row in engine.execute("SHOW PUNCTUATIONS")[0].to_pylist()}
        assert shown["O"]["nothing follows with"] == "id <= 2"
        assert (shown["O"]["on violation"], shown["O"]["violations"]) == ("count", 2)
        assert "op" in shown["O"]["frees rows of"]
        assert engine.entities().get("stream", "O").get("violating") == 2
        assert engine.result_count("joined") == 5


def test_a_query_that_was_stopped_stays_stopped_over_a_restart(tmp_path):
    contradicted("STOP", tmp_path / "store").close()
    with Engine(store=tmp_path / "store") as engine:
        assert [failure.query for failure in engine.failures()] == ["joined"]


def test_tuples_before_a_punctuation_in_a_page_do_not_contradict_it():
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, id INT, p STRING) TIMESTAMP BY t PUNCTUATED BY "
            "(p) ON VIOLATION COUNT ORDERED BY (id) WITHIN 0 ROWS ON VIOLATION COUNT"
        )
        rows = [(1, 1, None), (2, 2, None), (0, None, "id = 2"), (0, 2, None), (3, 1, None)]
        engine.push("S", [*rows, (4, 2, None), (5, 5, None), (None, None, "id <= 1")])
        aside = engine.violating("S").to_pylist()
        told = [(row["t"], row["violates"]) for row in aside]
        assert told == [(3, "ordered_by_id"), (4, "punctuation (id)")]
        assert engine.late("S").num_rows == 1
        assert engine.inputs.streams["s"].arrived == 3
        (shown,) = engine.execute("SHOW PUNCTUATIONS")[0].to_pylist()
        assert (shown["nothing follows with"], shown["violations"]) == ("id <= 2", 1)


def test_one_who_relies_on_both_stops_once():
    with Engine() as engine:
        engine.execute(declared("ORDERED BY (id) WITHIN 0 ROWS").replace("DELAY 2", ""))
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        for name in ("O", "F"):
            engine.push(name, [(1, 5, 0, "a", None)])
            engine.punctuate(name, "id = 7")
        engine.push("O", [(2, 4, 0, "a", None), (3, 7, 0, "a", None)])
        assert [failure.query for failure in engine.failures()] == ["q"]
        assert engine.violating("O")["violates"].to_pylist() == [
            "ordered_by_id",
            "punctuation (id)",
        ]


def test_a_query_that_begins_later_is_right():
    found = []
    for punctuates in (True, False):
        with Engine() as engine:
            engine.execute(declared().replace("DELAY 2", ""))
            engine.execute(f"CREATE QUERY first AS {QUERIES['two']}")
            for name in ("O", "F"):
                engine.push(name, [(1, 1, 0, "a", None), (2, 2, 0, "a", None)])
            if punctuates:
                engine.punctuate("F", "id = 1")
            engine.run_until_idle()
            engine.execute(f"CREATE QUERY later AS {QUERIES['two']}")
            engine.push("O", [(3, 2, 0, "a", None), (4, 1, 0, "a", None)])
            engine.push("F", [(5, 2, 0, "a", None), (6, 3, 0, "a", None)])
            engine.finish()
            found.append([engine.results(name).to_pylist() for name in ("first", "later")])
    assert found[0] == found[1]
    assert all(found[0])


def test_a_page_that_was_read_elsewhere_is_read_again_once_a_stream_is_punctuated(tmp_path):
    """Where it was read nobody knew of the punctuation, so its tuples were not looked at."""
    (tmp_path / "rows.csv").write_text("t,a\n1,1\n")
    with Engine(directory=tmp_path) as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t FROM csv('rows.csv')")
        taking = Taking(engine.inputs)
        reading = taking.reading(StreamId("S"), is_limited=False)
        admit_elsewhere(engine.inputs, reading)
        reading.line = {"taken": 0}
        assert taking.is_current(reading, 10)
        engine.punctuate("S", "a = 1")
        assert not taking.is_current(reading, 10)


# -- what is said ----------------------------------------------------------------------------


def test_a_punctuation_of_time_is_a_heartbeat():
    with Engine({"tick": "1 ms"}) as engine:
        engine.execute("CREATE STREAM S (t TIMESTAMP, a INT) TIMESTAMP BY t DELAY 1 HOUR")
        engine.execute(
            "CREATE STREAM N (t BIGINT, a INT, p STRING) TIMESTAMP BY t PUNCTUATED BY (p)"
        )
        engine.execute("PUNCTUATE S WHERE t < TIMESTAMP '1970-01-01 00:00:01'")
        assert engine.inputs.queues["stream:s"].heartbeat == 999
        engine.push("N", [(3, 1, None), (0, 0, "t <= 40"), (41, 1, None)])
        assert engine.inputs.queues["stream:n"].heartbeat == 40
        engine.push("N", [(40, 1, None)])
        assert engine.late("N").num_rows == 1


def test_patterns_of_all_types_are_shown_as_they_are_written():
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM S (a INT, b BIGINT, d DATE, t TIMESTAMP, s STRING, o BOOLEAN)"
        )
        told = [
            "a = 1",
            "b BETWEEN 3 AND 5",
            "d <= DATE '2024-02-29'",
            "t >= TIMESTAMP '2024-01-01 00:00:00'",
            "s IN ('it''s', 'a')",
            "o = TRUE",
            "a IN (1, 3) AND s = 'a'",
        ]
        for each in told:
            engine.execute(f"PUNCTUATE S WHERE {each}")
        shown = engine.execute("SHOW PUNCTUATIONS")[0]["nothing follows with"].to_pylist()
        assert shown == told
        engine.execute("PUNCTUATE S WHERE 4 >= a AND (S.a > 1)")
        engine.execute("PUNCTUATE S WHERE b IN (9, 11, 13, 15, 17, 19) AND b > 9")
        shown = engine.execute("SHOW PUNCTUATIONS")[0]["nothing follows with"].to_pylist()
        assert "a BETWEEN 1 AND 4" in shown
        assert "(b BETWEEN 3 AND 5 OR b IN (11, 13, 15, 17, 19))" in shown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("PUNCTUATE S", "expected WHERE: a punctuation says what will not follow"),
        ("PUNCTUATE S WHERE", "expected an expression"),
        ("PUNCTUATE X WHERE a = 1", 'no stream "X"'),
        ("PUNCTUATE S WHERE nix = 1", 'no column "nix"'),
        ("PUNCTUATE S WHERE a = 1 OR a = 2", "write a PUNCTUATE for each of several"),
        ("PUNCTUATE S WHERE a <> 1", "a pattern is column = constant"),
        ("PUNCTUATE S WHERE a + 1 = 2", "a pattern is column = constant"),
        ("PUNCTUATE S WHERE a = b", "a pattern has constants, not columns"),
        ("PUNCTUATE S WHERE a = NULL", "nothing is equal to NULL"),
        ("PUNCTUATE S WHERE a = 1.5", "round it"),
        ("PUNCTUATE S WHERE a > 5 AND a < 6", 'no value of "a" is like that'),
        ("PUNCTUATE S WHERE s < 'x'", "ranges are of an INT, BIGINT, DATE or TIMESTAMP"),
        ("PUNCTUATE S WHERE x = 1", "is a DOUBLE, of which no value"),
        ("PUNCTUATE S WHERE R.a = 1", '"R" is not the stream that is punctuated'),
        ("PUNCTUATE S WHERE a = 1 ON VIOLATION SKIP", "expected STOP or COUNT"),
        ("CREATE STREAM T (a INT) PUNCTUATED BY (a)", "punctuations are carried by a STRING"),
        ("CREATE STREAM T (a STRING) PUNCTUATED BY (b)", 'no column "b"'),
        ("CREATE STREAM T (a STRING, violates INT) PUNCTUATED BY (a)", 'has a column "violates"'),
    ],
)
def test_what_is_no_punctuation_is_refused_with_its_place(text, complaint):
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a INT, b INT, s STRING, x DOUBLE)")
        with pytest.raises(CqlError) as caught:
            engine.execute(text)
        assert complaint in str(caught.value)
        assert str(caught.value).startswith("line 1, column ")


def test_calls_that_are_none_are_refused():
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a INT, p STRING) PUNCTUATED BY (p)")
        with pytest.raises(StateError, match='no stream "T"'):
            engine.punctuate("T", "a = 1")
        with pytest.raises(StateError, match="on_violation is stop"):
            engine.punctuate("S", "a = 1", on_violation="skip")
        with pytest.raises(CqlError, match='no column "c"'):
            engine.punctuate("S", "c = 1")
        with pytest.raises(InputError, match="stream S, row 2, column p: 'a = ' is no punctuation"):
            engine.push("S", [(1, None), (2, "a = ")])
        assert not engine.inputs.streams["s"].arrived


@pytest.mark.parametrize("policy", ["STOP", "SKIP"])
def test_a_file_carries_punctuations_and_what_is_none_is_a_bad_row(tmp_path, policy):
    rows = ["t,a,p", "1,1,", "2,2,", "2,,a = 1", "3,1,", "3,,nothing like that", "4,2,"]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    with Engine(directory=tmp_path) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT, p STRING) TIMESTAMP BY t FROM csv('rows.csv') "
            f"PUNCTUATED BY (p) ON VIOLATION COUNT ON BAD ROW {policy}"
        )
        engine.execute("CREATE QUERY q AS SELECT a, p FROM S")
        if policy == "STOP":
            with pytest.raises(InputError, match="row 5, column p: 'nothing like that' is no"):
                engine.finish()
            return
        engine.finish()
        assert [(row["a"], row["p"]) for row in engine.results("q").to_pylist()] == [
            (1, None),
            (2, None),
            (2, None),
        ]
        assert engine.violating("S")["t"].to_pylist() == [3]
        (bad,) = engine.bad_rows("S").to_pylist()
        assert (bad["offset"], bad["raw"]) == ("row 5", "nothing like that")


def test_a_script_that_is_started_again_says_nothing_twice(tmp_path):
    script = "CREATE STREAM S (a INT); PUNCTUATE S WHERE a = 1;"
    for _ in range(2):
        with Engine(store=tmp_path / "store") as engine:
            engine.execute(script)
            assert engine.execute("SHOW PUNCTUATIONS")[0].num_rows == 1


def test_a_description_of_a_stream_names_the_column():
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a INT, p STRING) PUNCTUATED BY (p) ON VIOLATION COUNT")
        entry = engine.catalog.get("S")
        assert (entry.punctuation_column, entry.punctuations_violated) == (1, "count")
        assert replace(entry, punctuation_column=None) != entry

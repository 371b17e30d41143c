"""UNIQUE and REFERENCES: rows that have met their partner, or whose partner has come, go."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.catalog import Constraint
from millpond.errors import CqlError, MillpondError
from millpond.execution.operators.join import RunningJoin
from millpond.execution.work import Destination
from millpond.facade import source_pages
from millpond.intake.looking import looked_at
from millpond.intake.numbered import NumberedClusters, NumberedUniqueness
from millpond.intake.occurrences import Clusters, Keys, Referenced, References, Uniqueness
from millpond.intake.taking import admit_elsewhere
from millpond.spark.sources import ReadPage
from millpond.storage.bounds import Age
from millpond.storage.state import COMPACT_ROWS
from tests.execution.in_process import WORKS, InProcess
from tests.test_numbered import column_of

# -- what the definitions say ------------------------------------------------------------------

TUPLES = st.lists(
    st.tuples(st.sampled_from("OF"), st.one_of(st.none(), st.integers(0, 3)), st.integers(-1, 2)),
    max_size=30,
)


def timed(tuples):
    """Tuples of two streams with times that mostly rise."""
    times = np.cumsum([step for *_, step in tuples], dtype=np.int64).tolist()
    return [(*each[:2], time) for each, time in zip(tuples, times, strict=True)]


@given(TUPLES, st.integers(0, 4), st.booleans(), st.integers(1, 5))
def test_a_tuple_is_no_double_just_if_the_definition_says_so(tuples, within, is_of_rows, page):
    constraint = Constraint("c", 0, within, is_of_rows, kind="unique")
    kept, expected = [], []
    for _, value, time in timed(tuples):
        place = len(kept) if is_of_rows else time
        far = [abs(place - other) for known, other in kept if known == value is not None]
        expected.append(bool(far) and max(far) > within)
        if not expected[-1]:
            kept.append((value, place))
    watched, found, arrived = Uniqueness(constraint), [], 0
    rows = timed(tuples)
    for start in range(0, len(rows), page):
        some = rows[start : start + page]
        times = np.array([time for *_, time in some], dtype=np.int64)
        looked = looked_at([watched], [Keys([value for _, value, _ in some])], times, arrived)
        arrived += int((looked.broken < 0).sum())
        found += (looked.broken >= 0).tolist()
        watched.took(looked.risen[0], 0, looked.measured[0])
    assert found == expected


@given(TUPLES, st.integers(0, 4), st.booleans())
def test_a_partner_comes_too_late_just_if_the_definition_says_so(tuples, within, is_of_rows):
    constraint = Constraint("c", 0, within, is_of_rows, kind="references", target="O")
    references, came, partners, measured = References(constraint), [], [], 0
    for stream, value, time in timed(tuples):
        place = len(came) if is_of_rows else time
        if stream == "F":
            watched = references
            behind = [other - place for known, other in partners if known == value is not None]
            behind = [] if is_of_rows else behind
        else:
            watched = Referenced("F.c", references, len(came))
            behind = [place - other for known, other in came if known == value is not None]
        looked = looked_at([watched], [Keys([value])], np.array([time]), len(came))
        is_broken = max(behind, default=0) > within
        assert bool(looked.broken[0] >= 0) == is_broken
        measured = max([measured, *behind])
        assert looked.measured[0] == measured
        if stream == "F":
            references.took((looked.risen[0], ()), 0, looked.measured[0])
        else:
            references.took(((), looked.risen[0]), 0, looked.measured[0])
        if not is_broken:
            (came if stream == "F" else partners).append((value, place))


@given(TUPLES, st.integers(0, 3), st.booleans(), st.integers(1, 5), st.sampled_from("ucUC"))
def test_k_grows_as_the_definition_says_however_tuples_are_cut(
    tuples, within, is_of_rows, page, kind
):
    """What is before the reach of a place is too far, which never falls when k grows."""
    is_of_rows = is_of_rows or kind in "UC"  # those of numbers, in arrays
    watched, kept, grown, k = made(kind, within, is_of_rows), [], [], within
    between, expected = int(is_of_rows and kind in "cC"), []
    rows = timed(tuples)
    for _, value, time in rows:
        place = len(kept) if is_of_rows else time
        like = [other for known, other in kept if known == value is not None]
        pairs = [(max(place, q), min(place, q)) for q in like]
        if kind in "cC":
            pairs = [(place, max(like))] if like else []
        far, at = max(((one - q - between, one) for one, q in pairs), default=(0, 0))
        reach = {p: max([p - k, *(min(p, w) - old for w, old in grown)]) for p, _ in pairs}
        expected.append(any(q + between < reach[p] for p, q in pairs))
        if not expected[-1]:
            kept.append((value, place))
        elif far > k:
            grown, k = [*grown, (at, k)], max(2 * k, far)
    found, arrived = [], 0
    for start in range(0, len(rows), page):
        some = rows[start : start + page]
        times = np.array([time for *_, time in some], dtype=np.int64)
        values = [value for _, value, _ in some]
        column = column_of(values) if kind in "UC" else Keys(values)
        looked = looked_at([watched], [column], times, arrived)
        arrived += int((looked.broken < 0).sum())
        found += (looked.broken >= 0).tolist()
        watched.took(looked.risen[0], 0, looked.measured[0], None, looked.grown[0])
        if kind in "cC":
            watched.close(arrived if is_of_rows else int(times.min()))
    assert found == expected
    assert watched.widened.within == k


def made(kind, within, is_of_rows):
    """A constraint whose k grows."""
    of = {"u": Uniqueness, "c": Clusters, "U": NumberedUniqueness, "C": NumberedClusters}[kind]
    name = "unique" if kind in "uU" else "clustered"
    return of(Constraint("c", 0, within, is_of_rows, "widen", kind=name))


# -- answers -----------------------------------------------------------------------------------

WITHIN = 4
QUERIES = {
    "pairs": "SELECT O.a, O.v, F.v FROM O, F WHERE O.a = F.a AND O.b = F.b",
    "chain": "SELECT F.v, O.v, C.v FROM F, O, C WHERE F.a = O.a AND F.b = O.b AND O.c = C.c",
    "partitioned": "SELECT O.a, A.v FROM O, F [PARTITION BY a, b ROWS 2] A "
    "WHERE O.a = A.a AND O.b = A.b",
    "sliding": "SELECT O.a FROM O [RANGE 8 SLIDE 4], F WHERE O.a = F.a AND O.b = F.b",
    "few": "SELECT O.a, F.v FROM O, F WHERE O.a = F.a AND O.b = F.b AND O.v > 2 AND F.v < 4",
    "missing": "SELECT F.a FROM F WHERE NOT EXISTS (SELECT * FROM O WHERE O.a = F.a AND O.b = F.b)",
    "without": "SELECT a, b FROM F EXCEPT SELECT a, b FROM O",
    "derived": "SELECT W.a, F.v FROM W, F WHERE W.a = F.a AND W.b = F.b",
    "counted": "SELECT O.a, count(*) AS n FROM O, F WHERE O.a = F.a AND O.b = F.b GROUP BY O.a",
}


def adhering(rng, count, within=WITHIN, doubles=0):
    """Tuples of O, F and C in order of arrival: each key is once in O, or again at most so many
    rows later, and a tuple of F comes at most so many rows of F before its partner in O."""
    made, waiting, known, next_key = [], {}, [], 0
    counts = dict.fromkeys("OFC", 0)

    def add(stream, key):
        if stream == "O" and key in waiting:
            del waiting[key]
        row = (len(made) // 3, key // 2, key % 2, key % 5, rng.randrange(6))
        made.append((stream, row))
        counts[stream] += 1

    while len(made) < count:
        if rng.random() < 0.1:
            add("C", next_key + 5 * rng.randrange(2))
        for key in [k for k, place in waiting.items() if counts["F"] + 1 - place > within]:
            add("O", key)
        if rng.random() < 0.5:
            key = rng.choice(list(waiting)) if waiting and rng.random() < 0.5 else next_key
            next_key += key == next_key
            add("O", key)
            known.append(key)
            if doubles and rng.random() < 0.2:
                add("O", key)
        elif known and rng.random() < 0.6:
            add("F", rng.choice(known[-9:]))
        else:
            waiting[next_key] = counts["F"]
            known.append(next_key)
            next_key += 1
            add("F", known[-1])
    return made


def declared(own, references, chained=""):
    columns = "(t BIGINT, a INT, b INT, c INT, v INT) TIMESTAMP BY t"
    return (
        f"CREATE STREAM C {columns}; CREATE STREAM O {columns} {own} {chained};"
        f"CREATE STREAM F {columns} {references};"
        "CREATE VIEW W AS SELECT Istream(a, b, v) FROM O WHERE v > 0"
    )


def answers(script, seed, *, rows=None, store=None, restarts=False, **settings):
    """What all queries answer when tuples come in pieces of their own."""
    rng = random.Random(seed)
    left = rows or adhering(random.Random(1), 48)
    engine = Engine(settings, store=store)
    engine.execute(script)
    for name, text in QUERIES.items():
        engine.execute(f"CREATE QUERY {name} AS {text}")
    while left:
        size = 1
        while size < min(len(left), rng.choice((1, 4))) and left[size][0] == left[0][0]:
            size += 1
        piece, left = left[:size], left[size:]
        engine.push(piece[0][0], [row for _, row in piece])
        if rng.random() < 0.5 and left:
            for each in "OFC":
                engine.advance(each, left[0][1][0] - 1)
        if rng.random() < 0.4:
            engine.run_until_idle()
        if restarts and rng.random() < 0.1:
            if rng.random() < 0.5:
                engine.compact_log()
            engine.close()
            engine = Engine(settings, store=store)
    engine.finish()
    found = {name: sorted(map(str, engine.results(name).to_pylist())) for name in QUERIES}
    assert not any(engine.violating(name).num_rows or engine.late(name).num_rows for name in "OFC")
    engine.close()
    return found


@pytest.fixture(scope="module")
def expected():
    return answers(declared("", ""), 0)


UNIQUE = "UNIQUE (a, b)"
ROWS = f"REFERENCES O (a, b) WITHIN {WITHIN} ROWS"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "references"),
    [
        (UNIQUE, ROWS),
        (UNIQUE + " WITHIN 3 ROWS", "REFERENCES O (a, b) WITHIN 6"),
    ],
)
def test_answers_are_those_without_the_constraint(expected, own, references):
    chained = "FOREIGN KEY (c) REFERENCES C (c) WITHIN 90 ROWS" if references else ""
    assert answers(declared(own, references, chained), 1) == expected


def test_doubles_that_come_soon_do_not_matter():
    rows = adhering(random.Random(3), 48, doubles=1)
    plain = answers(declared("", ""), 0, rows=rows)
    assert answers(declared(UNIQUE + " WITHIN 1 ROW", ROWS), 1, rows=rows) == plain


@pytest.mark.slow
def test_executors_strategies_and_restarts_do_not_matter(expected, monkeypatch, tmp_path):
    script = declared(UNIQUE, ROWS)
    assert answers(script, 5, store=tmp_path / "store", restarts=True) == expected
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    WORKS.clear()
    assert answers(script, 2, driver_rows=0, place_by="rows", strategy="chain") == expected
    assert WORKS["RunJoin"]


# -- no row too early, and no more than is said ---------------------------------------------------


def joins(engine):
    return [each for each in engine.runtime.running.values() if isinstance(each, RunningJoin)]


def kept(engine):
    """The rows that the only join keeps, on either side."""
    (join,) = joins(engine)
    return [sum(d.rows for deltas in v.buckets for d in deltas) for v in join.state.versions]


def sharp(script, within, rounds=14):
    """What a join answers if each partner comes as late as it may, each row alone; O behind F."""
    with Engine() as engine:
        engine.execute(script)
        engine.execute(f"CREATE QUERY q AS {QUERIES['pairs']}")
        for n in range(rounds):
            if n >= within:
                engine.push("O", [(n, n - within, 0, 0, n)])
            engine.push("F", [(n, n, 0, 0, n)])
            for name in "OFC":
                engine.advance(name, n)
            engine.run_until_idle()
        (join,) = joins(engine)
        return engine.results("q").to_pylist(), join.freed_rows


@pytest.mark.parametrize("unit", ["ROWS", ""])
def test_partners_that_come_as_late_as_they_may_are_met(unit):
    answered, freed = sharp(declared("", f"REFERENCES O (a, b) WITHIN 3 {unit}"), 3)
    assert answered == sharp(declared("", ""), 3)[0]
    assert len(answered) == 11
    assert freed >= 8


@pytest.mark.parametrize("unit", ["ROWS", ""])
def test_what_is_freed_one_row_too_early_is_missed(unit, monkeypatch):
    monkeypatch.setattr(Age, "use", _one_less(Age.use))
    answered, _ = sharp(declared("", f"REFERENCES O (a, b) WITHIN 3 {unit}"), 3)
    assert answered != sharp(declared("", ""), 3)[0]


def _one_less(use):
    return lambda self, within, narrowed: use(self, within - 1, narrowed)


@pytest.mark.parametrize("unit", ["ROWS", ""])
def test_rows_are_met_again_by_doubles_that_come_as_late_as_they_may(unit, monkeypatch):
    script = declared(f"UNIQUE (a, b) WITHIN 1 {unit}", "")
    plain, _ = twice(declared("", ""))
    answered, freed = twice(script)
    assert answered == plain
    assert freed >= 5
    monkeypatch.setattr(Age, "use", _one_less(Age.use))
    assert twice(script)[0] != plain


def twice(script, rounds=8):
    """What a join answers if each row of O comes twice, one tick and one row apart."""
    with Engine() as engine:
        engine.execute(script)
        engine.execute(f"CREATE QUERY q AS {QUERIES['pairs']}")
        for n in range(2 * rounds):
            engine.push("F", [(n, n // 2, 0, 0, n)] * (n % 2 == 0))
            engine.push("O", [(n, n // 2, 0, 0, n)])
            for name in "OFC":
                engine.advance(name, n)
            engine.run_until_idle()
        return engine.results("q").to_pylist(), joins(engine)[0].freed_rows


@pytest.mark.parametrize("driver_rows", [10**9, 0])
def test_a_join_keeps_no_more_than_it_says(driver_rows, monkeypatch):
    """Of F at most twice the rows that may meet something, and some rows a bucket."""
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    pages, rows, within = 8, 2_000, 100
    settings = {"driver_rows": driver_rows, "place_by": "rows"}
    with Engine(settings) as engine:
        engine.execute(declared("", f"REFERENCES O (a, b) WITHIN {within} ROWS"))
        engine.execute(f"CREATE QUERY q AS {QUERIES['pairs']}")
        for page in range(pages):
            numbers = range(page * rows, (page + 1) * rows)
            engine.push("O", [(n, n, 0, 0, 0) for n in numbers])
            engine.push("F", [(n, n, 0, 0, 0) for n in numbers])
            engine.run_until_idle()
            needed = within + 2 * rows
            buckets = joins(engine)[0].buckets
            assert kept(engine)[1] <= 2 * needed + COMPACT_ROWS * buckets
        assert joins(engine)[0].freed_rows >= pages * rows - 2 * needed - COMPACT_ROWS * buckets
        assert "F.references_o frees rows of its right side" in str(engine.explain("q"))
        assert engine.result_count("q") == pages * rows - 1


def test_of_rows_that_have_met_their_partner_nothing_is_kept():
    with Engine() as engine:
        engine.execute(declared(UNIQUE, ""))
        engine.execute(f"CREATE QUERY q AS {QUERIES['pairs']}")
        for page in range(5):
            numbers = range(page * 100, (page + 1) * 100)
            for name in "OF":
                engine.push(name, [(n, n, 0, 0, 0) for n in numbers])
            engine.run_until_idle()
        assert kept(engine)[1] <= 1
        assert "O.unique_a_b frees rows of its right side that have met one" in str(
            engine.explain("q")
        )
        shown = {row["name"]: row for row in engine.execute("SHOW CONSTRAINTS")[0].to_pylist()}
        assert shown["unique_a_b"]["says"] == "UNIQUE (a, b)"
        assert shown["unique_a_b"]["rows freed"] >= 499


def test_explain_says_what_ages_in_joins_of_three():
    """Rows that reference all streams of a join age, and those of a join whose tuples reference."""
    columns = "(t BIGINT, a INT) TIMESTAMP BY t"
    text = "SELECT F.a FROM O, F, P WHERE O.a = F.a AND F.a = P.a"
    with Engine() as engine:
        engine.execute(
            f"CREATE STREAM O {columns}; CREATE STREAM F {columns} REFERENCES O (a) WITHIN 2 ROWS;"
            f"CREATE STREAM P {columns} REFERENCES O (a) WITHIN 9 ROWS"
        )
        (before,) = engine.execute(f"EXPLAIN PHYSICAL {text}")
        engine.execute("ALTER STREAM P ADD REFERENCES F (a) WITHIN 7")
        (after,) = engine.execute(f"EXPLAIN PHYSICAL {text}")
        assert "P." not in str(before)
        told = "op2: P.references_f, P.references_o frees rows of its right side that are "
        assert told in str(after)


# -- violations --------------------------------------------------------------------------------


def broken(policy, store=None):
    engine = Engine({"validate": "on"}, store=store)
    engine.execute(
        declared(f"{UNIQUE} ON VIOLATION {policy}", f"{ROWS[:-6]}1 ROWS ON VIOLATION {policy}")
    )
    engine.execute(
        f"CREATE QUERY joined AS {QUERIES['pairs']}; CREATE QUERY alone AS SELECT v FROM O"
    )
    engine.push("F", [(0, 7, 0, 0, 1), (1, 8, 0, 0, 1)])
    return engine


@pytest.mark.parametrize("rows", [[(2, 7, 0, 0, 1)], [(2, 9, 0, 0, 1), (2, 9, 0, 0, 1)]])
def test_a_violation_stops_those_that_rely_on_the_constraint_and_no_other(rows):
    with broken("STOP") as engine:
        engine.push("O", rows)
        with pytest.raises(MillpondError, match=r"O: a tuple breaks constraint (F.ref|unique)"):
            engine.finish()
        engine.finish()
        assert [failure.query for failure in engine.failures()] == ["joined"]
        assert engine.result_count("alone") == len(rows) - 1
        (row,) = engine.violating("O").to_pylist()
        assert row["violates"] == ("F.references_o" if len(rows) == 1 else "unique_a_b")


def remembered(engine):
    streams = engine.inputs.streams
    return [each.facts for name in "of" for each in streams[name].orderings.values()]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_violations_are_counted_and_put_aside_also_over_a_restart(tmp_path, is_compacted):
    with broken("COUNT", tmp_path / "store") as engine:
        engine.push("O", [(2, 8, 0, 0, 1), (2, 7, 0, 0, 2), (3, 8, 0, 0, 3)])
        seen = engine.violating("O")
        facts = remembered(engine)
        if is_compacted:
            engine.compact_log()
    with Engine({"validate": "on"}, store=tmp_path / "store") as engine:
        assert [row["violates"] for row in seen.to_pylist()] == ["F.references_o", "unique_a_b"]
        assert engine.violating("O").equals(seen)
        known = [each.facts for each in engine.inputs.streams["o"].orderings.values()]
        assert (
            known + [each.facts for each in engine.inputs.streams["f"].orderings.values()] == facts
        )
        engine.push("O", [(4, 7, 0, 0, 4), (4, 8, 0, 0, 4), (4, 1, 0, 0, 4)])
        engine.finish()
        shown = engine.execute("SHOW CONSTRAINTS")[0].to_pylist()
        assert [(row["name"], row["violations"], row["measured"]) for row in shown] == [
            ("unique_a_b", 2, "1 rows"),
            ("references_o", 2, "2 rows"),
        ]
        assert len(engine.results("joined")) == 1


# -- while data flows --------------------------------------------------------------------------


@pytest.mark.parametrize("is_compacted", [False, True])
def test_what_came_before_a_constraint_is_kept(tmp_path, is_compacted):
    """It is asked of tuples that come later; those before may have partners at any time."""
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(declared("", ""))
        engine.execute(f"CREATE QUERY q AS {QUERIES['pairs']}")
        engine.push("F", [(0, 1, 0, 0, 1)])
        engine.push("O", [(0, 2, 0, 0, 1)])
        engine.execute("ALTER STREAM F ADD REFERENCES O (a, b) WITHIN 0 ROWS ON VIOLATION COUNT")
        engine.execute("ALTER STREAM O ADD UNIQUE (a, b) ON VIOLATION COUNT")
        engine.push("F", [(5, 3, 0, 0, 1), (5, 2, 0, 0, 1)])
        engine.run_until_idle()
        if is_compacted:
            engine.compact_log()
    with Engine(store=tmp_path / "store") as engine:
        engine.push("F", [(6, 4, 0, 0, 1)])
        engine.push("O", [(7, 1, 0, 0, 1), (7, 2, 0, 0, 2), (7, 3, 0, 0, 3)])
        engine.finish()
        assert [row["a"] for row in engine.violating("O").to_pylist()] == [2, 3]
        assert sorted(row["a"] for row in engine.results("q").to_pylist()) == [1, 2]


def test_a_page_that_is_read_elsewhere_while_its_stream_comes_to_be_referenced_is_read_again(
    tmp_path, monkeypatch
):
    """Where it is read nobody looks at its tuples."""
    (tmp_path / "orders.csv").write_text("t,a\n1,7\n2,8\n")
    lines = []

    def elsewhere(ground, reading, expect_spark):
        with ground.lock:
            admission = admit_elsewhere(ground.inputs, reading)
        if admission is None:
            return None
        to = Destination.of(ground.store)
        work = ReadPage(to, admission, ground.settings_now, str(tmp_path), 0, 0)
        lines.append(work.run(pa.table({}), 0, 0)[0])
        constraint = "CONSTRAINT c REFERENCES O (a) WITHIN 0 ROWS ON VIOLATION COUNT"
        engine.execute(f"ALTER STREAM F ADD {constraint}")
        engine.push("F", [(0, 8)])
        return lines[-1]

    monkeypatch.setattr(source_pages, "_read_elsewhere", elsewhere)
    with Engine(directory=tmp_path) as engine:
        engine.execute("""
            CREATE STREAM O (t BIGINT, a INT) TIMESTAMP BY t FROM csv('orders.csv');
            CREATE STREAM F (t BIGINT, a INT) TIMESTAMP BY t;
            CREATE QUERY q AS SELECT a FROM O;
        """)
        engine.finish()
        assert [line["taken"] for line in lines] == [2]
        assert engine.violating("O").to_pylist() == [
            {"t": 2, "a": 8, "violates": "F.c", "missed_by": "q"}
        ]
        assert engine.results("q")["a"].to_pylist() == [7]


def test_what_is_referenced_or_has_freed_rows_for_ever_cannot_be_dropped():
    with Engine() as engine:
        engine.execute(declared(UNIQUE, ROWS))
        engine.execute(f"CREATE QUERY q AS {QUERIES['pairs']}")
        for stream in "FO":
            engine.push(stream, [(7, 9, 9, 0, 1)])
        for stream in "OFC":
            engine.advance(stream, 7)
        engine.run_until_idle()
        for stream, name in (("O", "unique_a_b"), ("F", "references_o")):
            with pytest.raises(CqlError, match="has freed rows of q that no window lets go"):
                engine.execute(f"ALTER STREAM {stream} DROP CONSTRAINT {name}")
        engine.drop("q")
        engine.drop("W")
        with pytest.raises(MillpondError, match=r'"O" is referenced by F\.references_o'):
            engine.drop("O")
        engine.execute("ALTER STREAM F DROP CONSTRAINT references_o")
        engine.push("F", [(8, 1, 0, 0, 1), (9, 1, 0, 0, 1)])
        engine.push("O", [(19, 1, 0, 0, 1)])
        assert not engine.violating("O").num_rows
        engine.drop("O")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("UNIQUE (id, nix)", 'no column "nix"'),
        ("UNIQUE (d)", '"d" is a DOUBLE; UNIQUE is for columns of INT, BIGINT'),
        ("REFERENCES S (id) WITHIN 1 ROW", 'no other stream "S"'),
        ("REFERENCES Q (id) WITHIN 1 ROW", 'no other stream "Q"'),
        ("REFERENCES R (id)", "expected WITHIN at the end"),
        ("FOREIGN KEY (id) REFERENCES R (id, x) WITHIN 1 ROW", "FOREIGN KEY names 1 columns, and"),
        ("FOREIGN KEY (id) REFERENCES R (x) WITHIN 1 ROW", '"id" is an INT, and "x" of R a STRING'),
        ("FOREIGN KEY (id) R (x) WITHIN 1 ROW", "expected REFERENCES before 'R'"),
    ],
)
def test_what_is_no_constraint_is_refused_with_its_place(text, complaint):
    with Engine() as engine:
        engine.execute(
            "CREATE STREAM R (id INT, x STRING); CREATE STREAM S (id INT, name STRING, d DOUBLE)"
        )
        with pytest.raises(CqlError) as caught:
            engine.execute(f"ALTER STREAM S ADD {text}")
        assert complaint in str(caught.value)
        assert str(caught.value).startswith("line 1, column ")

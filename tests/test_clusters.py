"""CLUSTERED BY: rows whose value comes no more go, and no answer changes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.catalog import Constraint
from millpond.errors import MillpondError
from millpond.intake.looking import looked_at
from millpond.intake.numbered import NumberedClusters
from millpond.intake.occurrences import Clusters, Keys
from millpond.storage.state import COMPACT_ROWS
from tests.execution.in_process import WORKS, InProcess
from tests.test_constraints import groups, joins, retained

SWEEP = "millpond.execution.operators.freeing.COMPACT_ROWS"


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(-1, 2)), max_size=30),
    st.integers(0, 4),
    st.booleans(),
    st.integers(1, 5),
)
def test_a_tuple_is_broken_just_if_the_definition_says_so(tuples, within, is_of_rows, page):
    times = np.cumsum([step for _, step in tuples], dtype=np.int64).tolist()
    rows = [(value, time) for (value, _), time in zip(tuples, times, strict=True)]
    clusters = Clusters(Constraint("c", 0, within, is_of_rows, kind="clustered"))
    kept, closed = [], set()
    for start in range(0, len(rows), page):
        some = rows[start : start + page]
        expected = []
        for value, time in some:
            last = [p for p, (v, _) in enumerate(kept) if v == value is not None]
            others = len(kept) - last[-1] - 1 if last else 0
            late = time - max((t for v, t in kept if v == value is not None), default=time)
            expected.append((others if is_of_rows else late) > within)
            if not expected[-1]:
                kept.append((value, time))
                assert value not in closed
        keys, at = Keys([value for value, _ in some]), np.array([t for _, t in some], np.int64)
        looked = looked_at([clusters], [keys], at, len(kept) - expected.count(False))
        assert (looked.broken >= 0).tolist() == expected
        clusters.took(looked.risen[0], 0, looked.measured[0])
        least = len(kept) if is_of_rows else min((t for _, t in rows[start + page :]), default=99)
        closed |= set(clusters.close(least))
    if is_of_rows:
        for value in {v for v, _ in kept} - {None}:
            last = max(p for p, (v, _) in enumerate(kept) if v == value)
            assert (value in closed) == (len(kept) - last - 1 > within)


QUERIES = {
    "two": "SELECT O.id, O.v, F.v FROM O, F WHERE O.id = F.id",
    "on_both": "SELECT O.id, F.t FROM O, F WHERE O.id = F.id AND O.v = F.v",
    "three": "SELECT O.id, F.v, P.v FROM O, F, P WHERE O.id = F.id AND F.id = P.id",
    "partitioned": "SELECT A.id, F.v FROM O [PARTITION BY id ROWS 2] A, F WHERE A.id = F.id",
    "derived": "SELECT W.id, F.v FROM W, F WHERE W.id = F.id",
    "missing": "SELECT O.id FROM O WHERE NOT EXISTS (SELECT * FROM F WHERE F.id = O.id)",
    "groups": "SELECT id, count(*) AS n, sum(v) AS s, max(v) AS m FROM O GROUP BY id",
    "groups_of_pairs": "SELECT O.id, count(*) AS n FROM O, F WHERE O.id = F.id GROUP BY O.id",
    "without": "SELECT id FROM O EXCEPT SELECT id FROM F",
}
WITHIN = 3


def clustered_rows(rng, count, within=WITHIN):
    """Tuples of which each comes behind the last one with its value at most so many others, and
    some just as many; values are in no order."""
    rows, last, fresh = [], {}, list(range(count))
    rng.shuffle(fresh)
    for number in range(count):
        open_ = [value for value, place in last.items() if number - place - 1 <= within]
        oldest = min(open_, key=last.get, default=None)
        value = fresh.pop() % 40 if not open_ or rng.random() < 0.4 else oldest
        if value in last and number - last[value] - 1 > within:
            value = oldest if oldest is not None else 1000 + number
        last[value] = number
        rows.append((number // 3, value, rng.randrange(3)))
    return rows


def declared(clause):
    streams = ";".join(
        f"CREATE STREAM {name} (t BIGINT, id INT, v INT) TIMESTAMP BY t {clause}" for name in "OFP"
    )
    return f"{streams}; CREATE VIEW W AS SELECT Istream(id, v) FROM O WHERE v > 0"


def answers(
    clause, seed, *, count=30, within=WITHIN, data=0, store=None, restarts=False, **settings
):
    """What all queries answer when tuples come in pieces of their own, and what was freed."""
    rng, drawn = random.Random(seed), random.Random(data)
    left = {name: clustered_rows(drawn, count, within) for name in "OFP"}
    engine, freed = Engine(settings, store=store), 0
    engine.execute(declared(clause))
    for name, text in QUERIES.items():
        engine.execute(f"CREATE QUERY {name} AS {text}")
    while any(left.values()):
        name = min("OFP", key=lambda each: (left[each] or [(count,)])[0][0])
        size = rng.choice((1, 3, 9))
        piece, left[name] = left[name][:size], left[name][size:]
        engine.push(name, piece)
        if rng.random() < 0.5 and all(left.values()):
            for each in "OFP":
                engine.advance(each, left[each][0][0] - 1)
        if rng.random() < 0.5:
            engine.run_until_idle()
        if restarts and rng.random() < 0.1:
            if rng.random() < 0.5:
                engine.compact_log()
            engine.close()
            engine = Engine(settings, store=store)
    engine.finish()
    found = {name: sorted(map(str, engine.results(name).to_pylist())) for name in QUERIES}
    freed = sum(getattr(each, "freed_rows", 0) for each in engine.runtime.running.values())
    assert not any(engine.violating(name).num_rows or engine.late(name).num_rows for name in "OFP")
    engine.close()
    return found, freed


@pytest.fixture(scope="module")
def expected():
    return answers("", 0)[0]


CLUSTERED = f"CLUSTERED BY (id) WITHIN {WITHIN} ROWS"


@pytest.mark.slow
@pytest.mark.parametrize("clause", [CLUSTERED, "CLUSTERED BY (id) WITHIN 3"])
def test_answers_are_those_without_the_constraint(expected, clause, monkeypatch):
    monkeypatch.setattr(SWEEP, 1)
    found, freed = answers(clause, 1)
    assert found == expected
    assert freed > 20


@pytest.mark.slow
def test_executors_and_restarts_do_not_matter(expected, monkeypatch, tmp_path):
    monkeypatch.setattr(SWEEP, 2)
    assert answers(CLUSTERED, 5, store=tmp_path / "store", restarts=True)[0] == expected
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    WORKS.clear()
    found, freed = answers(CLUSTERED, 2, driver_rows=0, place_by="rows", strategy="chain")
    assert found == expected
    assert freed > 20
    assert WORKS["RunJoin"]


def sharp(clause, within=2, rounds=16):
    """What a join answers if each value of F comes again just as far behind as it may."""
    with Engine() as engine:
        engine.execute(declared(clause))
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        for n in range(rounds):
            block, place = divmod(n, 2 * within + 2)
            engine.push("O", [(n, 100 * block + place % (within + 1), n)])
            engine.push("F", [(n, 100 * block + place % (within + 1), n)])
            for name in "OFP":
                engine.advance(name, n)
            engine.run_until_idle()
        (join,) = joins(engine)
        return engine.results("q").to_pylist(), join.freed_rows


def test_rows_whose_value_comes_as_late_as_it_may_are_answered(monkeypatch):
    monkeypatch.setattr(SWEEP, 1)
    plain, _ = sharp("")
    answered, freed = sharp("CLUSTERED BY (id) WITHIN 2 ROWS")
    assert answered == plain
    assert freed >= 10
    close = NumberedClusters.close
    monkeypatch.setattr(NumberedClusters, "close", lambda self, place: close(self, place + 1))
    assert sharp("CLUSTERED BY (id) WITHIN 2 ROWS")[0] != plain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("driver_rows", "text", "told"),
    [
        (10**9, QUERIES["on_both"], "frees rows of its left side with id closed; it keeps at most"),
        (0, QUERIES["on_both"], "frees rows of its right side with id closed; it keeps at most"),
        (10**9, "SELECT id, count(*) AS n FROM F GROUP BY id", "frees groups with id closed; it"),
        (0, "SELECT id FROM F EXCEPT SELECT id FROM P", "frees groups with id closed; it keeps"),
    ],
)
def test_no_more_is_kept_than_is_said(driver_rows, text, told, monkeypatch):
    """The rows of values that are open, and of 4,096 closed last, twice, and some a bucket."""
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    pages, rows, within, a_value = 8, 3_000, 20, 2
    with Engine({"driver_rows": driver_rows, "place_by": "rows"}) as engine:
        engine.execute(declared(f"CLUSTERED BY (id) WITHIN {within} ROWS"))
        engine.execute(f"CREATE QUERY q AS {text}")
        for page in range(pages):
            numbers = range(page * rows, (page + 1) * rows)
            for name in "OFP":
                engine.push(name, [(n, 10**6 - n // a_value, 0) for n in numbers])
            engine.run_until_idle()
            needed = a_value * COMPACT_ROWS + 2 * rows + within
            kept = retained(engine)[0] if joins(engine) else [groups(engine)]
            assert max(kept) <= 2 * needed + COMPACT_ROWS * 2
        assert told in str(engine.explain("q"))
        (shown,) = engine.execute("SHOW CONSTRAINTS")[0].slice(1, 1).to_pylist()
        assert shown["says"] == "CLUSTERED BY (id)"
        assert shown["rows freed"] >= (pages * rows // a_value - needed) * (1 + bool(joins(engine)))


def test_a_violation_is_put_aside_and_stops_who_relies_on_it(tmp_path):
    with Engine({"validate": "on"}, store=tmp_path / "store") as engine:
        engine.execute(declared("CLUSTERED BY (id) WITHIN 1 ROW"))
        engine.execute(f"CREATE QUERY joined AS {QUERIES['two']}")
        engine.execute("CREATE QUERY alone AS SELECT id FROM O")
        engine.push("O", [(0, 1, 0), (1, 2, 0), (2, 1, 0), (3, 3, 0)])
    with Engine({"validate": "on"}, store=tmp_path / "store") as engine:
        engine.compact_log()
        engine.push("O", [(4, 4, 0), (5, 1, 0)])
        with pytest.raises(MillpondError, match="O: a tuple breaks constraint clustered_by_id"):
            engine.finish()
        engine.finish()
        assert engine.violating("O").to_pylist() == [
            {"t": 5, "id": 1, "v": 0, "violates": "clustered_by_id", "missed_by": "alone"}
        ]
        assert engine.result_count("alone") == 5
        (shown,) = engine.execute("SHOW CONSTRAINTS")[0].slice(0, 1).to_pylist()
        assert (shown["measured"], shown["violations"]) == ("2 rows", 1)

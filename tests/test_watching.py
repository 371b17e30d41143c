"""Watching: what streams adhere to is seen, suggested where it would free rows, and taken if asked
for."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.errors import CqlError
from millpond.intake import samples
from millpond.intake.orderings import Values
from millpond.intake.samples import Sample, is_followed
from tests.adhering import farthest_behind
from tests.test_constraints import QUERIES, STREAMS, declared, ordered_rows


def shown(engine):
    return engine.execute("SHOW CONSTRAINTS")[0].to_pylist()


def suggested(engine):
    return {
        row["stream"]: row
        for row in shown(engine)
        if row["state"] == "suggested" and row["says"].startswith("ORDERED")
    }


def watched(rows, store=None, size=40, query="two", **settings):
    """An engine with a join of which rows have come, in pieces."""
    engine = Engine(settings, store=store)
    engine.execute(declared(""))
    engine.execute(f"CREATE QUERY q AS {QUERIES[query]}")
    for start in range(0, len(rows), size):
        for name in STREAMS[:2]:
            engine.push(name, rows[start : start + size])
        engine.run_until_idle()
    return engine


@pytest.mark.parametrize(("within", "together"), [(0, 64), (4, 3), (9, 1)])
def test_the_smallest_k_is_seen_and_suggested_where_it_would_free_rows(
    within, together, monkeypatch
):
    """However many pages are looked at together."""
    monkeypatch.setattr("millpond.intake.watching.TOGETHER_PAGES", together)
    rows = ordered_rows(random.Random(within), 300, within)
    with watched(rows) as engine:
        k = farthest_behind([value for _, value, _ in rows])
        found = suggested(engine)
        assert set(found) == {"O", "F"}
        assert found["O"]["measured"] == f"{k} rows"
        assert found["O"]["frees rows of"] == "op1"
        assert found["O"]["to say"] == 'ALTER STREAM "O" ADD ORDERED BY ("id") AS MEASURED'
        engine.execute(found["O"]["to say"])
        assert set(suggested(engine)) == {"F"}
        (row,) = (row for row in shown(engine) if row["state"] == "declared")
        assert (row["name"], row["within"]) == ("ordered_by_id", f"{k} rows")
        engine.drop("q")
        assert not suggested(engine)
        assert not engine.inputs.streams["f"].watches


def test_what_was_measured_is_in_the_log(tmp_path):
    rows = ordered_rows(random.Random(1), 300)
    with watched(rows, tmp_path) as engine:
        engine.execute("ALTER STREAM O ADD ORDERED BY (id) AS MEASURED ON VIOLATION COUNT")
        before = shown(engine)[0]
    for is_compacted in (True, False):
        with Engine(store=tmp_path) as engine:
            engine.execute("ALTER STREAM O ADD ORDERED BY (id) AS MEASURED ON VIOLATION COUNT")
            assert shown(engine)[0] == before
            if is_compacted:
                engine.compact_log()


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            [(t, t, 0) for t in range(50)],
            "50 tuples were seen, at most 0 rows behind, and it takes",
        ),
        ([(t, 300 - t, 0) for t in range(300)], "300 tuples were seen, at most 299 rows behind"),
    ],
)
def test_what_was_hardly_seen_is_not_suggested_and_not_measured(rows, why):
    with watched(rows) as engine:
        assert not suggested(engine)
        with pytest.raises(CqlError, match=why):
            engine.execute("ALTER STREAM O ADD ORDERED BY (id) AS MEASURED")


def test_a_column_whose_values_come_too_far_behind_is_given_up(monkeypatch):
    monkeypatch.setattr("millpond.intake.watching.MOST_ROWS", 20)
    rows = [(t, t, 0) for t in range(300)] + [(300, 250, 0)]
    with watched(rows) as engine:
        assert engine.inputs.streams["o"].watches[1].is_given_up
        assert not len(engine.inputs.streams["o"].watches[1].ordering.peaks)
        with pytest.raises(CqlError, match="tuples come more than 100,000 rows behind larger ones"):
            engine.execute("ALTER STREAM O ADD ORDERED BY (id) AS MEASURED")


def test_tuples_that_come_out_of_time_are_seen_as_they_came():
    rows = [(t ^ 3, t, 0) for t in range(400)]
    with Engine() as engine:
        engine.execute(declared("DELAY 9"))
        engine.execute(f"CREATE QUERY q AS {QUERIES['groups']}")
        engine.push("O", rows)
        assert engine.inputs.streams["o"].watches[1].within == 0


def test_nothing_is_watched_that_frees_nothing_or_if_it_is_said_so():
    with watched([(t, t, 0) for t in range(300)], watch="off") as engine:
        assert not engine.inputs.streams["o"].watches
        engine.execute("SET watch = 'on'")
        assert set(engine.inputs.streams["o"].watches.by_column) == {1}
        assert set(engine.inputs.streams["p"].watches.by_column) == set()
        engine.execute("CREATE QUERY r AS SELECT v FROM P WHERE id > 3")
        engine.execute("CREATE QUERY s AS SELECT count(*) AS n FROM P [RANGE 5] GROUP BY id")
        assert set(engine.inputs.streams["p"].watches.by_column) == set()
        engine.execute("CREATE QUERY t AS SELECT DISTINCT v FROM P")
        assert set(engine.inputs.streams["p"].watches.by_column) == {2}


def test_all_of_a_join_must_be_ordered_to_be_suggested():
    """What frees the left side of the outer join needs both others."""
    rows = ordered_rows(random.Random(2), 300)
    with Engine() as engine:
        engine.execute(declared(""))
        engine.execute(f"CREATE QUERY q AS {QUERIES['three']}")
        unordered = [(t, (t * 7919) % 300, v) for t, _, v in rows]
        for name, come in (("O", rows), ("F", rows), ("P", unordered)):
            engine.push(name, come)
        engine.run_until_idle()
        assert set(suggested(engine)) == {"O", "F"}


def test_bytes_freed_are_told():
    rows = [(t, t, 0) for t in range(30_000)]
    with Engine() as engine:
        engine.execute(declared("ORDERED BY (id) WITHIN 2 ROWS"))
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        for start in range(0, 30_000, 3_000):
            for name in STREAMS[:2]:
                engine.push(name, rows[start : start + 3_000])
            engine.run_until_idle()
        row = shown(engine)[0]
        assert row["rows freed"] > 30_000
        assert row["bytes freed"] > 16 * row["rows freed"]


# -- values that come again ------------------------------------------------------------------


def followed(column, cuts, first=0):
    """A sample of all values, after pages that end at these places."""
    sample, start = Sample(), 0
    for end in sorted({*(cut % (len(column) + 1) for cut in cuts), len(column)} - {0}):
        part = np.array(column[start:end], dtype=np.int64)
        seqs = np.arange(start, end, dtype=np.int64)
        pages = [(1, {"f": first + start + n}) for n in range(end - start)]
        sample, start = sample.after(seqs, Values(part), pages), end
    return sample


@given(
    st.lists(st.integers(0, 6), max_size=30),
    st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from([1, 5, 256]),
)
def test_what_is_seen_of_values_is_what_the_definitions_say(column, cuts, together):
    before = samples.SHARE, samples.TOGETHER_VALUES
    samples.SHARE, samples.TOGETHER_VALUES = 1, together
    try:
        sample = followed(column, cuts)
    finally:
        samples.SHARE, samples.TOGETHER_VALUES = before
    where = {v: [p for p, other in enumerate(column) if other == v] for v in column}
    gaps = [b - a - 1 for at in where.values() for a, b in pairwise(at)]
    assert sample.seen.clustered == max(gaps, default=0)
    assert sample.seen.unique == max((at[-1] - at[0] for at in where.values()), default=0)
    assert {v: (first, last) for v, (first, last, _) in sample.seen.places.items()} == {
        v: (at[0], at[-1]) for v, at in where.items()
    }


def test_a_share_of_all_values_is_followed_and_the_last_of_them_remembered(monkeypatch):
    numbers = np.arange(-100_000, 100_000, dtype=np.int64)
    assert 600 < is_followed(numbers).sum() < 1_000
    monkeypatch.setattr(samples, "MOST_VALUES", 50)
    seqs = np.arange(len(numbers), dtype=np.int64)
    sample = Sample().after(seqs, Values(numbers), [(len(numbers), {})])
    assert list(sample.seen.places) == numbers[is_followed(numbers)][-50:].tolist()


def test_constraints_of_values_are_seen_suggested_and_taken_as_measured(tmp_path):
    """Orders come once, in no order, each 50 together after three pieces of each."""
    orders = np.random.default_rng(1).permutation(9_000).tolist()
    with Engine({"watch": "on"}, store=tmp_path) as engine:
        engine.execute(declared(""))
        engine.execute(f"CREATE QUERY q AS {QUERIES['two']}")
        for start in range(0, 9_000, 50):
            part = orders[start : start + 50]
            engine.push("F", [(start, each, piece) for each in part for piece in range(3)])
            engine.push("O", [(start, each, 0) for each in part])
        found = shown(engine)
        assert {(row["stream"], row["says"]): row["measured"] for row in found} == {
            ("O", "CLUSTERED BY (id)"): "0 rows",
            ("F", "CLUSTERED BY (id)"): "0 rows",
            ("O", "UNIQUE (id)"): "0 rows",
            ("F", "UNIQUE (id)"): "2 rows",
            ("O", "FOREIGN KEY (id) REFERENCES F (id)"): "0 rows",
            ("F", "FOREIGN KEY (id) REFERENCES O (id)"): "150 rows",
        }
        for row in found:
            engine.execute(row["to say"])
        declared_now = {(r["stream"], r["says"]): r["within"] for r in shown(engine)}
        assert declared_now == {(r["stream"], r["says"]): r["measured"] for r in found}
        told = str(engine.explain("q"))
        for row in shown(engine):
            assert f"{row['stream']}.{row['name']} frees" in told
    with Engine(store=tmp_path) as engine:
        assert {(r["stream"], r["says"]): r["within"] for r in shown(engine)} == declared_now


def test_of_few_values_nothing_is_said():
    with watched([(t, t % 5, 0) for t in range(3_000)], size=1_000, watch="on") as engine:
        assert not shown(engine)
        with pytest.raises(CqlError, match="one value in 256 was followed, if SET watch"):
            engine.execute("ALTER STREAM O ADD CLUSTERED BY (id) AS MEASURED")

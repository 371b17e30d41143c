"""Latencies: right within the width of a bucket, and from arrivals to results through a plan."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.delivery.latency import LatencyRecord, in_unit, together

SECONDS = st.floats(1e-5, 1e5)


@given(st.lists(st.tuples(SECONDS, st.integers(1, 50)), min_size=1, max_size=60))
def test_means_are_exact_and_percentiles_right_within_a_bucket(given_latencies):
    record = LatencyRecord(began=-math.inf)
    for seconds, rows in given_latencies:
        record.add(((-seconds, 1.0),), rows, now=0.0)
    known = record.known()
    flat = sorted(s for s, rows in given_latencies for _ in range(rows))
    assert known.results == len(flat)
    assert known.mean_seconds == pytest.approx(sum(flat) / len(flat))
    assert known.largest_seconds == flat[-1]
    for fraction, found in [
        (0.5, known.p50_seconds),
        (0.95, known.p95_seconds),
        (0.99, known.p99_seconds),
    ]:
        exact = flat[max(math.ceil(fraction * len(flat) - 1e-6) - 1, 0)]
        assert found == pytest.approx(exact, rel=0.05)


def test_queries_together_are_as_one_with_the_results_of_all():
    parts, whole = [LatencyRecord(-math.inf) for _ in range(3)], LatencyRecord(-math.inf)
    for number in range(90):
        for record in (parts[number % 3], whole):
            record.add(((-float(1 + number * number), 1.0),), 1 + number % 4, now=0.0)
    assert str(together(parts).known()) == str(whole.known())
    assert together(parts).known().results == whole.known().results


def test_memory_does_not_grow_with_the_results():
    record = LatencyRecord(began=0.0)
    for n in range(100_000):
        record.add(((0.0, 1.0),), 1, now=1e-6 * 1.0003**n)
    assert len(record._buckets) < 400


def test_what_was_there_before_the_query_counts_from_its_registration():
    record = LatencyRecord(began=100.0)
    record.add(((1.0, 5.0),), 5, now=100.5)
    assert record.known().mean_seconds == pytest.approx(0.5)


def test_no_results_have_no_latency():
    known = LatencyRecord(began=0.0).known()
    assert math.isnan(known.mean_seconds)
    assert math.isnan(known.p99_seconds)
    assert str(known) == "no results with an arrival"
    assert in_unit(known.mean_seconds) == "–"


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute(
            """CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
               CREATE VIEW Counts AS SELECT a, count(*) AS n FROM S [RANGE 10] GROUP BY a;
               CREATE QUERY behind AS SELECT n FROM Counts WHERE a > 0;
               CREATE QUERY direct AS SELECT a FROM S;"""
        )
        yield engine


def test_latency_goes_from_arrival_to_output_through_all_operators(engine):
    before = time.monotonic()
    engine.push("S", [(1, 1), (2, 2)])
    engine.advance("S", 2)
    came = time.monotonic()
    while time.monotonic() < came + 0.05:
        pass
    began = time.monotonic()
    engine.run_until_idle()
    ended = time.monotonic()
    for query in ("behind", "direct"):
        known = engine.latency(query)
        assert known.results == 2
        assert began - came <= known.mean_seconds <= ended - before
        assert known.largest_seconds <= ended - before


def test_ends_of_windows_that_no_tuple_causes_are_counted_apart(engine):
    engine.push("S", [(1, 1)])
    engine.advance("S", 1)
    engine.run_until_idle()
    engine.advance("S", 20)
    engine.run_until_idle()
    assert [row["weight"] for row in engine.results("behind", "rows")] == [1, -1]
    known = engine.latency("behind")
    assert (known.results, known.without_arrival) == (1, 1)
    engine.push("S", [(25, 2)])
    engine.push("S", [(40, 3)])
    engine.advance("S", 40)
    engine.run_until_idle()
    assert engine.latency("behind").without_arrival == 1


def test_show_tells_latencies(engine):
    engine.push("S", [(1, 1)])
    engine.finish()
    (table,) = engine.execute("SHOW LATENCY")
    rows = {row["query"]: row for row in table.to_pylist()}
    assert rows["direct"]["results"] == 1
    assert rows["direct"]["p99"].endswith("s")
    (queries,) = engine.execute("SHOW QUERIES")
    details = dict(zip(queries["name"].to_pylist(), queries["detail"].to_pylist(), strict=True))
    assert ", latency mean " in details["direct"]


def test_what_came_since_a_copy_is_told_apart():
    record = LatencyRecord(began=-math.inf)
    record.add(((-1.0, 1.0),), 10, now=0.0)
    before = record.copy()
    record.add(((-4.0, 1.0),), 5, now=0.0)
    since = record.since(before)
    assert (since.results, since.mean_seconds) == (5, pytest.approx(4.0))
    assert since.p50_seconds == pytest.approx(4.0, rel=0.1)
    assert record.known().results == 15
    assert record.since(record.copy()).results == 0

"""Sets of queries of a few shapes, registered and dropped at any time: each answer is its own.

Queries that differ in constants only run as one; the reference knows one query at a time. Sets are
run in the ways that must not matter (``tests.ways``), most of them without Spark's executors.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest

from millpond import Engine
from millpond.planning.physical import TotalsOperator
from millpond.sharing.groups import Groups
from tests.fuzz import check, drive
from tests.matching import difference
from tests.overflowing import check_set
from tests.siblings import sharing_case, with_samples
from tests.test_shared_totals import STREAM, kinds, page, register
from tests.ways import Way

pytestmark = pytest.mark.spark

TESTS, SETS = 3, 3
"""9 sets of 2 to 12 queries, most of them plain alerts; others are for make fuzz."""
ON_EXECUTORS_EVERY = 40


@pytest.mark.parametrize("number", range(TESTS))
def test_each_query_of_a_set_answers_as_if_alone(spark, number, monkeypatch):
    joined = []
    join = Groups.join
    monkeypatch.setattr(
        Groups, "join", lambda *given, **more: joined.append(given) or join(*given, **more)
    )
    for seed in range(number * SETS, (number + 1) * SETS):
        way = Way.drawn(seed).seldom_validated()
        rows = 0 if seed % ON_EXECUTORS_EVERY == 0 else 10**9
        way = replace(way, sharing=("auto", "on")[seed % 2], driver_rows=rows, switches=0.0)
        way = replace(way, moves=min(way.moves, 0.1))  # moving all queues for each step is dear
        case = replace(sharing_case(seed, most=8, plain=0.9), strategy="fifo")
        failures = check(way.engines(spark), case)
        assert not failures, "\n".join(map(str, failures[:1]))
    assert joined  # else nothing was shared


@pytest.mark.parametrize("driver_rows", [10**9, 0])
def test_samples_of_any_rate_are_those_of_a_query_alone(spark, driver_rows):
    """The reference knows no samples: queries that share nothing say what is right."""
    first = 1 if driver_rows else 3
    founded = sum(sampled_alike(spark, seed, driver_rows) for seed in range(first, 5))
    assert founded > 0


def sampled_alike(spark, seed, driver_rows):
    """Runs a set with sharing and without; how many of its groups differ in samples."""
    case = sharing_case(seed, most=8, plain=0.9)
    case = with_samples(random.Random(seed), replace(case, strategy="fifo"))
    way = replace(Way(seed), driver_rows=driver_rows)
    with replace(way, sharing="off").engines(spark)({}) as engine:
        wanted, _, _ = drive(engine, case)
    way = replace(way, store=("memory", "dying")[seed % 2], sharing=("on", "auto")[seed // 2 % 2])
    with way.engines(spark)({}) as engine:
        found, _, _ = drive(engine, case)
        labels = [operator.label() for operator in engine.graph.operators.values()]
    for name, answer in wanted.items():
        assert not difference(answer, found[name]), f"{name} of {case}"
    return sum("draw <" in label for label in labels)


def test_who_overflows_fails_alone_on_the_executors(spark):
    """What a worker raises says whose rows it was about."""
    with_executors = partial(Engine, {"driver_rows": 0}, spark)
    assert sum(check_set(with_executors, seed) for seed in range(3)) > 0


def test_windows_of_several_lengths_read_totals_that_executors_make(spark):
    found, lengths = [], (2, 5, 9, 20)
    for settings in ({"driver_rows": 0}, {"sharing": "off"}):
        with Engine(settings, spark) as engine:
            engine.execute(STREAM)
            register(engine, *lengths)
            for number in range(3):
                page(engine, number)
            engine.finish()
            found.append([engine.results(f"q{each}").to_pylist() for each in lengths])
            for totals in kinds(engine, TotalsOperator):
                tally = engine.runtime.statistics[totals].tally
                assert tally.executor_steps == tally.steps > 0
                assert tally.rows_out < tally.rows_taken / 2
            assert bool(kinds(engine, TotalsOperator)) == ("sharing" not in settings)
    assert found[0] == found[1]


def test_matched_rows_reach_the_bucket_of_their_key_on_the_executors(spark):
    """What reads a match may divide its rows by columns that the match has made."""
    text = "SELECT DISTINCT v, k FROM S [UNBOUNDED] WHERE w > {}"
    with Engine({"driver_rows": 0}, spark) as engine:
        engine.execute("CREATE STREAM S (ts BIGINT, w INT, k INT, v INT) TIMESTAMP BY ts")
        engine.execute(";".join(f"CREATE QUERY q{i} AS {text.format(i)}" for i in range(3)))
        for ts in range(3):
            engine.push("S", [(ts, 5, k, k % 3) for k in range(20)])
            engine.advance("S", ts)
            engine.run_until_idle()
        found = engine.results("q2").to_pylist()
    assert sorted((row["k"], row["ts"]) for row in found) == [(k, 0) for k in range(20)]

"""Joins that run are shared, but where one puts out much and its readers are uneven."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from millpond import Engine
from millpond.execution.statistics import Tally
from millpond.planning.physical import JoinOperator
from tests.crashing import die
from tests.fuzz import check
from tests.joined import drawn_apart, joined_case
from tests.ways import Way

STREAMS = (
    "CREATE STREAM A (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;"
    "CREATE STREAM B (ts BIGINT, k INT, w INT) TIMESTAMP BY ts;"
)
JOIN = "FROM A [RANGE 20] a, B [RANGE 20] b WHERE a.k = b.k"
LARGEST = f"SELECT a.k, max(a.v) AS m, max(b.w) AS n {JOIN} GROUP BY a.k"
SMALLEST = f"SELECT a.k, min(a.v) AS m, max(b.w) AS n {JOIN} GROUP BY a.k"
WIDEST = f"SELECT b.w, max(a.v) AS m, min(a.k) AS n {JOIN} GROUP BY b.w"
MEAN = f"SELECT a.k, avg(a.v) AS m, sum(b.w) AS n {JOIN} GROUP BY a.k"

MANY, FEW = 10_000_000, 1_000_000


def page(engine, number, rows=40):
    for name in ("A", "B"):
        engine.push(name, [(number * rows + i, i % 4, (i + number) % 7) for i in range(rows)])
    for name in ("A", "B"):
        engine.advance(name, number * rows + rows - 1)
    engine.run_until_idle()


def begun(engine, *queries):
    """Some queries that have run for a while; q0's join is op1, its reader op2."""
    engine.execute(STREAMS)
    for number, text in enumerate(queries):
        engine.execute(f"CREATE QUERY q{number} AS {text}")
    page(engine, 0)


def seen(engine, identity, seconds, bytes_out=MANY, rows=100_000, steps=100):
    """Has so much be measured of an operator."""
    engine.runtime.statistics[identity].tally = Tally(
        driver_steps=steps, rows_taken=rows, rows_out=rows, bytes_in=FEW,
        bytes_out=bytes_out, seconds=seconds,
    )  # fmt: skip


def joins(engine):
    """The joins that run."""
    found = engine.graph.operators.items()
    return {name: each.number for name, each in found if isinstance(each, JoinOperator)}


def readers(engine):
    """What reads the first query's join."""
    return engine.graph.readers("op1")


def physical(engine, text):
    return str(engine.execute(f"EXPLAIN PHYSICAL {text}")[0])


def uneven(engine):
    """One that reads slowly, and a join that puts out much."""
    begun(engine, LARGEST)
    seen(engine, "op1", 1.0)
    seen(engine, "op2", 30.0)


def test_who_comes_beside_a_slow_reader_of_a_join_that_puts_out_much_has_its_own():
    with Engine() as engine:
        uneven(engine)
        told = physical(engine, f"CREATE QUERY c AS {SMALLEST}")
        assert "op4: Join ON (k = k) (apart, 1)" in told
        assert "will be one" not in told
        assert (
            "Join ON (k = k) is not shared with op1: it puts out 10.0 times the bytes it reads and "
            "takes 10.00 µs for a row; op2, which reads that, takes 300.00"
        ) in told
        engine.execute(f"CREATE QUERY c AS {SMALLEST}")
        assert list(joins(engine).values()) == [0, 1]
        for number in range(1, 4):
            page(engine, number)
        assert list(joins(engine).values()) == [0, 1]  # they do not converge
        assert not engine.show("sharing").to_pylist()
        assert "(apart, 1)" in physical(engine, "c")


def test_one_of_several_that_read_a_join_is_slow():
    with Engine() as engine:
        begun(engine, LARGEST, WIDEST)
        slow, quick = readers(engine)
        seen(engine, "op1", 1.0)
        seen(engine, slow, 30.0)
        seen(engine, quick, 2.0)
        told = physical(engine, f"CREATE QUERY c AS {SMALLEST}")
        assert f"{slow}, which reads that, takes 300.00, {quick} 20.00" in told
        engine.execute(f"CREATE QUERY c AS {SMALLEST}")
        assert list(joins(engine).values()) == [0, 1]


SHARED = {
    "the join puts out little": {"join": {"seconds": 1.0, "bytes_out": FEW}},
    "what reads it is no slower than the join": {"join": {"seconds": 20.0}},
    "all that read it are slow": {"other": {"seconds": 20.0}},
    "the join was not measured": {"join": {"seconds": 0.0001, "rows": 10}},
    "it has done few steps": {"join": {"seconds": 1.0, "steps": 5}},
    "what reads it was not measured": {"reader": {"seconds": 0.03, "rows": 100}},
}


@pytest.mark.parametrize("case", SHARED)
def test_joins_are_shared_otherwise(case):
    measured = {"join": {"seconds": 1.0}, "reader": {"seconds": 30.0}} | SHARED[case]
    with Engine() as engine:
        begun(engine, LARGEST, *([WIDEST] if "other" in measured else []))
        for identity, said in zip(("op1", *readers(engine)), measured.values(), strict=True):
            seen(engine, identity, **said)
        told = physical(engine, f"CREATE QUERY c AS {SMALLEST}")
        assert "not shared" not in told
        assert "will be one with op1" in told
        engine.execute(f"CREATE QUERY c AS {SMALLEST}")
        for number in range(1, 4):
            page(engine, number)
        assert list(joins(engine).values()) == [0]
        (row,) = engine.show("sharing").to_pylist()
        assert row["shared"] == "op1"
        assert row["does"] == "Join ON (k = k)"


def test_what_is_measured_of_a_slow_function_counts():
    def slow(values):
        time.sleep(5e-4 * len(values))
        return values

    with Engine(functions=[("slow", slow, ["INT"], "INT")]) as engine:
        begun(engine, LARGEST.replace("max(a.v)", "max(slow(a.v))"))
        for number in range(1, 12):
            page(engine, number)
        assert "is not shared with op1" in physical(engine, f"CREATE QUERY c AS {SMALLEST}")


def test_those_that_come_later_share_what_is_not_uneven():
    with Engine() as engine:
        uneven(engine)
        engine.execute(f"CREATE QUERY c AS {SMALLEST}; CREATE QUERY d AS {WIDEST}")
        assert list(joins(engine).values()) == [0, 1]
        (row,) = engine.show("sharing").to_pylist()
        assert (row["does"], row["queries"]) == ("Join ON (k = k) (apart, 1)", "c, d")
        page(engine, 1)
        engine.execute(f"CREATE QUERY e AS {MEAN}")
        for number in range(2, 5):
            page(engine, number)
        assert list(joins(engine).values()) == [0, 1]
        second = list(joins(engine))[1]
        quick, *slow = engine.graph.readers(second)
        for identity, seconds in {second: 1.0, quick: 1.0, **dict.fromkeys(slow, 30.0)}.items():
            seen(engine, identity, seconds)
        engine.execute(f"CREATE QUERY f AS {MEAN.replace('avg', 'min')}")
        assert list(joins(engine).values()) == [0, 1, 2]


def test_who_adds_no_reader_to_the_join_shares_it():
    """The slow reader itself is shared: nothing is read twice."""
    with Engine() as engine:
        uneven(engine)
        told = physical(engine, f"CREATE QUERY c AS SELECT n, k, m FROM ({LARGEST}) x")
        assert "not shared" not in told
        engine.execute(f"CREATE QUERY c AS SELECT n, k, m FROM ({LARGEST}) x")
        for number in range(1, 4):
            page(engine, number)
        assert list(joins(engine).values()) == [0]


def test_what_is_above_a_join_that_is_apart_is_shared_with_it():
    with Engine() as engine:
        uneven(engine)
        engine.execute(f"CREATE QUERY c AS {SMALLEST}")
        page(engine, 1)
        engine.execute(f"CREATE QUERY d AS SELECT n, k, m FROM ({SMALLEST}) x")
        for number in range(2, 5):
            page(engine, number)
        assert list(joins(engine).values()) == [0, 1]
        labels = [each.label() for each in engine.graph.operators.values()]
        assert labels.count("Aggregate min(v), max(w) BY k") == 1


def test_sharing_can_be_forced_and_forbidden():
    with Engine({"sharing": "on"}) as engine:
        uneven(engine)
        engine.execute(f"CREATE QUERY c AS {SMALLEST}")
        for number in range(1, 4):
            page(engine, number)
        assert list(joins(engine).values()) == [0]
    with Engine({"sharing": "off"}) as engine:
        engine.execute(STREAMS)
        for name, text in {"c": LARGEST, "d": SMALLEST, "e": LARGEST}.items():
            engine.execute(f"CREATE QUERY {name} AS {text}")
        assert list(joins(engine).values()) == [0, 1, 2]
        told = physical(engine, f"CREATE QUERY f AS {WIDEST}")
        assert "Join ON (k = k) is not shared with op1: sharing is off" in told
        engine.execute(f"SET sharing = 'auto'; CREATE QUERY f AS {WIDEST}")
        assert list(joins(engine).values()) == [0, 1, 2]


def test_one_query_reads_its_own_join_twice():
    text = f"SELECT x.k, y.m FROM ({SMALLEST}) x, ({LARGEST}) y WHERE x.k = y.k"
    with Engine({"sharing": "off"}) as engine:
        engine.execute(f"{STREAMS} CREATE QUERY c AS {text}")
        assert len(joins(engine)) == 2
        engine.execute(f"CREATE QUERY d AS {text}")
        assert sorted(joins(engine).values()) == [0, 0, 1, 1]


def test_groups_are_as_they_were():
    member = f"{LARGEST} HAVING max(a.v) > {{}}"
    with Engine() as engine:
        begun(engine, member.format(1), member.format(2))
        assert engine.queries.groups.of("q0") is not None
        seen(engine, "op1", 1.0)
        seen(engine, "op2", 30.0)
        engine.execute(f"CREATE QUERY c AS {SMALLEST}")  # it stands alone
        assert list(joins(engine).values()) == [0, 1]
        for name, limit in {"d": 3, "e": 4}.items():  # they read what reads the join
            engine.execute(f"CREATE QUERY {name} AS {member.format(limit)}")
        for number in range(1, 4):
            page(engine, number)
        assert list(joins(engine).values()) == [0, 1]
        assert engine.queries.groups.of("d") is engine.queries.groups.of("e") is not None


def rows_of(engine, *names):
    return [engine.results(name).to_pylist() for name in names]


@pytest.mark.parametrize("shortens", [False, True])
def test_what_was_chosen_is_chosen_again_after_a_restart(tmp_path, shortens):
    """Though nothing is measured then, and who had the other join is gone."""
    expected = []
    for text in (SMALLEST, MEAN):
        with Engine() as engine:
            engine.execute(STREAMS)
            page(engine, 0)
            engine.execute(f"CREATE QUERY c AS {text}")
            for number in range(1, 5):
                page(engine, number)
            engine.finish()
            expected += rows_of(engine, "c")
    engine = Engine(store=tmp_path)
    uneven(engine)
    engine.execute(f"CREATE QUERY c AS {SMALLEST}; CREATE QUERY d AS {MEAN}")
    page(engine, 1)
    page(engine, 2)
    engine.execute("DROP QUERY q0")
    if shortens:
        engine.compact_log()
    plan = engine.graph.describe()
    assert list(joins(engine).values()) == [1]
    die(engine)
    with Engine(store=tmp_path) as again:
        assert again.graph.describe() == plan
        page(again, 3)
        page(again, 4)
        again.finish()
        assert rows_of(again, "c", "d") == expected


def test_who_is_activated_again_chooses_anew(tmp_path):
    engine = Engine(store=tmp_path)
    uneven(engine)
    engine.execute(f"CREATE QUERY c AS {SMALLEST}")
    seen(engine, "op2", 2.0)
    engine.execute("ALTER QUERY c DEACTIVATE; ALTER QUERY c ACTIVATE")
    assert list(joins(engine).values()) == [0, 0]
    page(engine, 1)
    seen(engine, "op2", 30.0)
    engine.execute("ALTER QUERY c DEACTIVATE; ALTER QUERY c ACTIVATE")
    assert list(joins(engine).values()) == [0, 1]
    plan = engine.graph.describe()
    die(engine)
    with Engine(store=tmp_path) as again:
        assert again.graph.describe() == plan


SETS = 24
"""Three quarters of them: more take longer, and have found nothing else."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_each_query_of_a_set_answers_as_if_alone(number):
    apart = 0
    for seed in range(3000 + number, 3000 + SETS, 4):
        with drawn_apart(seed, (0.4, 1.0)[seed // 4 % 2]) as taken:
            failures = check(way_of(seed).engines(None), joined_case(seed))
        assert not failures, "\n".join(map(str, failures[:1]))
        apart += len(taken)
    assert apart


def way_of(seed):
    """A way without executors."""
    sharing = ("auto", "auto", "off")[seed // 3 % 3]
    way = Way.drawn(seed).seldom_validated()
    return replace(way, sharing=sharing, driver_rows=10**9, switches=0.0)

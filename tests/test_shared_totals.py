"""Counts and sums of windows of several lengths read totals, made once for all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millpond import Engine
from millpond.execution.statistics import Tally
from millpond.planning.physical import AggregateOperator, TotalsOperator
from millpond.sharing.shared_totals import TOTALS, SharedTotals
from tests.crashing import die
from tests.fuzz import check
from tests.totalled import totalled_case, totalled_from
from tests.ways import Way

STREAM = "CREATE STREAM S (ts BIGINT, k INT, v INT, x DOUBLE) TIMESTAMP BY ts;"
ROWS = 120
TEXT = "SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE {}] GROUP BY k"


def page(engine, number):
    engine.push("S", [(number * 6 + i // 20, i % 3, i % 5, 0.5) for i in range(ROWS)])
    engine.advance("S", number * 6 + 5)
    engine.run_until_idle()


def register(engine, *lengths, text=TEXT):
    script = (f"CREATE QUERY q{length} AS {text.format(length)}" for length in lengths)
    engine.execute(";".join(script))


def kinds(engine, kind):
    return [name for name, each in engine.graph.operators.items() if isinstance(each, kind)]


def physical(engine, text):
    return str(engine.execute(f"EXPLAIN PHYSICAL {text}")[0])


def test_windows_of_one_script_read_one_total():
    with Engine() as engine:
        engine.execute(STREAM)
        register(engine, 5, 6, 7)
        assert not kinds(engine, TotalsOperator)
        assert "Totals of each tick" in physical(engine, TEXT.format(9))
        register(engine, 12)
        (totals,) = kinds(engine, TotalsOperator)
        assert engine.graph.readers(totals) == kinds(engine, AggregateOperator)
        assert len(kinds(engine, AggregateOperator)) == 4
        assert "Totals of each tick: count, sum of cast(v AS BIGINT) BY k" in physical(engine, "q5")
        page(engine, 0)
        assert engine.runtime.statistics[totals].tally.rows_out < ROWS / 2
        register(engine, 9)
        for number in range(1, 5):
            page(engine, number)
        assert len(kinds(engine, TotalsOperator)) == 1  # the late one has converged
        engine.execute(";".join(f"DROP QUERY q{length}" for length in (5, 6, 7, 12, 9)))
        assert not engine.graph.operators


def test_answers_are_those_of_queries_that_share_nothing():
    found = []
    for sharing in ("auto", "off"):
        with Engine({"sharing": sharing}) as engine:
            engine.execute(STREAM)
            register(engine, 2, 5, 9, 20)
            for number in range(5):
                page(engine, number)
            engine.finish()
            found.append([engine.results(f"q{each}").to_pylist() for each in (2, 5, 9, 20)])
            assert bool(kinds(engine, TotalsOperator)) == (sharing == "auto")
    assert found[0] == found[1]


NEVER = {
    "doubles": "SELECT k, sum(x) AS s FROM S [RANGE {}] GROUP BY k",
    "a key that is a double": "SELECT x, count(*) AS s FROM S [RANGE {}] GROUP BY x",
    "extremes": "SELECT k, max(v) AS s FROM S [RANGE {}] GROUP BY k",
    "different values": "SELECT k, count(DISTINCT v) AS s FROM S [RANGE {}] GROUP BY k",
    "what may fail": "SELECT k, sum(10 / v) AS s FROM S [RANGE {}] GROUP BY k",
    "windows that slide": "SELECT k, count(*) AS s FROM S [RANGE {} SLIDE 2] GROUP BY k",
    "samples": "SELECT k, count(*) AS s FROM S [RANGE {}] SAMPLE(50) GROUP BY k",
}


@pytest.mark.parametrize("why", NEVER)
def test_what_totals_would_change_reads_tuples(why):
    with Engine({"sharing": "on"}) as engine:
        engine.execute(STREAM)
        register(engine, 5, 6, 7, 8, 9, text=NEVER[why])
        assert not kinds(engine, TotalsOperator)


def test_with_sharing_on_two_are_enough():
    with Engine({"sharing": "on"}) as engine:
        engine.execute(STREAM)
        register(engine, 5, 6)
        assert len(kinds(engine, TotalsOperator)) == 1


def seen(engine, rows_in, rows_out):
    for identity in kinds(engine, AggregateOperator):
        engine.runtime.statistics[identity].tally = Tally(driver_rows=rows_in, rows_out=rows_out)


@pytest.mark.parametrize(("rows_out", "pays"), [(20_000, True), (80_000, False)])
def test_who_comes_later_reads_totals_where_rows_are_many_for_their_changes(rows_out, pays):
    with Engine() as engine:
        engine.execute(STREAM)
        register(engine, 5, 6, 7)
        page(engine, 0)
        seen(engine, 100_000, rows_out)
        register(engine, 8)
        assert len(kinds(engine, TotalsOperator)) == pays
        assert len(kinds(engine, AggregateOperator)) == 4  # those before it go on as they are


def test_an_equal_window_that_reads_tuples_is_shared():
    with Engine() as engine:
        engine.execute(STREAM)
        register(engine, 5, 6, 7)
        page(engine, 0)
        engine.execute(f"CREATE QUERY again AS {TEXT.format(6)}")
        register(engine, 8)
        page(engine, 1)
        page(engine, 2)
        assert len(kinds(engine, AggregateOperator)) == 4


@pytest.mark.parametrize("shortens", [False, True])
def test_what_was_chosen_is_chosen_again_after_a_restart(tmp_path, shortens):
    with Engine({"sharing": "off"}) as engine:
        engine.execute(STREAM)
        register(engine, 3, 6, 9, 12)
        for number in range(4):
            page(engine, number)
        engine.finish()
        expected = [engine.results(f"q{each}").to_pylist() for each in (6, 12)]
    engine = Engine(store=tmp_path)
    engine.execute(STREAM)
    register(engine, 3, 6, 9, 12)
    page(engine, 0)
    page(engine, 1)
    engine.execute("DROP QUERY q3; DROP QUERY q9; ALTER QUERY q6 ON ERROR SKIP")
    if shortens:
        engine.compact_log()
    plan = dict(engine.graph.operators)
    assert kinds(engine, TotalsOperator)
    die(engine)
    with Engine(store=tmp_path) as again:
        assert again.graph.operators == plan
        page(again, 2)
        page(again, 3)
        again.finish()
        assert [again.results(f"q{each}").to_pylist() for each in (6, 12)] == expected


SETS = 16
"""More of them take longer, and have found nothing else."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_each_query_of_a_set_answers_as_if_alone(number, monkeypatch):
    chosen, begun = [], SharedTotals.begun
    monkeypatch.setattr(
        SharedTotals, "begun", lambda self, *given: chosen.append(given[2]) or begun(self, *given)
    )
    for seed in range(4000 + number, 4000 + SETS, 4):
        with totalled_from(2 + seed // 4 % 3):
            failures = check(way_of(seed).engines(None), totalled_case(seed))
        assert not failures, "\n".join(map(str, failures[:1]))
    assert any(TOTALS in each for each in chosen)


def way_of(seed):
    """A way without executors."""
    sharing = ("auto", "auto", "on")[seed // 3 % 3]
    way = Way.drawn(seed).seldom_validated()
    return replace(way, sharing=sharing, driver_rows=10**9, switches=0.0)

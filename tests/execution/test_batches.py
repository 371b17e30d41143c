"""Steps grow with the backlog until their fixed part does not matter, and never wait for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.execution.batches import (
    FIRST_ROWS,
    FIRST_SLICE_ROWS,
    FIXED_SHARE,
    Experience,
    batch_rows,
    growing_rows,
    sliced_rows,
)
from millpond.execution.costs import Line
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.strategy_text import driving_spark

SECONDS = st.floats(1e-6, 10)


@given(st.none() | st.integers(1, 10**6), st.none() | SECONDS, SECONDS, st.floats(1e-8, 1e-2))
def test_the_fixed_part_is_a_tenth_at_most(
    tuples: int | None, seconds: float | None, step: float, row: float
) -> None:
    line, most, waiting = Line(step, row), 10**9, 10**18
    rows = batch_rows(RunOperator(0, tuples, seconds), Experience(line, most), waiting, most)
    assert rows == most or line.step <= 1.001 * FIXED_SHARE * line.at(rows)
    if tuples is None and seconds is None:
        assert rows == most
    needed = step * (1 / FIXED_SHARE - 1) / row
    if tuples is not None and tuples > needed + 1 and seconds is None:
        assert rows == tuples
    if seconds is not None:
        assert rows <= needed + 2 or line.at(rows - 1) <= seconds * 1.001


@given(st.floats(1e-6, 1.0), SECONDS, st.integers(0, 10**6), st.floats(1e-9, 10.0))
def test_the_rows_of_a_step_are_over_within_the_slice(
    slice_seconds: float, step: float, known: int, row: float
) -> None:
    rows = sliced_rows(slice_seconds, Experience(Line(step, row), known), 500_000)
    assert rows == 1 or rows * row <= slice_seconds * 1.001 + 1e-6 * row
    assert rows <= max(2 * known, FIRST_SLICE_ROWS)  # what was not seen is approached by and by
    assert sliced_rows(0.0, Experience(Line(step, row), known), 500_000) == 500_000


def test_a_step_of_what_grows_lets_the_backlog_grow_by_a_part_only() -> None:
    assert growing_rows(138.0, 4e6, 500_000) == 7246  # a quarter of it, 138 bytes a row
    assert growing_rows(138.0, 1e3, 500_000) == FIRST_ROWS  # little waits: nothing is to be saved
    assert growing_rows(0.0, 4e6, 500_000) == 500_000


def test_a_join_that_makes_much_of_its_rows_is_not_given_many_at_once() -> None:
    """Chain takes a join and what is behind it as one; its steps must not pile it all up."""
    with Engine({"processors": 1, "strategy": "chain(max_tuples = 1)", "driver_rows": 10**9}) as e:
        e.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
            "CREATE STREAM T (t BIGINT, a INT) TIMESTAMP BY t;"
            "CREATE QUERY q AS SELECT ISTREAM S.a FROM S [RANGE 30], T [RANGE 30]"
            " WHERE S.a = T.a;"
        )
        (join,) = (n for n, o in e.graph.operators.items() if o.label().startswith("Join"))
        e.execute(f"ALTER PLAN QUEUE AFTER {join}")
        rows = [(t, t % 10) for t in range(2_000)]
        for name in ("S", "T"):
            e.push(name, rows)
        e.run_until_idle()  # and it is known what it makes of a row
        e.runtime.statistics[join]._costs.record(1, 5.0)  # a step alone is thought to be dear
        rows = [(t, t % 10) for t in range(2_000, 8_000)]
        for name in ("S", "T"):
            e.push(name, rows)
        before = e.runtime.backlog.bytes
        e.runtime.backlog.peak_bytes = before
        e.run_until_idle()
        assert e.runtime.backlog.peak_bytes <= 1.6 * before


def test_limits_of_the_user_are_kept_and_a_step_makes_progress() -> None:
    def rows(decision: RunOperator, line: Line) -> int:
        return batch_rows(decision, Experience(line, 40), 60, 50)

    assert rows(RunOperator(0, 1), Line(1.0, 1e-6)) == 50
    assert rows(RunOperator(0, 1), Line(0.0, 0.0)) == 1
    assert rows(RunOperator(0, None, 0.1), Line(0.5, 0.0)) == 50


def test_what_large_steps_cost_is_found_out_by_and_by() -> None:
    one, steep, many = RunOperator(0, 1), Line(0.1, 0.0), 600_000
    assert batch_rows(one, Experience(steep, 0.0), many, 10**6) == FIRST_ROWS
    assert batch_rows(one, Experience(steep, 300.0), many, 10**6) == 600
    assert batch_rows(RunOperator(0, 5_000), Experience(steep, 300.0), many, 10**6) == 5_000


@given(st.integers(1, 10**6), st.floats(1e-4, 1.0))
def test_what_waits_is_served_in_even_parts(waiting: int, step: float) -> None:
    line, most = Line(step, 1e-5), 10**9
    rows = batch_rows(RunOperator(0, 1), Experience(line, most), waiting, most)
    needed = step * (1 / FIXED_SHARE - 1) / line.row
    assert needed - 1 <= rows <= 2 * needed + 1
    parts = -(-waiting // rows)
    assert parts == 1 or waiting - (parts - 1) * rows >= rows - parts, "the last one is no crumb"


def test_the_first_step_of_a_round_is_worth_the_whole_round() -> None:
    cheap = Experience(Line(0.001, 1e-7), 10**6)
    alone, round_ = RunOperator(0, 1), RunOperator(0, 1, breakeven_tuples=400.0)
    assert batch_rows(alone, cheap, 90_000, 10**6) == 90_000
    assert batch_rows(round_, cheap, 90_000, 10**6) == 3_600
    assert batch_rows(round_._replace(max_tuples=5_000), cheap, 90_000, 10**6) == 5_000


def push(engine: Engine, first: int, count: int) -> None:
    engine.push("S", [(n, n % 7) for n in range(first, first + count)])


@pytest.mark.parametrize("strategy", ["per-tuple-greedy", "fifo(max_tuples = 1)"])
def test_a_backlog_is_served_in_batches_and_little_at_once(strategy: str) -> None:
    with Engine({"strategy": strategy}) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t; CREATE QUERY q AS SELECT a FROM S;"
        )
        push(engine, 0, 3)
        engine.run_until_idle()
        (tally,) = [each.tally for each in engine.runtime.statistics.values()]
        assert (tally.steps, tally.rows_in) == (1, 2)
        push(engine, 3, 50_000)
        engine.run_until_idle()
        assert tally.steps < 200
        engine.finish()
        assert engine.result_count("q") == 50_003


def test_strategies_may_change_while_steps_run() -> None:
    script = """
        CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
        CREATE QUERY few AS SELECT a FROM S WHERE a > 3;
        CREATE QUERY counts AS SELECT a, count(*) AS n FROM S [RANGE 50] GROUP BY a;
        CREATE QUERY pairs AS SELECT x.a FROM S [RANGE 3] x, S [RANGE 2] y WHERE x.a = y.a;
    """

    def answers(engine: Engine) -> list[Any]:
        engine.finish()
        queries = ("few", "counts", "pairs")
        return [sorted(map(str, engine.results(query).to_pylist())) for query in queries]

    changes = [*driving_spark(), "threshold(memory_bytes = 100)", "auto(slice_seconds = 0.001)"]
    with Engine() as still, Engine({"processors": 3}) as moving:
        for engine in (still, moving):
            engine.execute(script)
        moving.start()
        for n, strategy in enumerate(changes):
            moving.execute(f"SET strategy = '{strategy}'")
            for engine in (still, moving):
                push(engine, 40 * n, 40)
        moving.stop()
        assert answers(moving) == answers(still)

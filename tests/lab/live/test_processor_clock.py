"""An engine driven by the processor's clock: what comes, waits and leaves is all there."""

from dataclasses import replace

import pytest

from millpond.facade.engine import Engine
from millpond.lab.live import orders
from millpond.lab.live.plans import CHAIN, JOIN, PLANS, SHARED, LivePlan
from millpond.lab.live.processor_clock import Course, driven
from millpond.scheduling.strategy_text import engine_strategy

TINY = 0.02
"""Rows that cost so much come rarely enough for a test."""


def tiny(plan: LivePlan) -> LivePlan:
    """The plan with few rows, and functions that cost nothing."""
    rows, functions = (dict.fromkeys(each, TINY) for each in (plan.row_seconds, plan.functions))
    return replace(plan, row_seconds=rows, functions=dict.fromkeys(functions, 0.0))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_every_strategy_gives_all_results_of_a_plan(plan: LivePlan) -> None:
    small, found = tiny(plan), set()
    for strategy in ("fifo(max_tuples = 1)", "chain(max_tuples = 1)", "path-capacity"):
        with Engine({"driver_rows": 10**9, "processors": 1}, keep_results=False) as engine:
            small.start(engine)
            arrivals = small.arrivals(1, seed=3, first_seconds=5.0)
            course = driven(engine, engine_strategy(strategy, 1e9), arrivals)
            assert course.seconds == sorted(course.seconds)
            assert course.seconds[0] >= 5.0
            assert course.peak_bytes > 0
            assert course.steps > 0
            found.add(course.results)
    assert len(found) == 1
    assert found.pop() > 0


def test_modes_put_queues_where_they_want_them() -> None:
    plan = tiny(SHARED)
    with Engine({"driver_rows": 10**9, "linear": "apart"}, keep_results=False) as engine:
        plan.start(engine, has_queues=False)
        driven(engine, engine_strategy("fifo", 1e9, "gts"), plan.arrivals(1, 3))
        apart = len(list(engine.runtime.units))
        driven(engine, engine_strategy("fifo", 1e9, "di"), plan.arrivals(1, 3, 5.0))
        assert len(list(engine.runtime.units)) < apart


def test_means_are_those_over_time() -> None:
    course = Course([0.0, 1.0, 4.0], [30, 10, 0], late_seconds=6.0, results=3)
    assert (course.peak_bytes, course.mean_bytes, course.mean_late_seconds) == (30, 15.0, 2.0)
    assert Course().mean_bytes == Course().mean_late_seconds == 0.0


def test_bursts_bring_more_work_than_there_is_time_for() -> None:
    for plan in (CHAIN, JOIN):
        rows = dict.fromkeys(plan.streams, 0)
        for arrival in plan.arrivals(4, seed=1):
            rows[arrival.stream] += arrival.rows.num_rows
        work = sum(plan.row_seconds[stream] * count for stream, count in rows.items())
        assert work == pytest.approx(1.8 * 0.5 * 4, rel=0.05)


def test_orders_are_judged_draw_by_draw() -> None:
    names = [*orders.STRATEGIES, *orders.MODES]
    rows = [(plan.name, name, seed) for plan in PLANS for seed in range(10) for name in names]
    values = [1.0 + (name == "FIFO") * (seed > 0) for _, name, seed in rows]
    columns = {"plan": [r[0] for r in rows], "strategy": [r[1] for r in rows]}
    columns |= dict.fromkeys(orders.FIGURES, values)
    claims = {each.text: each for each in orders.check({"runs": columns})}
    chain = next(each for name, each in claims.items() if "chains: Chain's mean" in name)
    assert chain.holds
    assert chain.measured == "0.50 to 1.00, in the middle 0.50; on 9 of 10"

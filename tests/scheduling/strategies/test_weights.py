from __future__ import annotations

from inspect import signature

import pytest

from millpond.scheduling.registry import BUILT_IN, find, make
from millpond.simulator import Conditions, SimulatedPlan, simulate

STRICTLY_BY_ARRIVAL = ("fifo", "gts")
"""FIFO knows no weights, and GTS runs FIFO unless told otherwise."""


def _latencies(name: str, weights: tuple[float, float]) -> tuple[float, float]:
    """The mean latencies of two queries that differ in nothing but their weights."""
    plan = SimulatedPlan()
    last = [
        plan.path(query, plan.stream(query), [(1.0, 0.5), (1.0, 1.0)], weight)[-1]
        for query, weight in zip("ab", weights, strict=True)
    ]
    known = signature(find(name)).parameters
    settings: dict[str, object] = {}
    if "inner_settings" in known:
        settings = {"max_tuples": 2, "period_seconds": 15.0}
    elif "max_tuples" in known:
        settings = {"max_tuples": 2}
    strategy = make(name, **settings)
    arrivals = {"a": [0.0] * 20, "b": [0.0] * 20}
    record = simulate(plan, strategy, arrivals, Conditions(tuples="fluid"))
    first, second = (
        float(record.output_latency_seconds[record.output_operator == each].mean()) for each in last
    )
    return first, second


@pytest.mark.parametrize("name", [each for each in BUILT_IN if each not in STRICTLY_BY_ARRIVAL])
def test_of_equal_queries_the_heavier_one_is_answered_sooner(name: str) -> None:
    first, second = _latencies(name, (5.0, 1.0))
    assert first < second
    first, second = _latencies(name, (1.0, 5.0))
    assert second < first


@pytest.mark.parametrize("name", STRICTLY_BY_ARRIVAL)
def test_strict_order_of_arrival_knows_no_weights(name: str) -> None:
    assert _latencies(name, (5.0, 1.0)) == _latencies(name, (1.0, 5.0))

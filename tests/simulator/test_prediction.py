"""Predictions: a measured plan in, what each strategy would have done out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import InputError
from millpond.scheduling.registry import names
from millpond.simulator.prediction import BLOCKS, Prediction, _blocks, predicted


def operator(identity, source, cost, selectivity, **more):
    """An operator as an engine writes it down."""
    one = {"source": source, "cost_seconds": cost, "selectivity": selectivity}
    facts = {"id": identity, "name": f"op{identity}", "inputs": [one], "output_bytes": 10.0}
    return facts | {"step_cost_seconds": 0.0, "queries": {}, "delivers": False} | more


def measured(processors=1):
    """A burst through a cheap selective filter into a dear operator."""
    burst = [1_000.0] * 10 + [0.0] * 90
    return {
        "processors": processors,
        "streams": {"S": {"tuple_bytes": 10.0, "slot_seconds": 0.1, "arrivals": burst}},
        "operators": [
            operator(3, "S", 1e-4, 0.1),
            operator(7, 3, 5e-3, 1.0, delivers=True, queries={"q": 1.0}),
        ],
    }


def test_chain_keeps_a_burst_smaller_than_fifo_as_its_paper_says():
    fifo, chain = predicted(measured(), ["fifo", "chain"], budget_bytes=1e9)
    assert chain.peak_bytes < fifo.peak_bytes / 3
    assert chain.finished_seconds == pytest.approx(fifo.finished_seconds, rel=0.05)


@pytest.mark.slow
def test_all_the_work_is_done_under_every_strategy():
    work = 10_000 * 1e-4 + 1_000 * 5e-3
    for found in predicted(measured(), names(), budget_bytes=1e9):
        assert isinstance(found, Prediction), found
        assert found.finished_seconds >= work - 1e-6
        assert found.peak_bytes <= 100_000 + 1e-6
        assert 0 < found.mean_latency_seconds < found.finished_seconds


def test_two_processors_are_quicker():
    one, two = (predicted(measured(n), ["fifo"], 1e9)[0] for n in (1, 2))
    assert two.finished_seconds < one.finished_seconds


def test_an_operator_waits_for_no_quiet_input():
    facts = measured()
    facts["streams"]["T"] = {"tuple_bytes": 10.0, "slot_seconds": 0.1, "arrivals": [1.0]}
    quiet = {"source": "T", "cost_seconds": 1e-4, "selectivity": 0.1}
    facts["operators"][0]["inputs"].append(quiet)
    (found,) = predicted(facts, ["chain"], 1e9)
    assert found.finished_seconds < 20


def with_a_quiet_input(clock):
    facts = measured() | {"clock": clock}
    seldom = [1.0] + [0.0] * 98 + [1.0]
    facts["streams"]["T"] = {"tuple_bytes": 10.0, "slot_seconds": 0.1, "arrivals": seldom}
    quiet = {"source": "T", "cost_seconds": 1e-4, "selectivity": 0.1}
    facts["operators"][0]["inputs"].append(quiet)
    return facts


def test_without_the_wall_clock_a_quiet_input_holds_others_up():
    event, wall = (predicted(with_a_quiet_input(c), ["fifo"], 1e9)[0] for c in ("event", "wall"))
    assert event.mean_latency_seconds > wall.mean_latency_seconds + 4
    assert event.finished_seconds > 9.9


def test_queues_stand_where_they_stood():
    facts = measured() | {"queues": [["S", 3]]}
    fifo, chain = predicted(facts, ["fifo", "chain"], 1e9)
    assert chain.peak_bytes == pytest.approx(fifo.peak_bytes)
    (apart,) = predicted(measured() | {"queues": [["S", 3], [3, 7]]}, ["chain"], 1e9)
    assert apart.peak_bytes < chain.peak_bytes / 2


@pytest.mark.parametrize("row_seconds", [0.0, 1e-6])
def test_steps_are_as_large_as_on_spark(row_seconds):
    facts = measured()
    facts["operators"][0]["inputs"][0]["cost_seconds"] = row_seconds
    facts["operators"][0]["step_cost_seconds"] = 0.02
    (found,) = predicted(facts, ["fifo(max_tuples = 1)"], 1e9)
    work = 1_000 * 5e-3
    assert found.finished_seconds < 1.5 * work, "a step for each block would take 40 s more"


def test_results_are_there_when_their_step_ends():
    facts = measured()
    facts["streams"]["S"] |= {"arrivals": [1_000.0], "slot_seconds": 1e-6}
    (found,) = predicted(facts, ["fifo"], 1e9)
    assert found.mean_latency_seconds == pytest.approx(found.finished_seconds, rel=0.01)


@pytest.mark.parametrize("part", ["processors", "streams", "operators"])
def test_what_is_no_measured_plan_is_refused(part):
    facts = measured()
    del facts[part]
    with pytest.raises(InputError, match="these are no statistics of an engine"):
        predicted(facts, ["fifo"], 1e9)


@given(st.lists(st.integers(0, 100_000), max_size=40), st.integers(0, 50), st.floats(0.01, 100))
def test_blocks_have_all_rows_in_their_slots(counts, pages, slot_seconds):
    numbers = np.array(counts, dtype=np.float64)
    times, sizes = _blocks(numbers, np.full(len(counts), float(pages)), slot_seconds)
    assert sizes.sum() == pytest.approx(sum(counts))
    assert (np.diff(times) >= 0).all()
    slots = np.floor(times / slot_seconds + 1e-6).astype(int)
    found = np.bincount(slots, weights=sizes, minlength=len(counts))
    assert found.tolist() == pytest.approx(counts)
    assert len(times) <= BLOCKS + len(counts)


def test_rows_of_a_page_come_together():
    times, sizes = _blocks(np.array([900.0, 0.0, 800.0]), np.array([1.0, 0.0, 2.0]), 1.0, 17)
    assert sizes.tolist() == [100.0] * 17
    assert times.tolist() == [0.0] * 9 + [2.0] * 4 + [2.5] * 4


def test_filters_do_not_step_once_for_every_few_rows_of_a_page():
    facts, smooth = measured(), measured()
    for each in (facts, smooth):
        for one in each["operators"]:
            one["step_cost_seconds"] = 0.01
    facts["streams"]["S"]["pages"] = [1.0] * 10 + [0.0] * 90
    chain = "chain(max_tuples = 1)"
    (paged,), (spread,) = (predicted(each, [chain], 1e9) for each in (facts, smooth))
    assert paged.finished_seconds < spread.finished_seconds


def test_what_a_turn_costs_a_virtual_operator_has_once():
    facts = measured()
    for one in facts["operators"]:
        one["step_cost_seconds"] = 0.5
    facts["queues"] = [["S", 3]]
    (twice,) = predicted(facts, ["fifo"], 1e9)
    (once,) = predicted(facts | {"turn_seconds": 0.5}, ["fifo"], 1e9)
    assert once.finished_seconds < twice.finished_seconds

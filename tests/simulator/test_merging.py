from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.scheduling.registry import make
from millpond.simulator import Conditions, SimulatedPlan, Window, simulate
from millpond.workloads import SizedArrivals
from tests.drawn_examples import examples


def _join(window: Window | None = None, **settings: float) -> SimulatedPlan:
    plan = SimulatedPlan()
    left, right = plan.stream("r"), plan.stream("s")
    plan.query("q", plan.join("join", left, right, cost_seconds=0.0, window=window, **settings))
    return plan


def _pairs(left: np.ndarray, right: np.ndarray, seconds: float) -> int:
    return sum(abs(a - b) <= seconds for a in left for b in right)


@examples(40)
@given(
    st.lists(st.floats(0, 20), max_size=20, unique=True),
    st.lists(st.floats(0, 20), max_size=20, unique=True),
    st.sampled_from([0.5, 3.0]),
    st.sampled_from([None, 1, 3]),
)
def test_a_time_window_join_finds_every_pair_once(
    left: list[float], right: list[float], seconds: float, max_tuples: int | None
) -> None:
    times = {"r": np.sort(left), "s": np.sort(right)}
    plan = _join(Window(seconds=seconds, match_probability=1.0))
    record = simulate(plan, make("fifo", max_tuples=max_tuples), times)
    assert record.outputs == _pairs(times["r"], times["s"], seconds)


def test_a_row_window_join_meets_the_last_rows_of_the_other_input() -> None:
    plan = _join(Window(rows=2, match_probability=1.0))
    record = simulate(plan, make("fifo"), {"r": [1, 2, 3, 4], "s": [3.5, 5]})
    # 3.5 meets 2 and 3; 4 meets 3.5; 5 meets 3 and 4.
    assert record.outputs == 5


def test_probing_a_window_costs_by_its_content() -> None:
    plan = SimulatedPlan()
    left, right = plan.stream("r"), plan.stream("s")
    window = Window(seconds=100, probe_seconds=1.0)
    plan.query("q", plan.join("join", left, right, cost_seconds=0.5, window=window))
    record = simulate(plan, make("fifo"), {"r": [0, 1, 2], "s": [3]})
    assert record.busy_seconds == pytest.approx(4 * 0.5 + 3)


def test_a_hash_join_costs_by_what_it_finds() -> None:
    plan = SimulatedPlan()
    left, right = plan.stream("r"), plan.stream("s")
    window = Window(seconds=100, match_probability=0.5, match_seconds=1.0)
    plan.query("q", plan.join("join", left, right, cost_seconds=0.5, window=window))
    arrivals = {"r": list(range(40)), "s": list(range(40))}
    record = simulate(plan, make("fifo"), arrivals)
    assert record.busy_seconds == pytest.approx(80 * 0.5 + record.outputs)
    assert record.outputs == pytest.approx(0.5 * 40 * 40, rel=0.02)


def test_a_join_is_blocked_while_an_older_tuple_may_come() -> None:
    record = simulate(_join(selectivity=1.0), make("fifo"), {"r": [1, 2], "s": [10, 11]})
    # 1 and 2 must wait for 10, and 10 for the end of r, which is known by then.
    assert record.output_seconds.tolist() == [10, 10, 10, 11]


def test_on_demand_timestamps_unblock_a_join() -> None:
    conditions = Conditions(on_demand_timestamps=True)
    times = {"r": [1, 2], "s": [10, 11]}
    record = simulate(_join(selectivity=1.0), make("fifo"), times, conditions)
    assert record.output_seconds.tolist() == [1, 2, 10, 11]


def test_a_union_merges_in_order_of_time() -> None:
    plan = SimulatedPlan()
    slow = plan.operator("slow", plan.stream("r"), cost_seconds=5.0)
    plan.query("q", plan.union("u", slow, plan.stream("s"), cost_seconds=0.0))
    record = simulate(plan, make("greedy"), {"r": [0.0], "s": [1.0, 2.0]})
    arrived = record.output_seconds - record.output_latency_seconds
    assert arrived.tolist() == [0, 1, 2]
    assert record.output_seconds.tolist() == [5, 5, 5]


def test_sides_have_their_own_costs_and_selectivities() -> None:
    plan = SimulatedPlan()
    left, right = plan.stream("r"), plan.stream("s")
    join = plan.join("j", left, right, cost_seconds=(1.0, 3.0), selectivity=(0.0, 2.0))
    plan.query("q", join)
    record = simulate(plan, make("fifo"), {"r": [0, 1], "s": [2]})
    assert record.outputs == 2
    assert record.busy_seconds == 5.0


def test_a_stream_may_meet_itself() -> None:
    plan = SimulatedPlan()
    stream = plan.stream("s")
    window = Window(seconds=1.0, match_probability=1.0)
    plan.query("q", plan.join("self", stream, stream, cost_seconds=0.1, window=window))
    record = simulate(plan, make("fifo"), {"s": [0.0, 0.5, 5.0]})
    # (0,0), (0,0.5), (0.5,0), (0.5,0.5), (5,5)
    assert record.outputs == 5


SIZED = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 3.0]), st.sampled_from([0.2, 1.0, 3.0])), max_size=8
).map(
    lambda drawn: SizedArrivals(
        np.cumsum([gap for gap, _ in drawn]), np.array([size for _, size in drawn])
    )
)


@examples(40)
@given(SIZED, SIZED, SIZED, st.sampled_from([0.1, 0.5, 1.0]), st.integers(1, 2))
def test_no_tuple_is_mistaken_for_another_where_order_does_not_matter(
    r: SizedArrivals, s: SizedArrivals, t: SizedArrivals, cost: float, processors: int
) -> None:
    plan = SimulatedPlan()
    left = plan.operator("left", plan.stream("r"), cost_seconds=1.0, selectivity=0.5)
    first = plan.union("first", left, plan.stream("s"), cost_seconds=cost, ordered=False)
    plan.query("q", plan.union("second", first, plan.stream("t"), cost_seconds=0.7, ordered=False))
    conditions = Conditions(tuples="fluid", processors=processors)
    for service in ({}, {"slice_seconds": 0.25}, {"slice_seconds": 0.25, "max_tuples": 1}):
        strategy = make("round-robin", **service)
        record = simulate(plan, strategy, {"r": r, "s": s, "t": t}, conditions)
        mine, others = r.sizes.sum(), s.sizes.sum()
        assert record.outputs == pytest.approx(mine / 2 + others + t.sizes.sum())
        work = mine + cost * (mine / 2 + others) + 0.7 * record.outputs
        assert record.busy_seconds == pytest.approx(work)
        assert record.memory.at(record.finished_seconds) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("max_tuples", [None, 1])
def test_a_tuple_that_was_begun_is_done_before_an_older_one_that_came_later(
    max_tuples: int | None,
) -> None:
    plan = SimulatedPlan()
    slow = plan.operator("slow", plan.stream("r"), cost_seconds=2.0)
    plan.query("q", plan.union("u", slow, plan.stream("s"), cost_seconds=10.0, ordered=False))
    strategy = make("round-robin", slice_seconds=1.0, max_tuples=max_tuples)
    record = simulate(plan, strategy, {"r": [0.0], "s": [0.5]}, Conditions(processors=2))
    arrived = record.output_seconds - record.output_latency_seconds
    assert arrived.tolist() == pytest.approx([0.5, 0.0])
    assert record.output_seconds.tolist() == pytest.approx([10.5, 20.5])

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from millpond.errors import StrategyError
from millpond.scheduling.snapshot import WeightedQuery
from millpond.simulator import Listed, Normal, Outliers, SimulatedPlan, Simulation, Window
from millpond.simulator.distributions import Draws


def test_a_chart_becomes_a_path_of_its_costs_and_selectivities() -> None:
    plan = SimulatedPlan()
    plan.chart("q", plan.stream("s"), [(0, 1), (2, 0.5), (3, 0)], last_selectivity=0.25)
    inputs = [operator.inputs[0] for operator in plan.operators]
    assert [(each.cost_seconds, each.selectivity) for each in inputs] == [(2, 0.5), (2, 0.25)]


def test_the_snapshot_tells_structure_sizes_rates_and_queries() -> None:
    plan = SimulatedPlan()
    stream = plan.stream("s", tuple_bytes=100.0)
    shared = plan.operator("shared", stream, 1.0, selectivity=0.5, output_bytes=10.0)
    plan.query("a", plan.operator("first", shared, 2.0))
    plan.query("b", plan.operator("second", shared, 3.0), weight=3.0)
    top, first, second = Simulation(plan, {"s": np.arange(11.0)}).plan().operators
    assert (top.input_bytes, top.output_bytes, top.downstream) == (100.0, 10.0, (1, 2))
    assert set(top.queries) == {WeightedQuery("a", 1.0), WeightedQuery("b", 3.0)}
    assert (top.tuples_per_second, first.tuples_per_second) == (1.0, 0.5)
    assert (first.queries, second.weight) == ((WeightedQuery("a", 1.0),), 3.0)
    assert first.input_bytes == 10.0


def test_the_snapshot_of_a_window_join_has_its_averages() -> None:
    plan = SimulatedPlan()
    left, right = plan.stream("r"), plan.stream("s")
    window = Window(seconds=10.0, match_probability=0.1, probe_seconds=0.5)
    plan.query("q", plan.join("j", left, right, cost_seconds=1.0, window=window))
    arrivals = {"r": np.arange(0.0, 50.0), "s": np.arange(0.0, 50.0, 0.5)}
    sides = Simulation(plan, arrivals).plan().operators[0].inputs
    assert [side.cost_seconds for side in sides] == pytest.approx([1 + 20 * 0.5, 1 + 10 * 0.5])
    assert [side.selectivity for side in sides] == pytest.approx([2.0, 1.0])


def test_the_snapshot_of_a_hash_join_has_the_cost_of_what_it_finds() -> None:
    plan = SimulatedPlan()
    left, right = plan.stream("r"), plan.stream("s")
    window = Window(rows=10, match_probability=0.2, match_seconds=0.5)
    plan.query("q", plan.join("j", left, right, cost_seconds=1.0, window=window))
    (side, _) = Simulation(plan, {}).plan().operators[0].inputs
    assert (side.cost_seconds, side.selectivity) == pytest.approx((2.0, 2.0))


def test_an_intermediate_result_may_answer_a_query_too() -> None:
    plan = SimulatedPlan()
    view = plan.operator("view", plan.stream("s"), 1.0)
    plan.query("inner", view)
    plan.query("outer", plan.operator("more", view, 1.0))
    top = Simulation(plan, {}).plan().operators[0]
    assert (top.is_output, top.downstream, len(top.queries)) == (True, (1,), 2)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda plan: plan.stream("s"), 'stream "s" exists already'),
        (lambda plan: plan.chart("q", "s", [(0, 1), (-1, 0)]), "goes back in time"),
        (lambda plan: plan.operator("o", "t", 1.0), 'no stream "t"; known: s'),
        (lambda plan: plan.operator("o", 7, 1.0), "no operator 7"),
        (lambda plan: plan.operator("o", "s", -1.0), "cost_seconds is -1.0"),
        (lambda plan: plan.operator("o", "s", 1.0, -0.1), "selectivity is -0.1"),
        (lambda plan: plan.path("q", "s", [(1, 1)], weight=0.0), "weight 0.0"),
        (lambda plan: [plan.path("q", "s", [(1, 1)]) for _ in "ab"], 'query "q" exists already'),
    ],
)
def test_plans_that_make_no_sense_are_refused(build: object, message: str) -> None:
    plan = SimulatedPlan()
    plan.stream("s")
    with pytest.raises(StrategyError, match=message):
        build(plan)  # type: ignore[operator]


def test_the_same_tuple_always_gets_the_same_draw() -> None:
    whole = Draws(Normal(1.0, 0.2), (7, 1)).between(0, 10_000)
    pieces = Draws(Normal(1.0, 0.2), (7, 1))
    cuts = [0, 1, 5, 4000, 4100, 9999, 10_000]
    parts = [pieces.between(low, high) for low, high in pairwise(cuts)]
    assert np.array_equal(whole, np.concatenate(parts))
    single = Draws(Normal(1.0, 0.2), (7, 1))
    assert [single.one(place) for place in range(5)] == whole[:5].tolist()


def test_outliers_come_as_often_as_set() -> None:
    mixture = Outliers(Normal(1.0, 0.0), Normal(10.0, 0.0), share=0.1)
    drawn = Draws(mixture, (0,)).between(0, 5000)
    assert mixture.mean == pytest.approx(1.9)
    assert 0.08 < (drawn == 10.0).mean() < 0.12


def test_listed_values_come_in_order_then_their_mean() -> None:
    drawn = Draws(Listed.of([1.0, 3.0]), (0,)).between(0, 4)
    assert drawn.tolist() == [1.0, 3.0, 2.0, 2.0]

"""The Path Capacity paper's experiments with tiny settings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from millpond.lab.chain.instances import Instance, random_instance, step_sizes
from millpond.lab.path_capacity import (
    figure_2,
    figure_3,
    figure_4,
    starvation,
    table_2,
    theorem_1,
    theorem_2,
    theorem_3,
    threshold,
)
from millpond.lab.path_capacity.instances import (
    batch,
    flat,
    least_path_based_sizes,
    least_total_latency,
    segments_are_chains,
    with_whole_arrivals,
)
from millpond.lab.path_capacity.workload import Phases, arrivals, full_load_scale, sixteen_queries
from millpond.scheduling.charts.progress_chart import partition
from millpond.scheduling.registry import make

LINE_3 = ((0.0, 1.0), (3.0, 0.0))
LINE_5 = ((0.0, 1.0), (5.0, 0.0))
TINY = Phases((0.5, 1.1), 15.0)


def test_every_cell_of_table_2_is_reproduced() -> None:
    claims = table_2.check(table_2.run([0]))
    assert len(claims) == 6
    assert all(claim.holds for claim in claims)


def test_a_wrong_cell_of_table_2_is_noticed() -> None:
    tables = table_2.run([0])
    tables["queue size"]["fifo"][3] += 0.1
    assert [claim.holds for claim in table_2.check(tables)].count(False) == 1


@pytest.mark.parametrize("experiment", [theorem_1, theorem_2, theorem_3])
def test_theorems_hold_under_their_assumptions_and_fail_without(
    experiment: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "INSTANCES_A_SEED", 40)
    tables = experiment.run([0])  # type: ignore[attr-defined]
    claims = experiment.check(tables)  # type: ignore[attr-defined]
    assert [claim for claim in claims if not claim.holds] == []
    experiment.EXPERIMENT.plot(tables, Figure())  # type: ignore[attr-defined]


def test_the_least_latency_finishes_what_is_nearly_done() -> None:
    assert least_total_latency(Instance((LINE_5, LINE_3), ((0,), (4,)))) == 5 + 4
    assert least_total_latency(Instance((LINE_5, LINE_3), ((0,), (1,)))) == 3 + 8


def test_weights_turn_the_least_latency_round() -> None:
    waiting = Instance((LINE_5, LINE_3), ((0,), (0,)))
    assert least_total_latency(waiting) == 3 + 8
    assert least_total_latency(waiting, (3.0, 1.0)) == 3 * 5 + 8


def test_path_based_schedules_never_leave_a_tuple_half_way() -> None:
    chart = ((0.0, 1.0), (1.0, 0.5), (4.0, 0.0))
    sizes = least_path_based_sizes(Instance((chart,), ((0, 0),)))
    assert sizes[:9].tolist() == [2.0, 1.5, 1.5, 1.5, 1.0, 0.5, 0.5, 0.5, 0.0]


def test_arrivals_at_the_end_of_a_tuple_are_whole() -> None:
    strategy = make("path-capacity", slice_seconds=1.0)
    at_the_end = Instance((LINE_5, LINE_3), ((0,), (5,)))
    assert with_whole_arrivals(at_the_end, strategy) is at_the_end
    strategy = make("path-capacity", slice_seconds=1.0)
    assert with_whole_arrivals(Instance((LINE_5, LINE_3), ((0,), (4,))), strategy) is None


def test_a_flat_instance_keeps_tuples_whole() -> None:
    drawn = batch(np.random.default_rng(0), queries=2, tuples=3)
    for chart, whole in zip(drawn.charts, flat(drawn).charts, strict=True):
        assert len(step_sizes(chart)) == len(step_sizes(whole))
        assert set(step_sizes(whole)) == {1.0, 0.0}


def test_falling_mean_slopes_are_the_segments_of_the_envelope() -> None:
    generator = np.random.default_rng(0)
    found = 0
    for _ in range(100):
        chart = random_instance(generator, 1, operators=5, tuples=1).charts[0]
        if segments_are_chains(chart):
            found += 1
            slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(chart)]
            cuts = [n for n in range(1, len(slopes)) if slopes[n] > slopes[n - 1] + 1e-12]
            envelope = partition(chart)
            falls = [
                later.first
                for before, later in pairwise(envelope)
                if later.slope < before.slope - 1e-12
            ]
            assert cuts == falls
    assert found > 20


def test_the_plan_has_16_queries_and_116_operators_over_5_streams() -> None:
    plan = sixteen_queries(full_load_scale())
    assert (len(plan.queries), len(plan.operators), len(plan.streams)) == (16, 116, 5)
    joins = [operator for operator in plan.operators if len(operator.inputs) == 2]
    assert len(joins) == 5 + 3 * 2 + 3 + 4
    grown = sum(float(join.inputs[0].selectivity) > 1 for join in joins)  # type: ignore[arg-type]
    assert 0 < grown < len(joins) / 2


def test_arrivals_rise_from_phase_to_phase() -> None:
    times = np.concatenate(list(arrivals(Phases((0.5, 1.5), 100.0), seed=0).values()))
    assert (times < 100).sum() < (times >= 100).sum()


@pytest.mark.parametrize("figure", [figure_2, figure_3, figure_4])
def test_figures_are_measured_and_drawn(figure: object) -> None:
    tables = figure.measure([0], TINY)  # type: ignore[attr-defined]
    figure.plot(tables, Figure())  # type: ignore[attr-defined]
    assert figure.check(tables)  # type: ignore[attr-defined]


def test_all_strategies_put_out_the_same_tuples() -> None:
    outputs = figure_3.measure([0], TINY)["outputs"]
    assert outputs["path-capacity"] == outputs["simplified-segment"] == outputs["chain"]
    assert outputs["chain"][0] > 0


def test_threshold_with_ample_memory_is_path_capacity() -> None:
    table = threshold.measure([0], TINY)["limits"]
    assert table["latency"][-1] == table["normal latency"][-1]
    threshold.plot({"limits": table}, Figure())
    assert threshold.check({"limits": table})[0].holds


def test_both_cures_bound_the_wait_in_a_short_overload() -> None:
    tables = starvation.measure([0], (15.0, 30.0))
    starvation.plot(tables, Figure())
    claims = starvation.check(tables)
    bounded = [claim for claim in claims if "longest wait with" in claim.text]
    assert len(bounded) == 2
    assert all(claim.holds for claim in bounded)

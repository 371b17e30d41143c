from __future__ import annotations

from itertools import pairwise

import numpy as np

from millpond.lab.chain.instances import Instance, random_instance, step_sizes
from millpond.lab.path_capacity.instances import (
    batch,
    flat,
    least_path_based_sizes,
    least_total_latency,
    segments_are_chains,
    with_whole_arrivals,
)
from millpond.scheduling.charts.progress_chart import partition
from millpond.scheduling.registry import make

LINE_3 = ((0.0, 1.0), (3.0, 0.0))
LINE_5 = ((0.0, 1.0), (5.0, 0.0))


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

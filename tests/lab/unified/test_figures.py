from __future__ import annotations

import pytest

from millpond.lab.experiment import Claim
from millpond.lab.unified import (
    fork_cases,
    greedy_example,
    idle_waiting,
    latency_outliers,
    memory_fork,
    memory_outliers,
    mss_optimal,
    nested_fork,
)


def failing(claims: list[Claim]) -> list[Claim]:
    return [claim for claim in claims if not claim.holds]


def test_the_example_of_three_tuples_costs_48_and_41():
    tables = greedy_example.run([0])
    claims = greedy_example.check(tables)
    assert [claim.measured for claim in claims] == ["c9 c10 c1: 48", "c10 c1 c9: 41", "41"]
    assert not failing(claims)


def test_a_wrong_total_is_noticed():
    tables = greedy_example.run([0])
    latencies = {**tables["latencies"], "latency": [0.0] * 6}
    assert failing(greedy_example.check({**tables, "latencies": latencies}))


def test_fork_areas_follow_their_formulas(monkeypatch):
    monkeypatch.setattr(fork_cases, "TUPLES", 20)
    monkeypatch.setattr(fork_cases, "SECONDS", (2.0, 3.0, 5.0))
    assert not failing(fork_cases.check(fork_cases.run([0])))


def test_the_nested_fork_falls_into_the_parts_the_paper_names(monkeypatch):
    monkeypatch.setattr(nested_fork, "TREES", 5)
    tables = nested_fork.run([])
    claims = nested_fork.check(tables)
    assert claims[3].measured == "E+D+G+H+P | C+A+B | O"
    assert not failing(claims)


def test_no_schedule_of_a_random_tree_is_better_than_its_partition():
    trees = nested_fork.random_trees([7], count=10)
    areas = nested_fork._areas(trees)
    assert areas["component-based"] == pytest.approx(areas["least"])


def test_the_memory_fork_falls_into_two_parts(monkeypatch):
    monkeypatch.setattr(memory_fork, "random_forks", lambda seeds: FORKS)
    claims = memory_fork.check(memory_fork.run([0]))
    assert claims[0].measured == "O1+O3+O4 | O2"
    assert not failing(claims)


FORKS = memory_fork.random_forks([0], count=10)


def test_mss_has_the_least_latency():
    instances = mss_optimal.random_queues(3, count=20)
    ratios = mss_optimal._ratios(instances, "latency")
    assert ratios["maximum-slope-segment"] == pytest.approx([1.0] * 20)
    assert max(ratios["per-tuple-greedy"]) > 1.01


def test_the_memory_variant_of_mss_is_near_the_least():
    instances = mss_optimal.random_paths(3, count=20)
    ratios = mss_optimal._ratios(instances, "memory")
    assert sum(ratios["maximum-slope-segment"]) < 20 * 1.02


def test_mss_does_not_wait_for_what_has_not_arrived():
    assert mss_optimal.late_arrival() == 20.0 > mss_optimal.WAITING_FOR_IT


@pytest.mark.parametrize("figure", [latency_outliers, memory_outliers])
def test_component_based_is_near_mss_and_the_others_are_not(figure):
    claims = figure.check(figure.run([0], percents=(0, 10)))
    assert not failing(claims[:5])


def test_on_demand_timestamps_cure_idle_waiting(monkeypatch):
    monkeypatch.setattr(idle_waiting, "SLOW_PER_SECOND", (1.0,))
    table = idle_waiting.run([0], seconds=10.0)["latency"]
    assert table["waiting"][0] > 20 * table["on demand"][0]
    assert table["on demand"][0] < 0.01

from __future__ import annotations

from itertools import permutations

import pytest

from millpond.lab.unified.small_instances import SmallInstance, SmallOperator, tree
from millpond.scheduling.registry import make

QUEUES = SmallInstance(
    (SmallOperator("a", (10.0, 1.0), (1, 2)), SmallOperator("b", (9.0, 3.0), (1, 0))),
    (("a", 2), ("b", 2)),
)


def test_least_latency_is_the_least_over_all_orders():
    totals = []
    for order in set(permutations((0, 0, 1, 1))):
        served, now, total = [0, 0], 0.0, 0.0
        for place in order:
            operator = QUEUES.operators[place]
            now += operator.costs[served[place]]
            total += now * operator.outputs[served[place]]
            served[place] += 1
        totals.append(total)
    assert QUEUES.least_area("latency") == min(totals)


def test_no_strategy_is_below_the_least():
    fork = tree(("s", 0, "s", 2), (1.0, 6.0, 1.0, 0.5), 3, (0.6, 1.0, 0.5, 1.0))
    for name in ("chain", "component-based", "fifo", "greedy", "round-robin"):
        for objective in ("latency", "memory"):
            reached = fork.area(make(name, max_tuples=1), objective)
            assert reached >= fork.least_area(objective) - 1e-9


def test_a_shared_tuple_stays_until_its_last_reader_has_served_it():
    shared = tree(("s", "s"), (1.0, 1.0), 1)
    assert shared.least_area("memory") == pytest.approx(2.0)


def test_latency_counts_every_output():
    doubled = tree(("s", 0), (1.0, 1.0), 1, outputs=(2, 1))
    assert doubled.least_area("latency") == pytest.approx(2.0 + 3.0)
    assert doubled.area(make("fifo", max_tuples=1), "latency") == pytest.approx(5.0)

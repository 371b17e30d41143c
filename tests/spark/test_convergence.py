"""Queries that come again while data flows: their operators become one, each answer is its own.

Cases are run in the ways that must not matter (``tests.ways``): several processors, queues that
move, stores that die and go on, some of them on the executors.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from millpond.execution.graph_changes import GraphChanges
from tests.fuzz import check
from tests.late_comers import late_case
from tests.ways import Way

pytestmark = pytest.mark.spark

TESTS, CASES = 4, 2
ON_EXECUTORS_EVERY = 20


@pytest.mark.parametrize("number", range(TESTS))
def test_late_comers_answer_as_if_alone_whatever_becomes_one(spark, number, monkeypatch):
    merged = []
    merge = GraphChanges._merge
    monkeypatch.setattr(
        GraphChanges, "_merge", lambda self, each: merged.append(each) or merge(self, each)
    )
    for seed in range(number * CASES, (number + 1) * CASES):
        way = Way.drawn(seed).seldom_validated()
        rows = 0 if seed % ON_EXECUTORS_EVERY == 0 else 10**9
        way = replace(way, sharing=("auto", "on")[seed % 2], driver_rows=rows, switches=0.0)
        way = replace(way, moves=min(way.moves, 0.1))
        failures = check(way.engines(spark), late_case(seed))
        assert not failures, "\n".join(map(str, failures[:1]))
    assert merged  # else nothing has become one

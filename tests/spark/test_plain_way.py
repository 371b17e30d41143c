"""Random queries with Spark's public interfaces only: the same answers, more slowly."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.spark import internals
from tests.fuzz import check
from tests.generator import seeded_case

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "settings",
    [{"driver_rows": 0}, {"small_steps": "spark"}],
    ids=["on the executors", "collected"],
)
def test_plans_that_are_built_anew_give_the_same(spark, monkeypatch, settings):
    monkeypatch.setenv(internals.PLAIN_VARIABLE, "1")
    monkeypatch.setattr(internals, "ReusedPlan", None)  # to call it would be an error
    case = seeded_case(1018, 2)
    failures = check(lambda given: Engine(given | settings, spark), case)
    assert not failures, "\n".join(map(str, failures[:1]))

"""Random streams with constraints, under random ways; ``make fuzz`` tries many more."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.execution.operators import freeing
from millpond.storage import state
from tests import breaking, fuzz
from tests.constrained import checked
from tests.execution.in_process import InProcess
from tests.generator import seeded_case


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_answers_are_those_without_constraints(seed):
    is_right, told = checked(seed)
    assert is_right, told


@pytest.mark.parametrize("seed", [20010])
def test_answers_to_streams_that_break_constraints_are_the_references_to_the_rest(
    seed, monkeypatch
):
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    for module, rows in ((state, 0), (freeing, 1)):  # a case sets them for good
        monkeypatch.setattr(module, "COMPACT_ROWS", rows)
    aside, split = [], breaking.without_aside

    def noted(case, rows):
        aside.extend(row for each in rows.values() for row in each)
        return split(case, rows)

    monkeypatch.setattr(fuzz, "without_aside", noted)
    case = breaking.breaking(seeded_case(seed, 4, late=seed % 3 == 0), seed)
    failures = fuzz.check(lambda settings: Engine(settings | {"driver_rows": 10**9}), case)
    assert not failures, str(failures[0])
    assert aside

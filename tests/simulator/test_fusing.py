from __future__ import annotations

import pytest

from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot, PlanSnapshot
from millpond.scheduling.threads.fused_plan import fused_snapshot
from tests.scheduling.pictures import path

PATH = path((1.0, 0.5), (4.0, 0.5), (8.0, 1.0))


def test_without_pipes_nothing_is_fused() -> None:
    fused = fused_snapshot(PATH, {0: 0, 1: 1, 2: 2}, structure=7)
    assert fused.operators == PATH.operators
    assert (fused.structure, fused.unfused) == (7, None)


def test_a_virtual_operator_costs_and_yields_what_its_members_do() -> None:
    fused = fused_snapshot(PATH, {0: 0, 1: 0, 2: 2}, structure=1)
    first, last = fused.operators
    assert (first.name, first.members) == ("o0 + o1", ("o0", "o1"))
    assert (first.cost_seconds, first.selectivity) == (1.0 + 0.5 * 4.0, 0.25)
    assert (first.downstream, last.upstream) == ((2,), (0,))
    assert fused.unfused is PATH


def test_each_entry_of_a_virtual_operator_has_its_own_averages() -> None:
    left = InputSnapshot("r", 1.0, 0.5, tuples_per_second=2.0)
    right = InputSnapshot("s", 3.0, 1.0, tuples_per_second=1.0)
    plan = PlanSnapshot(
        (
            OperatorSnapshot(0, "join", (left, right), (1,)),
            OperatorSnapshot(1, "select", (InputSnapshot(0, 2.0, 0.5),)),
        )
    )
    inputs = fused_snapshot(plan, {0: 0, 1: 0}, structure=1).operators[0].inputs
    assert [each.cost_seconds for each in inputs] == pytest.approx([1 + 0.5 * 2, 3 + 2])
    assert [each.selectivity for each in inputs] == pytest.approx([0.25, 0.5])

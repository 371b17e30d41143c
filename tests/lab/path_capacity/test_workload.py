from __future__ import annotations

import numpy as np
import pytest

from millpond.lab.path_capacity.queries import Ranges, _load, full_load_scale, sixteen_queries
from millpond.lab.path_capacity.searched_setting import chosen_setting
from millpond.lab.path_capacity.workload import DRAWN, Setting, arrivals


@pytest.mark.parametrize("setting", [DRAWN, chosen_setting()], ids=["drawn", "searched for"])
def test_the_plan_has_16_queries_and_116_operators_over_5_streams(setting: Setting) -> None:
    plan = sixteen_queries(setting.ranges, full_load_scale(setting.ranges))
    assert (len(plan.queries), len(plan.operators), len(plan.streams)) == (16, 116, 5)
    joins = [operator for operator in plan.operators if len(operator.inputs) == 2]
    assert len(joins) == 5 + 3 * 2 + 3 + 4
    grown = sum(float(join.inputs[0].selectivity) > 1 for join in joins)  # type: ignore[arg-type]
    assert 0 < grown < len(joins) / 2
    assert _load(plan) == pytest.approx(1.0)


def test_ranges_change_what_is_drawn_and_nothing_else() -> None:
    usual, other = sixteen_queries(Ranges()), sixteen_queries(Ranges(leaf_selectivity=(0.4, 0.4)))
    for one, two in zip(usual.operators, other.operators, strict=True):
        leaf = isinstance(one.inputs[0].source, str)
        assert (two.inputs[0].selectivity == 0.4) == leaf
        assert leaf or one == two


def test_arrivals_rise_from_phase_to_phase() -> None:
    times = np.concatenate(list(arrivals(Setting((0.5, 1.5), 100.0), seed=0).values()))
    assert (times < 100).sum() < (times >= 100).sum()

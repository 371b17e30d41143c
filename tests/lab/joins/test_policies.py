from __future__ import annotations

import numpy as np
import pytest

from millpond.lab.joins.policies import POLICIES, joined
from millpond.lab.joins.streams import Side, matches, uniform

KEYS, PROBES = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 2, 0])
SIDE = Side(KEYS, PROBES, np.array([0.2, 0.5, 0.3]), np.array([0, 0, 0, 1.0, 0]), window=5)


@pytest.mark.parametrize(
    ("policy", "evicted"),
    [
        ("oldest", [None, None, 0, 1, 2, 3]),
        ("prob", [None, None, 0, 3, 2, 5]),
        ("life", [None, None, 0, 3, 1, 2]),
        ("age curve", [None, None, 2, 0, 1, 5]),
    ],
)
def test_who_is_let_go_where_there_is_room_for_two(policy: str, evicted: list[int | None]) -> None:
    assert [each.evicted for each in joined(SIDE, POLICIES[policy], 2, 0)] == evicted


def test_any_row_may_be_let_go_by_chance_and_the_same_one_for_a_seed() -> None:
    side = uniform(3)[0]
    once, again = (list(joined(side, POLICIES["random"], 9, 1)) for _ in range(2))
    assert once == again
    ages = {now - each.evicted for now, each in enumerate(once) if each.evicted is not None}
    assert {0, 1, 2, 10} <= ages


@pytest.mark.parametrize("policy", POLICIES)
def test_with_room_for_the_window_all_pairs_are_put_out(policy: str) -> None:
    found = list(joined(SIDE, POLICIES[policy], SIDE.window, 0))
    assert sum(each.met for each in found) == sum(map(len, matches(SIDE)))
    assert all(each.evicted is None for each in found)

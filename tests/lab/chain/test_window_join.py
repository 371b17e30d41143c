from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from millpond.lab.chain.bursts import arrivals_of, process
from millpond.lab.chain.window_join import (
    PLAIN_SETTING,
    SEARCH,
    JoinQuery,
    is_possible,
    query,
    setting,
)

POINT = {
    "ms 1": 0.5,
    "passes 1": 0.9,
    "ms join": 0.5,
    "matches": 2.0,
    "ms 2": 0.1,
    "passes 2": 0.1,
    "ms 3": 20.0,
    "load": 0.8,
    "trace load": 0.6,
    "one traffic": 1.0,
}


def test_a_point_is_a_query_at_a_load() -> None:
    chosen, made = query(POINT), setting(POINT)
    work = 0.0005 + 1.9 * (0.0005 + 2 * (0.0001 + 0.1 * 0.020))
    assert chosen.work_seconds == pytest.approx(work)
    assert made.tuples_per_second == pytest.approx({"r": 0.8 / work, "s": 0.8 / work})
    assert (made.split, made.trace_factor) == (True, pytest.approx(0.75))
    assert is_possible(POINT)


def test_a_join_that_greedy_would_like_is_not_the_one_of_the_text() -> None:
    assert not is_possible({**POINT, "matches": 0.5})
    assert not is_possible({**POINT, "passes 2": 0.9})
    assert all(POINT[name] in values for name, values in SEARCH.space.items())


def test_the_query_has_a_join_and_three_selections() -> None:
    names = [operator.name for operator in JoinQuery().plan().operators]
    assert names == ["q.select-1", "q.join", "q.select-2", "q.select-3"]


def test_streams_that_are_split_are_parts_of_one_traffic() -> None:
    split = replace(PLAIN_SETTING, split=True, seconds=20.0)
    found = arrivals_of(split, "bursts", 3)
    both = np.sort(np.concatenate(list(found.values())))
    assert len(both) > 0
    assert len(found["r"]) == pytest.approx(len(found["s"]), rel=0.2)
    whole = process("bursts", 140.0).until(20.0, 300)
    assert np.array_equal(both, whole)


def test_the_trace_may_bring_another_load() -> None:
    half = replace(PLAIN_SETTING, trace_factor=0.5, seconds=200.0)
    usual, less = (
        sum(map(len, arrivals_of(each, "trace", 1).values())) for each in (PLAIN_SETTING, half)
    )
    assert less / 200 == pytest.approx(usual / PLAIN_SETTING.seconds / 2, rel=0.4)

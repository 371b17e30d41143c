from __future__ import annotations

import pytest

from millpond.lab.chain import window_join
from millpond.lab.chain.three_queries import FIRST, _more_pronounced, setting


def verdict(together: list[float], alone: list[float]) -> str:
    leads = zip(together, alone, strict=True)
    table = {"queries": ["three queries", "window join"], "workload": ["trace"] * 2, "seed": [0, 0]}
    table |= dict(zip(("greedy", "round-robin", "fifo"), map(list, leads), strict=True))
    return _more_pronounced({"ahead": table}, "trace").verdict


def test_the_lead_must_grow_against_every_rival() -> None:
    assert verdict([5.0, 4.0, 3.0], [4.0, 3.0, 2.0]) == "holds"
    assert verdict([5.0, 4.0, 3.0], [6.0, 3.0, 4.0]) == "differs"
    assert verdict([5.0, 2.9, 3.0], [6.0, 2.0, 4.0]) == "fails"
    assert verdict([5.0, 3.0, 3.0], [4.0, 4.0, 2.0]) == "fails"


def test_a_point_has_the_loads_that_it_says() -> None:
    point = {
        "second slower": 2.0,
        "join part": 0.2,
        "load": 0.9,
        "trace load": 0.8,
        "one traffic": 1.0,
    }
    made = setting(point)
    rates = made.tuples_per_second
    join = window_join.query(window_join.SEARCH.found)
    assert rates["r"] * join.work_seconds == pytest.approx(0.9 * 0.2)
    works = (FIRST[-1][0], 2 * FIRST[-1][0])
    assert [rates[name] * work for name, work in zip("ab", works, strict=True)] == pytest.approx(
        [0.36, 0.36]
    )
    assert (made.split, made.trace_factor) == (True, pytest.approx(0.8 / 0.9))
    assert sorted(query for query in made.plan().queries) == ["first", "join", "second"]

from __future__ import annotations

import pytest

from millpond.lab.stream.reductions import (
    CHUNK,
    OVERLOAD,
    SECONDS,
    Join,
    arrivals_of,
    drawn,
    sampled,
    shed,
)

JOIN = Join(rows=100, matches=2.0, probe_seconds=1e-5, selection_seconds=5e-4)


def test_a_tuple_probes_the_window_and_what_it_finds_is_selected() -> None:
    assert JOIN.tuple_seconds == pytest.approx(2e-3)
    (join, _) = JOIN.plan(0.5).operators
    assert join.window is not None
    assert (join.window.rows, join.window.match_probability) == (50, 0.02)


def test_more_comes_than_can_be_done() -> None:
    join = drawn(3)
    count = sum(map(len, arrivals_of(join, 3).values()))
    assert count * join.tuple_seconds == pytest.approx(OVERLOAD * SECONDS, rel=0.1)


def test_half_of_the_tuples_are_kept_by_either_way() -> None:
    arrivals = arrivals_of(JOIN, 5)
    for fewer in (sampled(arrivals, 5), shed(arrivals)):
        for name, times in arrivals.items():
            assert set(fewer[name]) < set(times)
            assert len(fewer[name]) == pytest.approx(len(times) / 2, abs=CHUNK / 2 + 50)

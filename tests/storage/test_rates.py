"""Rates follow the last seconds; a course has the whole run in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.storage.rates import MOST_SLOTS, Course, Rate


def test_a_steady_stream_has_its_rate_from_the_beginning():
    rate = Rate(now=0.0)
    for tick in range(1, 2_000):
        rate.add(3, now=tick / 10)
        if tick in (20, 200, 1_999):
            assert rate.per_second(now=tick / 10) == pytest.approx(30, rel=0.1)


def test_a_rate_follows_a_change_and_forgets():
    rate = Rate(now=0.0)
    for tick in range(1, 400):
        rate.add(100 if tick < 200 else 10, now=tick / 4)
    assert rate.per_second(now=100.0) == pytest.approx(40, rel=0.1)
    assert rate.per_second(now=200.0) < 0.01


def test_what_comes_at_once_is_not_lost_nor_infinite():
    rate = Rate(now=5.0)
    rate.add(100, now=5.0)
    assert rate.per_second(now=5.0) == 0
    assert rate.per_second(now=15.0) == pytest.approx(100 / 10 * 0.58, rel=0.02)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.integers(1, 1_000)), max_size=60))
def test_a_course_keeps_every_count_in_its_slot(arrivals):
    arrivals.sort()
    course = Course(now=0.0)
    for moment, count in arrivals:
        course.add(count, now=moment)
    assert len(course.counts) <= MOST_SLOTS
    assert sum(course.counts) == sum(count for _, count in arrivals)
    expected = {}
    for moment, count in arrivals:
        slot = int(moment / course.slot_seconds)
        expected[slot] = expected.get(slot, 0) + count
    found = {slot: count for slot, count in enumerate(course.counts) if count}
    assert set(found) <= {s + d for s in expected for d in (-1, 0, 1)}

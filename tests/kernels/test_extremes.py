"""The greatest value of each group, while values come and go in any way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.extremes import (
    NOTHING,
    greatest_of_counts,
    greatest_of_intervals,
    still_eligible,
)
from millpond.kernels.timeline import Changes, Elements, Timeline, order_of
from millpond.schema import FOREVER

MEMBERS = st.lists(
    st.tuples(
        st.integers(0, 2),  # group
        st.integers(0, 12),  # start
        st.integers(1, 6) | st.just(FOREVER),  # length
        st.integers(-3, 3),  # value
    ),
    max_size=20,
)


def columns(members, same_length=False):
    """Group, start, end and value as arrays."""
    lengths = [4 if same_length else length for _, _, length, _ in members]
    code, start, value = (np.array([m[i] for m in members], dtype=np.int64) for i in (0, 1, 3))
    end = np.minimum(start + np.array(lengths, dtype=np.int64), FOREVER)
    return code, start, end, value


def timeline_of(code, start, end):
    """All instants at which something enters or leaves."""
    rows = np.arange(len(code))
    return Timeline.of(Elements(rows, code, start, end, np.ones_like(code)).changes(30))


def expected(timeline, code, start, end, value):
    """The definition, instant by instant."""
    found = []
    for group, time in zip(timeline.code.tolist(), timeline.time.tolist(), strict=True):
        there = (code == group) & (start <= time) & (time < end)
        found.append(int(value[there].max()) if there.any() else NOTHING)
    return found


@given(MEMBERS)
def test_intervals_that_end_in_any_order(members):
    code, start, end, value = columns(members)
    timeline = timeline_of(code, start, end)
    found = greatest_of_intervals(timeline, code, start, end, value)
    assert found.tolist() == expected(timeline, code, start, end, value)


@given(MEMBERS)
def test_intervals_of_one_length(members):
    code, start, end, value = columns(members, same_length=True)
    timeline = timeline_of(code, start, end)
    found = greatest_of_intervals(timeline, code, start, end, value)
    assert found.tolist() == expected(timeline, code, start, end, value)


@given(MEMBERS, st.integers(-1, 12))
def test_values_added_and_removed_by_count(members, since):
    code, start, end, value = columns(members)
    before = start <= since
    order = np.flatnonzero(before & (end > since))
    order = order[order_of(code[order], order * 0)]
    pairs = sorted(set(zip(code[order].tolist(), value[order].tolist(), strict=True)))
    counts = [int(((code[order] == c) & (value[order] == v)).sum()) for c, v in pairs]
    times = np.concatenate([start, end])
    inside = np.flatnonzero((times > since) & (times < FOREVER))
    both = [np.concatenate([a, a])[inside] for a in (code, value)]
    weights = np.concatenate([np.ones_like(code), -np.ones_like(code)])[inside]
    changes = Changes.ordered(np.arange(len(inside)), both[0], times[inside], weights)
    timeline = Timeline.of(changes)
    bag = [np.array([p[i] for p in pairs], dtype=np.int64) for i in (0, 1)]
    moved = both[1][changes.row]
    found = greatest_of_counts(timeline, changes, moved, *bag, np.array(counts, dtype=np.int64))
    assert found.tolist() == expected(timeline, code, start, end, value)


@given(MEMBERS, st.integers(0, 14))
def test_what_is_not_eligible_never_matters_again(members, until):
    code, start, end, value = columns(members)
    start = np.minimum(start, until)
    keep = still_eligible(code, end, value, until)
    later = Timeline.of(Changes.ordered(
        np.arange(45), np.repeat(np.arange(3), 15), np.tile(np.arange(until + 1, until + 16), 3),
        np.ones(45, dtype=np.int64),
    ))  # fmt: skip
    everything = expected(later, code, start, end, value)
    assert expected(later, code[keep], start[keep], end[keep], value[keep]) == everything
    assert not (keep & (end <= until)).any()
    for group in range(3):  # none of those kept is superfluous
        ends, values = end[keep & (code == group)], value[keep & (code == group)]
        order = np.argsort(-ends)
        assert np.all(np.diff(values[order]) > 0)

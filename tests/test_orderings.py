"""What is remembered of a stream for its constraints says what their definition says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millpond.catalog import Constraint
from millpond.intake.orderings import Ordering, Values, looked_at
from millpond.storage.bounds import MOST_KNOWN, Bounds

VALUES = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=30)
DRIFTING = st.lists(st.integers(-4, 4), max_size=40).map(
    lambda steps: [place + step for place, step in enumerate(steps)]
)


def by_definition(columns, constraints, times):
    """Which constraint each tuple breaks: one with a larger value is more than k before it."""
    broken, kept = [], []
    for time, *row in zip(times, *columns, strict=True):
        place = [len(kept) if each.is_of_rows else time for each in constraints]
        breaks = [
            any(
                old is not None and old > row[i] and before[i] < place[i] - constraints[i].within
                for before, old in ((places, values[i]) for places, values in kept)
            )
            if row[i] is not None
            else False
            for i in range(len(constraints))
        ]
        broken.append(breaks.index(True) if True in breaks else -1)
        if True not in breaks:
            kept.append((place, row))
    return broken


def as_values(column):
    there = np.array([value is not None for value in column], dtype=np.bool_)
    return Values(np.array([value or 0 for value in column], dtype=np.int64), there)


def looked(columns, constraints, times, cuts=()):
    """The same as it is found, cut into pages; and what is remembered at the end."""
    orderings, broken, arrived = [Ordering(each) for each in constraints], [], 0
    edges = sorted({0, len(times), *(cut % (len(times) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        part = [as_values(column[start:end]) for column in columns]
        found = looked_at(orderings, part, np.array(times[start:end], dtype=np.int64), arrived)
        arrived += int((found.broken < 0).sum())
        broken += found.broken.tolist()
        least = [
            arrived if each.is_of_rows else min(times[end:], default=99) for each in constraints
        ]
        facts = zip(orderings, found.risen, found.measured, least, strict=True)
        orderings = [each.following(risen, 0, far, place) for each, risen, far, place in facts]
    return broken, orderings


@given(st.one_of(VALUES, DRIFTING), st.integers(0, 6), st.booleans(), st.data())
def test_a_tuple_is_broken_just_if_the_definition_says_so_however_it_is_cut(
    column, within, is_of_rows, data
):
    size = len(column)
    steps = data.draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    times = np.cumsum(steps, dtype=np.int64).tolist()
    cuts = data.draw(st.lists(st.integers(0, 40), max_size=6))
    constraint = Constraint("c", 0, within, is_of_rows)
    expected = by_definition([column], [constraint], times)
    assert looked([column], [constraint], times)[0] == expected
    broken, (ordering,) = looked([column], [constraint], times, cuts)
    assert broken == expected
    assert ordering.measured == looked([column], [constraint], times)[1][0].measured


@given(VALUES, st.data())
def test_two_constraints_count_the_same_rows(column, data):
    size = len(column)
    other = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    constraints = [Constraint("a", 0, 2, True), Constraint("b", 1, 1, True)]
    cuts = data.draw(st.lists(st.integers(0, 40), max_size=6))
    times = list(range(size))
    expected = by_definition([column, other], constraints, times)
    assert looked([column, other], constraints, times, cuts)[0] == expected


@given(DRIFTING, st.integers(0, 6))
def test_what_was_measured_is_the_smallest_k_to_which_all_adhere(column, within):
    times = list(range(len(column)))
    broken, (ordering,) = looked([column], [Constraint("c", 0, 100, True)], times)
    assert set(broken) <= {-1}
    k = ordering.measured
    assert set(by_definition([column], [Constraint("c", 0, k, True)], times)) <= {-1}
    if k:
        assert max(by_definition([column], [Constraint("c", 0, k - 1, True)], times)) == 0


@given(DRIFTING, st.integers(0, 6), st.integers(0, 40))
def test_no_tuple_that_adheres_is_below_the_bound_and_little_is_remembered(column, within, at):
    constraint, times = Constraint("c", 0, within, True), list(range(len(column)))
    broken = by_definition([column], [constraint], times)
    kept = [value for value, each in zip(column, broken, strict=True) if each < 0]
    before, after = kept[:at], kept[at:]
    _, (ordering,) = looked([before], [constraint], times[: len(before)])
    bound = ordering.bound(len(before))
    assert bound is None or all(value >= bound for value in after)
    far = before[: max(0, len(before) - within)]
    assert bound == max(far, default=None)
    assert len(ordering.peaks) <= within + 1


def test_of_many_bounds_some_are_known_later():
    bounds = Bounds()
    for time in range(10_000):
        bounds.note(time, time)
    assert bounds.at(9_999) == 9_999
    assert bounds.at(-1) is None
    assert len(bounds._known) <= MOST_KNOWN
    assert all((bounds.at(time) or 0) <= time for time in range(0, 10_000, 7))

"""What is remembered of a stream for its constraints says what their definition says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millpond.catalog import Constraint
from millpond.intake.looking import looked_at
from millpond.intake.orderings import Ordering, Risen, Values
from millpond.intake.peaks import Peaks
from millpond.intake.widening import Widened
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
    orderings, broken, arrived = [Ordering.of(each) for each in constraints], [], 0
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


# -- k that grows ----------------------------------------------------------------------------


def widened_by_definition(column, within, is_of_rows, times):
    """Which tuples are broken while k grows, and the places from which on it was larger."""
    broken, kept, grown = [], [], []
    for time, value in zip(times, column, strict=True):
        place = len(kept) if is_of_rows else time
        reach = max([place - within, *(min(place, since) - before for since, before in grown)])
        larger = [(-old, at) for at, old in kept if at < reach and old > value]
        broken.append(0 if larger else -1)
        if larger:
            behind = place - min(larger)[1]
            if behind > within:
                grown.append((place, within))
                within = max(2 * within, behind)
        else:
            kept.append((place, value))
    return broken, within, grown


@given(DRIFTING, st.integers(0, 3), st.booleans(), st.data())
def test_k_grows_as_the_definition_says_however_tuples_are_cut(column, within, is_of_rows, data):
    size = len(column)
    steps = data.draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    times = np.cumsum(steps, dtype=np.int64).tolist()
    cuts = data.draw(st.lists(st.integers(0, 40), max_size=6))
    constraint = Constraint("c", 0, within, is_of_rows, "widen")
    expected, k, grown = widened_by_definition(column, within, is_of_rows, times)
    for each in ((), cuts):
        broken, (ordering,) = looked([column], [constraint], times, each)
        assert broken == expected
        assert ordering.widened.within == k
        assert set(ordering.widened.before) <= set(grown)


def test_from_where_it_says_all_that_adheres_to_the_larger_k_is_taken():
    """k grows from 2 to 4 at place 6, where 5 was forbidden: up to place 7 the old k forbids it."""
    constraint, column = Constraint("c", 0, 2, True, "widen"), [1, 2, 3, 6, 7, 8, 5]
    broken, (ordering,) = looked([column], [constraint], list(range(7)))
    assert broken == [-1] * 6 + [0]
    assert ordering.widened == Widened(4, ((6, 2),))
    assert ordering.widened.complete_from == 8
    for more, expected in (([6, 5], [-1, 0]), ([9, 9, 6, 7], [-1, -1, -1, -1])):
        times = list(range(7 + len(more)))
        assert looked([column + more], [constraint], times)[0][7:] == expected
    _, (ordering,) = looked([[*column, 9, 9]], [constraint], list(range(9)))
    assert ordering.widened == Widened(4)


def test_a_log_of_before_is_read_and_one_of_now_is_short():
    constraint = Constraint("c", 0, 5, True)
    before = Risen.read(((0, 3), (2, 4)), 5)
    assert before == Risen(Peaks.of([0, 2], [3, 4]), Widened(5))
    assert Risen.read(before.to_data(), 5) == before
    assert Risen.read((), 5) == Risen(Peaks(), Widened(5))
    many = Peaks.of(range(100_000), range(7, 100_007))
    assert Peaks.read(many.packed()) == many
    assert len(many.packed()) < 20_000
    assert Ordering.of(constraint).following(before, 1, 2, 3).bound(8) == 4


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), max_size=8), st.integers(0, 8))
def test_peaks_that_others_go_on_with_stay_as_they_are(pairs, number):
    places, values = zip(*pairs, strict=True) if pairs else ((), ())
    peaks = Peaks.of(places, values)
    known = peaks.pairs()
    highest = [max((v for q, v in pairs if q <= place), default=None) for place, _ in known]
    assert highest == [value for _, value in known] or len({q for q, _ in pairs}) < len(pairs)
    longer = [peaks.plus(np.array([99 + each]), np.array([99 + each])) for each in range(3)]
    assert [each.pairs() for each in longer] == [[*known, (99 + i, 99 + i)] for i in range(3)]
    assert peaks.pairs() == known
    assert peaks.since(number).pairs() == known[number:] or number > len(known)


def test_of_many_bounds_some_are_known_later():
    bounds = Bounds()
    for time in range(10_000):
        bounds.note(time, time)
    assert bounds.at(9_999) == 9_999
    assert bounds.at(-1) is None
    assert len(bounds._known) <= MOST_KNOWN
    assert all((bounds.at(time) or 0) <= time for time in range(0, 10_000, 7))
    for behind in (1, 10, 100, 1_000, 5_000):
        assert (bounds.at(9_999 - behind) or 0) >= 9_999 - 2 * behind - 1

"""Patterns say what their parts say, and what is remembered of them is what was said."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millpond.cql.patterns import MOST, Pattern, Values
from millpond.storage import punctuations
from millpond.storage.closed import ClosedKeys, matches
from millpond.storage.punctuations import MOST_KNOWN, Punctuations, Remembered

NUMBERS = range(12)
TEXTS = ("a", "b", "c")
RANGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 3)), max_size=4).map(
    lambda found: Values().united([Values(((low, low + more),)) for low, more in found])
)
SOME_RANGES = RANGES.filter(len)
SOME_TEXTS = st.sets(st.sampled_from(TEXTS), min_size=1).map(
    lambda found: Values(texts=tuple(sorted(found)))
)
PATTERNS = st.one_of(
    SOME_RANGES.map(lambda values: Pattern(((0, values),))),
    SOME_TEXTS.map(lambda values: Pattern(((1, values),))),
    st.tuples(SOME_RANGES, SOME_TEXTS).map(lambda v: Pattern(((0, v[0]), (1, v[1])))),
)
ROWS = pa.table(
    {
        "n": pa.array([*(n for n in NUMBERS for _ in TEXTS), None, 1], pa.int32()),
        "t": pa.array([*(t for _ in NUMBERS for t in TEXTS), "a", None]),
    }
)


def content(values):
    return {n for low, high in values.ranges for n in range(low, high + 1)} | set(values.texts)


def matched(patterns):
    """The rows that match one of some patterns, by what their parts say."""
    return {
        row
        for row, values in enumerate(zip(*ROWS.to_pydict().values(), strict=True))
        if any(
            all(values[column] in content(part) for column, part in pattern.parts)
            for pattern in patterns
        )
    }


def found(patterns):
    return {
        row
        for pattern in patterns
        for row, is_one in enumerate(matches(ROWS, pattern.parts))
        if is_one
    }


@given(RANGES, RANGES)
def test_values_are_sets(one, other):
    assert content(one.united([other])) == content(one) | content(other)
    assert content(one.common(other)) == content(one) & content(other)
    assert one.covers(other) == (content(other) <= content(one))
    assert all(one.has(n) == (n in content(one)) for n in range(-1, 16))
    united = one.united([other]).ranges
    assert all(a[1] + 1 < b[0] for a, b in pairwise(united))


@given(st.lists(PATTERNS, max_size=8))
def test_what_is_remembered_is_what_was_said_however_it_came(patterns):
    at_once = Remembered().followed(patterns)
    one_by_one = Remembered()
    for each in patterns:
        one_by_one = one_by_one.followed([each])
    assert matched(at_once.patterns) == matched(one_by_one.patterns) == matched(patterns)
    assert found(at_once.patterns) == matched(patterns)
    assert not at_once.forgotten
    alone = [each for each in at_once.patterns if len(each.parts) == 1]
    assert len(alone) == len({each.columns for each in alone})
    assert [Pattern.of(each.data()) for each in patterns] == patterns


@given(st.lists(PATTERNS, max_size=4), st.lists(PATTERNS, max_size=4))
def test_a_key_is_closed_if_it_comes_by_no_way(left, right):
    names = ("n", "t")
    ways = tuple(
        tuple(tuple((names[column], values) for column, values in each.parts) for each in way)
        for way in (left, right)
    )
    closed = {row for row, is_one in enumerate(ClosedKeys(ways).of(ROWS)) if is_one}
    assert closed == matched(left) & matched(right)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(punctuations, "MOST_VALUES", 10)
    monkeypatch.setattr(punctuations, "MOST_PATTERNS", 4)
    remembered = Remembered()
    for n in range(0, 100, 2):
        remembered = remembered.followed([Pattern(((0, Values(((n, n),))),))])
        box = Pattern(((0, Values(((n, n),))), (1, Values(texts=(str(n),)))))
        remembered = remembered.followed([box])
    (alone,) = (each for each in remembered.patterns if len(each.parts) == 1)
    assert alone.parts[0][1].ranges == tuple((n, n) for n in range(80, 100, 2))
    assert len(remembered.patterns) == 5
    assert remembered.forgotten == 40 + 2 * 46


def test_ranges_and_lists_merge_into_one():
    remembered = Remembered().followed(
        [
            Pattern(((0, Values(((1, 5),))), (1, Values(texts=("a",))))),
            Pattern(((0, Values(((6, 9),))), (1, Values(texts=("a",))))),
            Pattern(((0, Values(((1, 9),))), (1, Values(texts=("b",))))),
            Pattern(((0, Values(((3, 4),))), (1, Values(texts=("b",))))),
        ]
    )
    assert remembered.patterns == (
        Pattern(((0, Values(((1, 9),))), (1, Values(texts=("a", "b"))))),
    )


def test_of_many_times_some_are_known_later():
    known = Punctuations()
    for time in range(1_000):
        known.note(time, (Pattern(((0, Values(((0, time),))),)),))
    assert known.at(-1) == ()
    assert known.at(10_000)[0].parts[0][1].ranges == ((0, 999),)
    assert len(known._known) <= MOST_KNOWN
    for time in range(0, 1_000, 7):
        assert all(each.parts[0][1].ranges[0][1] <= time for each in known.at(time))
    for behind in (1, 10, 100, 400):
        assert known.at(999 - behind)[0].parts[0][1].ranges[0][1] >= 999 - 2 * behind - 1


def test_ends_of_numbers_are_values_too():
    values = Values(((5, MOST),))
    column = pa.table({"n": pa.array([4, 5, MOST, None])})
    assert matches(column, (("n", values),)).tolist() == [False, True, True, False]

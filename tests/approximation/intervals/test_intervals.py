"""Intervals and what is made of them hold what the numbers in them make."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.approximation.intervals import (
    NOTHING,
    Approximate,
    Interval,
    Rest,
    Truth,
    exactly,
    maximum,
    minimum,
    point,
    rows_that_pass,
)

numbers = st.one_of(st.integers(-50, 50), st.floats(-1e6, 1e6))


@st.composite
def inside(draw):
    """An interval and a number of it."""
    a, b, c = sorted(draw(st.tuples(numbers, numbers, numbers)))
    return Interval(draw(st.sampled_from([a, -inf])), draw(st.sampled_from([c, inf]))), b


@given(inside(), inside())
def test_what_numbers_make_is_in_what_their_intervals_make(one, other):
    (a, x), (b, y) = one, other
    assert x + y in a + b
    assert x - y in a - b
    assert x * y in a * b
    assert -x in -a
    if y != 0:
        assert x / y in a / b
    assert x in a.hull(b)
    assert y in a.hull(b)


@given(inside(), inside())
def test_comparisons_say_what_all_or_some_numbers_say(one, other):
    (a, x), (b, y) = one, other
    for truth, holds in (
        (a.is_less(b), x < y),
        (a.is_at_most(b), x <= y),
        (a.is_equal(b), x == y),
        (a.is_less(b) & ~a.is_equal(b), x < y and x != y),
        (a.is_less(b) | a.is_equal(b), x < y or x == y),
    ):
        assert truth is Truth.POSSIBLY or (truth is Truth.CERTAINLY) == holds


@given(st.tuples(numbers, numbers), st.tuples(numbers, numbers))
def test_possibly_is_said_only_if_both_can_be(first, second):
    a, b = Interval(min(first), max(first)), Interval(min(second), max(second))
    pairs = [(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if a.is_less(b) is Truth.POSSIBLY:
        assert {x < y for x, y in pairs} == {True, False}
    if a.is_at_most(b) is Truth.POSSIBLY:
        assert {x <= y for x, y in pairs} == {True, False}


def test_a_filter_of_three_values():
    answers = [Interval(0, 2), Interval(3, 9), Interval(8, 9)]
    truths = [point(5).is_less(each) for each in answers]
    assert truths == [Truth.NOT, Truth.POSSIBLY, Truth.CERTAINLY]
    assert rows_that_pass(truths) == (1, 2)


@given(st.tuples(numbers, numbers, numbers), st.tuples(numbers, numbers, numbers))
def test_risks_add_up(one, other):
    (low, x, high), (least, y, most) = sorted(one), sorted(other)
    a, b = Interval(low, high), Interval(least, most)
    first = Approximate(x, a, point(x), 0.3)
    second = Approximate(y, b, point(y), 0.4)
    both = first + second
    assert both.certain == a + b
    assert both.risk in (0, 0.7)
    assert (both + first).risk in (0, 0.7 + 0.3)
    assert (both + first).confident == (both + first).certain or (both + first).risk < 1


def test_division_by_what_may_be_zero_has_no_bounds():
    found = exactly(3) / Approximate(1, Interval(-1, 2), Interval(0.5, 2), 0.1)
    assert found.certain == Interval(-inf, inf)
    assert found.confident == Interval(1.5, 6)


@pytest.mark.parametrize(("low", "high"), [(2, 1), (float("nan"), 1), (inf, inf), (-inf, -inf)])
def test_empty_intervals_are_refused(low, high):
    with pytest.raises(ValueError, match="interval"):
        Interval(low, high)


def test_extremes_are_exact_or_one_sided():
    drawn, rest = np.array([2.0, 5.0]), Rest(3, 1.0, 9.0)
    assert maximum(drawn, rest, is_attained=True).certain == point(9.0)
    assert minimum(drawn, rest, is_attained=True).certain == point(1.0)
    assert maximum(drawn, rest).certain == Interval(5.0, 9.0)
    assert minimum(drawn, rest).certain == Interval(1.0, 2.0)
    assert maximum(drawn, Rest(3, 0.0, 1.0)).is_exact
    assert maximum(drawn, NOTHING).certain == point(5.0)
    assert maximum(np.array([]), rest).certain == Interval(1.0, 9.0)
    with pytest.raises(ValueError, match="no rows"):
        minimum(np.array([]), NOTHING)

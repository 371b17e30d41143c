"""Sums of doubles are exact: order does not matter, and what is added can be taken away."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels import exact_sum

LARGE = 2.0**105
VALUES = st.lists(st.floats(-LARGE, LARGE, allow_subnormal=False), max_size=30)
WHOLE = st.lists(st.integers(-(2**50), 2**50).map(lambda n: n * 2.0**-40), max_size=30)


def limbs_of(values, weights=None):
    """The summed limbs of some doubles, each with a weight."""
    data = np.array(values, dtype=np.float64)
    weight = np.ones(len(data), dtype=np.int64) if weights is None else np.array(weights)
    parts = exact_sum.split(data, weight, np.ones(len(data), dtype=np.bool_))
    return [np.array([part.sum()], dtype=np.int64) for part in parts]


def total(values, weights=None):
    """The sum as a double."""
    return float(exact_sum.as_double(limbs_of(values, weights))[0])


def added(one, other, sign=1):
    return [a + sign * b for a, b in zip(one, other, strict=True)]


def same(one, other):
    """Whether two sums look equal once carried."""
    pairs = zip(exact_sum.normalise(one), exact_sum.normalise(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@given(WHOLE)
def test_a_sum_within_the_limbs_is_correctly_rounded(values):
    assert total(values) == math.fsum(values)


@given(VALUES)
def test_a_sum_is_within_one_rounding_and_the_dropped_bits(values):
    exact = float(sum(map(Fraction, values), Fraction(0)))
    allowed = abs(exact) * 2.0**-52 + len(values) * 2.0**-96
    assert abs(total(values) - exact) <= allowed


@given(VALUES, st.randoms())
def test_the_order_of_additions_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    assert same(limbs_of(values), limbs_of(shuffled))
    assert total(values) == total(shuffled)


@given(VALUES, VALUES)
def test_what_is_added_can_be_taken_away_without_a_trace(values, passing):
    base = limbs_of(values)
    both = exact_sum.normalise(added(base, limbs_of(passing)))
    assert same(added(both, limbs_of(passing), sign=-1), base)


@given(VALUES, st.integers(1, 1000))
def test_a_weight_stands_for_so_many_additions(values, weight):
    assert same(limbs_of(values, [weight] * len(values)), limbs_of(values * weight))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([math.inf, 1.0], math.inf),
        ([-math.inf, 1.0], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
        ([2.0**106, 1.0], math.inf),
        ([-0.0], 0.0),
    ],
)
def test_infinities_and_nan_are_counted_apart(values, expected):
    found = total(values)
    assert found == expected or (math.isnan(found) and math.isnan(expected))
    assert total([*values, *values], [1] * len(values) + [-1] * len(values)) == 0.0


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=20))
def test_the_variance_has_twice_the_usual_precision(values):
    data = np.array(values) + 1e7  # the spread is small against the mean
    ones, valid = np.ones(len(data), dtype=np.int64), np.ones(len(data), dtype=np.bool_)
    high, low = exact_sum.two_product(data, data)
    squares = [
        np.array([(a + b).sum()])
        for a, b in zip(
            exact_sum.split(high, ones, valid), exact_sum.split(low, ones, valid), strict=True
        )
    ]
    found = exact_sum.variance(np.array([len(data)]), limbs_of(data), squares)[0]
    exact = float(statistics.variance([Fraction(v) for v in data.tolist()]))
    assert math.isclose(found, exact, rel_tol=1e-9, abs_tol=1e-12)

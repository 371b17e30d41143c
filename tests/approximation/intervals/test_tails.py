"""Tails of distributions, against sums of exact fractions."""

from fractions import Fraction
from math import comb

import pytest

from millpond.approximation.intervals.tails import (
    binomial_at_least,
    binomial_at_most,
    hypergeometric_at_least,
    hypergeometric_at_most,
)


def exact(hits, population, marked, drawn):
    ways = [
        comb(marked, k) * comb(population - marked, drawn - k) if drawn >= k else 0
        for k in range(hits + 1)
    ]
    return Fraction(sum(ways), comb(population, drawn))


def exact_binomial(hits, trials, rate):
    rate = Fraction(rate)
    terms = [
        comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(min(hits, trials) + 1)
    ]
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("population", [1, 2, 7, 24])
def test_all_small_hypergeometric_tails(population):
    for marked in range(population + 1):
        for drawn in range(population + 1):
            for hits in range(-1, drawn + 2):
                below = exact(hits, population, marked, drawn) if hits >= 0 else Fraction(0)
                args = population, marked, drawn
                assert hypergeometric_at_most(hits, *args) == pytest.approx(float(below), rel=1e-12)
                above = hypergeometric_at_least(hits + 1, *args)
                assert above == pytest.approx(float(1 - below), rel=1e-12)


@pytest.mark.parametrize(
    ("hits", "population", "marked", "drawn"),
    [(50, 10_000, 400, 1000), (20, 10_000, 400, 1000), (0, 5000, 3, 1000), (700, 3000, 1500, 1300)],
)
def test_large_hypergeometric_tails(hits, population, marked, drawn):
    below = exact(hits, population, marked, drawn)
    args = population, marked, drawn
    assert hypergeometric_at_most(hits, *args) == pytest.approx(float(below), rel=1e-11)
    assert hypergeometric_at_least(hits + 1, *args) == pytest.approx(float(1 - below), rel=1e-11)


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("trials", [0, 1, 5, 40])
def test_all_small_binomial_tails(trials, rate):
    for hits in range(-1, trials + 2):
        below = exact_binomial(hits, trials, rate) if hits >= 0 else Fraction(0)
        assert binomial_at_most(hits, trials, rate) == pytest.approx(float(below), rel=1e-12)
        above = binomial_at_least(hits + 1, trials, rate)
        assert above == pytest.approx(float(1 - below), rel=1e-12)


def test_sizes_far_beyond_factorials():
    half = hypergeometric_at_most(50_000_000 - 1, 10**10, 5 * 10**9, 10**8)
    assert half == pytest.approx(0.5, abs=1e-4)
    assert binomial_at_most(10**9 - 200_000, 2 * 10**9, 0.5) < 1e-15

"""Bounds of percentiles: all samples of populations up to 12, with exact weights."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from millpond.approximation.intervals import NOTHING, Rest, percentile, rest_of

POPULATIONS = [
    list(range(12)),
    [0] * 11 + [50],
    [3] * 12,
    [1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 9],
    [-1000, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 1000],
]


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("size", [1, 2, 5, 9, 12])
def test_percentiles_are_covered(population, size):
    population = np.array(population[-size:], dtype=float)
    for drawn in range(0, size + 1, 1 if size < 9 else 4):
        splits = [split(population, chosen) for chosen in combinations(range(size), drawn)]
        assert len(splits) == comb(size, drawn)
        for fraction, risk in ((0, 0.05), (0.5, 0.05), (0.5, 0.6), (0.83, 0.3), (1, 0.9)):
            truth = float(np.percentile(population, 100 * fraction))
            found = [percentile(some, fraction, rest_of(others), risk) for some, others in splits]
            assert all(each.certain.low <= truth + 1e-9 for each in found)
            assert all(each.certain.high >= truth - 1e-9 for each in found)
            misses = [max(e.confident.low - truth, truth - e.confident.high) for e in found]
            assert sum(miss > 1e-9 for miss in misses) <= risk * len(found)


def split(population, chosen):
    is_drawn = np.isin(np.arange(len(population)), chosen)
    return population[is_drawn], population[~is_drawn]


def test_ranks_that_are_tight_are_found():
    """The bounds of the median of 12 from 6 are ranks, and one rank further in would miss."""
    population = np.arange(12.0)
    splits = [split(population, chosen) for chosen in combinations(range(12), 6)]
    some = [np.sort(drawn) for drawn, _ in splits]
    found = [percentile(drawn, 5 / 11, Rest(6, -100, 100), 0.1).confident for drawn in some]
    assert [each.low for each in found] == [drawn[1] for drawn in some]
    further_in = sum(drawn[2] > 5 for drawn in some) / len(some)
    assert further_in > 0.05 >= sum(each.low > 5 for each in found) / len(some)


@pytest.mark.parametrize("risk", [1e-9, 0.05])
def test_one_row_of_many(risk):
    found = percentile(np.array([4.0]), 0.5, Rest(10**6, 0, 10), risk)
    assert (found.confident.low, found.confident.high) == (0, 10)


def test_nothing_dropped_and_nothing_drawn():
    assert percentile(np.array([1.0, 2]), 0.5, NOTHING, 0.05).estimate == 1.5
    found = percentile(np.array([]), 0.5, Rest(3, 2, 7), 0.05)
    assert (found.certain.low, found.certain.high) == (2, 7)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="no rows"):
        percentile(np.array([]), 0.5, NOTHING, 0.05)
    with pytest.raises(ValueError, match="from 0 to 1"):
        percentile(np.array([1.0]), 1.5, NOTHING, 0.05)
    with pytest.raises(ValueError, match="NaN"):
        percentile(np.array([float("nan")]), 0.5, NOTHING, 0.05)

"""Percentiles from landmarks: all outcomes of small populations, and many of larger ones."""

from itertools import product

import numpy as np
import pytest

from millpond.approximation.intervals.landmarks import Landmarks, landmark_ranks, packed
from millpond.approximation.intervals.of_sums import COLUMNS, answers_of
from tests.approximation.intervals.test_weighted import DRAWN, POPULATIONS, RATES, sums, together

FRACTIONS = (0.0, 0.3, 0.5, 1.0)
HITS = np.array([True, True, False, True, True, False, True, True, True])


def columns_of(values, weights, is_kept, fraction, is_hit=None):
    """The columns of ``answers_of``: counts, ends of what could have been dropped, landmarks."""
    counted = sums(values, weights, is_kept, is_hit)
    kept = np.sort(values[is_kept if is_hit is None else is_kept & is_hit])
    ranks = landmark_ranks(len(kept), fraction)
    written = packed(kept[[rank - 1 for rank in ranks]], fraction, len(kept)) if len(kept) else None
    return [*counted[: COLUMNS["count"]], *counted[16:18], np.array([written], object)]


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("name", ["sorted", "two spikes", "ones"])
@pytest.mark.parametrize("is_hit", [None, HITS], ids=["all", "hits"])
def test_of_all_outcomes_no_more_than_the_risk_are_outside_of_the_bounds(name, rates, is_hit):
    values, rates = np.asarray(POPULATIONS[name]), np.array(rates)
    outcomes = np.array(list(product([True, False], repeat=len(values))))
    chances = np.where(outcomes, rates, 1 - rates).prod(axis=1)
    is_possible = (chances > 0) & ~outcomes.all(axis=1)
    outcomes, chances = outcomes[is_possible], chances[is_possible]
    kind = "percentile" if is_hit is None else "percentile_of_hits"
    for fraction in FRACTIONS:
        truth = np.quantile(values if is_hit is None else values[is_hit], fraction)
        columns = together(
            [columns_of(values, 1 / rates, each, fraction, is_hit) for each in outcomes]
        )
        for risk in (0.05, 0.5):
            found = answers_of(kind, columns, risk)
            assert ((found.certain_low <= truth) & (truth <= found.certain_high)).all()
            assert (found.certain_low <= found.low).all()
            assert (found.high <= found.certain_high).all()
            known = ~np.isnan(found.estimate)
            assert ((found.low <= found.estimate) & (found.estimate <= found.high))[known].all()
            assert chances[(truth < found.low) | (found.high < truth)].sum() <= risk


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("rates", [[0.1], [1.0, 0.2], [1.0, 0.5, 0.3]], ids=str)
def test_windows_are_covered(draw, rates):
    """A miss in twenty is allowed; more than 28 of 300 have a chance of less than 1e-3."""
    random = np.random.default_rng(5)
    values, rates = draw(random, 600), np.repeat(rates, 600 // len(rates))
    truth, is_hit = np.quantile(values, 0.5), random.random(600) < 0.5
    kept = [random.random(600) < rates for _ in range(300)]
    columns = together([columns_of(values, 1 / rates, each, 0.5) for each in kept])
    found = answers_of("percentile", columns, 0.05)
    assert ((found.low > truth) | (found.high < truth)).sum() <= 28
    columns = together([columns_of(values, 1 / rates, each, 0.5, is_hit) for each in kept])
    found, truth = answers_of("percentile_of_hits", columns, 0.05), np.quantile(values[is_hit], 0.5)
    assert ((found.low > truth) | (found.high < truth)).sum() <= 28


def test_bounds_are_little_wider_than_those_of_all_kept_values():
    random = np.random.default_rng(6)
    values = np.sort(random.random(20_000))
    is_kept = random.random(len(values)) < 0.1
    weights = np.full(len(values), 10.0)
    for fraction in (0.05, 0.5, 0.99):
        deviation = np.sqrt(fraction * (1 - fraction) * 0.9 / is_kept.sum())
        for is_hit, most in ((None, 1.3), (values >= 0, 1.8)):
            columns = columns_of(values, weights, is_kept, fraction, is_hit)
            kind = "percentile" if is_hit is None else "percentile_of_hits"
            found = answers_of(kind, columns, 0.05)
            assert found.high[0] - found.low[0] <= most * 2 * 1.96 * deviation
            assert found.low[0] <= fraction <= found.high[0]


def test_behind_a_filter_bounds_at_several_rates_are_narrower_than_certain_ones():
    random = np.random.default_rng(8)
    values, is_hit = random.random(20_000), random.random(20_000) < 0.5
    rates = random.choice([0.1, 0.2], 20_000)
    columns = columns_of(values, 1 / rates, random.random(20_000) < rates, 0.5, is_hit)
    found = answers_of("percentile_of_hits", columns, 0.05)
    assert 0.25 < found.low[0] < 0.34  # a third of those that are kept, if all below are at 0.1
    assert 0.66 < found.high[0] < 0.75
    assert found.certain_high[0] - found.certain_low[0] > 0.95


def test_rates_that_are_wrong_are_noticed():
    random = np.random.default_rng(7)
    values, misses = np.arange(4000.0), 0
    for _ in range(300):
        is_kept = random.random(4000) < np.where(values < 2000, 0.33, 0.3)
        columns = columns_of(values, np.full(4000, 1 / 0.3), is_kept, 0.5)
        found = answers_of("percentile", columns, 0.05)
        misses += not found.low[0] <= 1999.5 <= found.high[0]
    assert misses > 30


def test_landmarks_are_close_to_each_other_near_the_percentile_and_have_the_exact_one():
    values = np.sort(np.random.default_rng(1).normal(0, 1, 1000))
    ranks = landmark_ranks(1000, 0.3)
    assert len(ranks) < 90
    assert {1, 299, 300, 301, 302, 1000} <= set(ranks)
    found = Landmarks.of(packed(values[[rank - 1 for rank in ranks]], 0.3, 1000))
    assert found.percentile == pytest.approx(np.quantile(values, 0.3))
    for rank in range(-1, 1003):
        if 1 <= rank <= 1000:
            assert found.at_most(rank) <= values[rank - 1] <= found.at_least(rank)
        else:
            assert abs(found.at_most(rank)) == abs(found.at_least(rank)) == np.inf

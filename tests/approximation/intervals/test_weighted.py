"""Bounds from weighted sums: all outcomes of small populations, and many of larger ones."""

from itertools import product

import numpy as np
import pytest

from millpond.approximation.intervals.of_sums import COLUMNS, answers_of
from millpond.approximation.intervals.weighted import Weighted, mean_bounds_of

POPULATIONS = {
    "constant": [7.0] * 9,
    "sorted": [1.0, 2, 3, 4, 5, 6, 7, 8, 9],
    "spike": [0.0] * 8 + [1000.0],
    "two spikes": [-500.0, 1, 1, 1, 1, 1, 1, 1, 500],
    "ones": [0.0, 0, 0, 0, 0, 1, 1, 1, 1],
}
RATES = {
    "half": [0.5] * 9,
    "mixed": [0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3],
    "some kept": [1.0] * 4 + [0.4] * 5,
}


def sums(values, weights, is_kept, is_hit=None):
    """What is added up of rows of which some were kept; the columns of ``answers_of``."""
    values, weights = np.asarray(values, float), np.asarray(weights, float)
    hit = is_kept if is_hit is None else is_kept & is_hit
    can_go, spread = weights > 1, weights * (weights - 1)
    drawn, drawn_hit = is_kept & can_go, hit & can_go
    at_risk = weights[can_go] if can_go.any() else np.zeros(1)
    ranged = values[can_go] if can_go.any() else np.zeros(1)
    return [
        np.array([float(each)])
        for each in (
            (~is_kept).sum(),
            hit.sum(),
            drawn_hit.sum(),
            drawn.sum(),
            weights[drawn].sum(),
            spread[drawn].sum(),
            weights[drawn_hit].sum(),
            spread[drawn_hit].sum(),
            at_risk.min(),
            at_risk.max(),
            values[hit].sum(),
            np.abs(values[hit]).sum(),
            values[hit & ~can_go].sum(),
            (weights * values)[drawn_hit].sum(),
            (spread * values)[drawn_hit].sum(),
            (spread * values**2)[drawn_hit].sum(),
            ranged.min(),
            ranged.max(),
            values.min(),
            values.max(),
        )
    ]


def truths(values, is_hit):
    """The exact answers, by kind."""
    values = np.asarray(values, float)
    return {
        "count": is_hit.sum(),
        "sum": values.sum(),
        "avg": values.mean(),
        "sum_of_hits": values[is_hit].sum(),
        "avg_of_hits": values[is_hit].mean(),
    }


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("values", POPULATIONS.values(), ids=POPULATIONS)
@pytest.mark.parametrize("risk", [0.05, 0.5])
def test_of_all_outcomes_no_more_than_the_risk_are_outside_of_the_bounds(values, rates, risk):
    is_hit = np.array([True, True, False, True, True, False, True, True, True])
    outcomes = np.array(list(product([True, False], repeat=len(values))))
    chances = np.where(outcomes, rates, 1 - np.array(rates)).prod(axis=1)
    is_possible = (chances > 0) & ~outcomes.all(axis=1)
    outcomes, chances = outcomes[is_possible], chances[is_possible]
    for kind, truth in truths(values, is_hit).items():
        filtered = is_hit if kind in ("count", "sum_of_hits", "avg_of_hits") else None
        columns = together([sums(values, 1 / np.array(rates), each, filtered) for each in outcomes])
        found = answers_of(kind, columns[: COLUMNS[kind]], risk)
        assert ((found.certain_low <= truth) & (truth <= found.certain_high)).all()
        known = ~np.isnan(found.estimate)
        assert ((found.low <= found.estimate) & (found.estimate <= found.high))[known].all()
        assert chances[(truth < found.low) | (found.high < truth)].sum() <= risk


def together(columns):
    """The sums of several populations."""
    return [np.concatenate(each) for each in zip(*columns, strict=True)]


DRAWN = {
    "uniform": lambda random, n: random.uniform(-1, 1, n),
    "lognormal": lambda random, n: random.lognormal(0, 1, n),
    "Pareto": lambda random, n: random.pareto(1.1, n),
    "spiky": lambda random, n: np.where(random.random(n) < 0.002, 1e4, 1.0),
    "far from zero": lambda random, n: 1e6 + random.random(n),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_windows_of_several_rates_are_covered(draw):
    """A miss in twenty is allowed; more than 76 of 1000 have a chance of less than 1e-3."""
    random = np.random.default_rng(5)
    values = draw(random, 400)
    rates = np.repeat([1.0, 0.5, 0.1, 0.02], 100)
    columns = [sums(values, 1 / rates, random.random(400) < rates) for _ in range(1000)]
    found = answers_of("sum", together(columns), 0.05)
    truth = values.sum()
    assert ((found.low > truth) | (found.high < truth)).sum() <= 76


def test_bounds_are_at_most_twice_as_wide_as_the_normal_approximation_on_even_values():
    random = np.random.default_rng(6)
    values, rate = random.random(20_000), 0.1
    is_kept = random.random(len(values)) < rate
    columns = sums(values, np.full(len(values), 1 / rate), is_kept)
    found = answers_of("avg", columns, 0.05)
    normal = 1.96 * values.std() * np.sqrt((1 - rate) / is_kept.sum())
    assert found.high[0] - found.low[0] <= 2 * 1.7 * normal


def test_rates_that_are_wrong_are_noticed():
    """Counts that stand for too few rows leave the truth outside far too often."""
    random = np.random.default_rng(7)
    misses = 0
    for _ in range(300):
        is_hit, is_kept = random.random(4000) < 0.5, random.random(4000) < 0.3
        columns = sums(np.ones(4000), np.full(4000, 1 / 0.3), is_kept, is_hit)
        columns[0] = columns[0] * 0.9
        found = answers_of("count", columns[: COLUMNS["count"]], 0.05)
        misses += not found.low[0] <= is_hit.sum() <= found.high[0]
    assert misses > 100


def test_without_chance_there_is_no_width():
    one, none = np.ones(1), np.zeros(1)
    of = Weighted(3 * one, 12 * one, none, none, none, one, one, 9 * one)
    low, high = mean_bounds_of(of, 0.05)
    assert low == high == 4

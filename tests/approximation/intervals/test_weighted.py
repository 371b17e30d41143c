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
            (values**2)[hit].sum(),
            (values**2)[hit & ~can_go].sum(),
            (weights * values**2)[drawn_hit].sum(),
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
        "variance": values.var(ddof=1),
        "stddev": values.std(ddof=1),
        "variance_of_hits": values[is_hit].var(ddof=1),
        "stddev_of_hits": values[is_hit].std(ddof=1),
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
        filtered = is_hit if kind == "count" or kind.endswith("_of_hits") else None
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
    for kind, truth in (("sum", values.sum()), ("stddev", values.std(ddof=1))):
        found = answers_of(kind, together(columns)[: COLUMNS[kind]], 0.05)
        assert ((found.low > truth) | (found.high < truth)).sum() <= 76


def test_bounds_are_at_most_twice_as_wide_as_the_normal_approximation_on_even_values():
    random = np.random.default_rng(6)
    values, rate = random.random(20_000), 0.1
    is_kept = random.random(len(values)) < rate
    columns = sums(values, np.full(len(values), 1 / rate), is_kept)
    found = answers_of("avg", columns[: COLUMNS["avg"]], 0.05)
    normal = 1.96 * values.std() * np.sqrt((1 - rate) / is_kept.sum())
    assert found.high[0] - found.low[0] <= 2 * 1.7 * normal


@pytest.mark.parametrize("offset", [0.0, -3.0, 1e4])
def test_bounds_of_a_deviation_narrow_with_the_sample_wherever_values_are(offset):
    random = np.random.default_rng(6)
    values, widths = offset + random.random(200_000), []
    for rate in (0.01, 0.1, 0.5):
        columns = sums(values, np.full(len(values), 1 / rate), random.random(len(values)) < rate)
        found = answers_of("stddev", columns, 0.05)
        assert found.low[0] <= values.std(ddof=1) <= found.high[0]
        assert found.estimate[0] == pytest.approx(values.std(ddof=1), rel=0.05)
        widths.append((found.high[0] - found.low[0]) / found.estimate[0])
    assert widths[0] < 0.35
    assert widths[1] < 0.12
    assert widths[2] < 0.05


def test_where_rounding_leaves_nothing_of_a_deviation_the_certain_bounds_stand():
    random = np.random.default_rng(6)
    values = 1e12 + random.random(1000)
    columns = sums(values, np.full(1000, 2.0), random.random(1000) < 0.5)
    found = answers_of("variance", columns, 0.05)
    assert found.low[0] == 0 <= values.var(ddof=1) <= found.high[0]
    assert found.certain_high[0] <= 1.01 * 64 * np.finfo(float).eps * 1e24


def test_of_fewer_than_two_rows_there_is_no_deviation():
    none = [np.zeros(1)] * COLUMNS["stddev"]
    for dropped, is_none in ((1.0, True), (2.0, False)):
        columns = [np.array([dropped]), *none[1:]]
        columns[8] = columns[9] = np.array([2.0])
        columns[17] = columns[19] = np.array([3.0])
        found = answers_of("stddev", columns, 0.05)
        assert np.isnan(found.estimate[0])
        assert np.isnan(found.low[0]) == np.isnan(found.certain_high[0]) == is_none


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

"""Bounds from sums over kept rows of which each was kept at a rate of its own.

A window may hold rows that were kept at several rates. Each kept row has the weight 1 / rate; what
the bounds need are sums over kept rows, so that they can be kept up to date like any sum. The
derivation is in docs/precision.md ("Rows of several rates").
"""

import math
from dataclasses import dataclass

import numpy as np

from millpond.approximation.checks import Floats, check_risk

_ROUNDING = 1e-13
"""So much of what is added up may be lost to rounding."""


@dataclass(frozen=True)
class Weighted:
    """Sums over the kept rows of some populations, one entry for each: w is a row's weight, x its
    value, and u = w (w - 1). Values of all rows, kept or not, are from ``low`` to ``high``."""

    weights: Floats
    """Σ w."""
    values: Floats
    """Σ w x."""
    spreads: Floats
    """Σ u."""
    first: Floats
    """Σ u x."""
    second: Floats
    """Σ u x²."""
    most_weight: Floats
    """The largest weight of a row, kept or not."""
    low: Floats
    high: Floats


def mean_bounds_of(of: Weighted, risk: float) -> tuple[Floats, Floats]:
    """The lower and upper bounds of the means of populations; each pair fails with the risk.

    Infinite where nothing was kept, or too little for any bound.

    >>> one, none = np.ones(1), np.zeros(1)
    >>> exact = Weighted(one, one * 3, none, none, none, one, one, one * 9)
    >>> low, high = mean_bounds_of(exact, 0.05)
    >>> low.tolist(), high.tolist()
    ([3.0], [3.0])
    """
    check_risk(risk)
    logarithm = math.log(3 / risk)
    with np.errstate(all="ignore"):
        mean = of.values / of.weights
        below = _reach(of, mean, logarithm, -1)
        above = _reach(of, mean, logarithm, 1)
    return np.maximum(mean - below, of.low), np.minimum(mean + above, of.high)


def _reach(of: Weighted, mean: Floats, logarithm: float, side: int) -> Floats:
    """How far the truth can be from the mean of what was kept, on one side."""
    width = of.high - of.low
    factor = of.most_weight * (of.most_weight - 1) * width**2
    largest = np.maximum(1.0, of.most_weight - 1) * width
    fixed = logarithm * (np.sqrt(factor) + largest / 3)
    fixed = np.where(of.most_weight > 1, fixed, 0.0)
    spread = 2 * logarithm * of.spreads
    offset = np.where(of.spreads > 0, side * (mean - of.first / of.spreads), 0.0)
    lost = _ROUNDING * (of.second + mean**2 * of.spreads)
    variance = np.where(of.spreads > 0, of.second - of.first**2 / of.spreads, 0.0)
    constant = 2 * logarithm * (np.maximum(variance, 0.0) + lost + factor * logarithm / 2)
    return _larger_root(
        of.weights**2 - spread,
        of.weights * fixed + spread * offset,
        fixed**2 - spread * offset**2 - constant,
    )


def _larger_root(a: Floats, half_b: Floats, c: Floats) -> Floats:
    """The larger root of a e² - 2 half_b e + c, where the quadratic has one and a is positive."""
    root = (half_b + np.sqrt(np.maximum(half_b**2 - a * c, 0.0))) / a
    return np.where(a > 0, np.maximum(root, 0.0), np.inf)

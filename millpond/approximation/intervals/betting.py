"""Bounds of the mean of a finite population from rows drawn without replacement, in drawn order.

Waudby-Smith and Ramdas, *Estimating means of bounded random variables by betting* (2024), without
replacement, for one fixed number of draws: who bets on rows being more than a mean that is right
seldom gets rich, so means against which one gets rich are left out. Bets are those of their
empirical Bernstein bounds (λ_t, here ``bets``), than which this is narrower; C_t, ``fair``, is the
mean of what is left before draw t. `docs/precision.md` has the proof.
"""

import math

import numpy as np

from millpond.approximation.checks import Floats

BOLDEST = 0.75
"""Which part of the capital is staked at most; the proof needs less than 1."""

HALVINGS = 34
"""How often the room for a bound is halved; what is left of it is in the bounds."""

ROUNDING = 1e-6
"""Capital has to be more by this part than the proof asks for: more than rounding can be."""


def mean_bounds(drawn: Floats, population: int, risk: float) -> tuple[Floats, Floats]:
    """The ends of the bounds of the mean; rows of samples are bounded at once.

    ``drawn`` holds values from 0 to 1, the order in which they were drawn along the last axis.

    >>> low, high = mean_bounds(np.array([0.2, 0.8] * 25), 100, 0.05)
    >>> round(float(low), 3), round(float(high), 3)
    (0.419, 0.58)
    """
    before = np.cumsum(drawn, axis=-1) - drawn
    wanted = math.log(2 / risk)
    bets = np.sqrt(2 * wanted / (drawn.shape[-1] * _variances(drawn, before)))
    low = _least_plausible(drawn, before, bets, population, wanted)
    mirrored = np.arange(drawn.shape[-1]) - before
    return low, 1 - _least_plausible(1 - drawn, mirrored, bets, population, wanted)


def _variances(drawn: Floats, before: Floats) -> Floats:
    """Before each draw, a guess of the variance from the draws before it."""
    numbers = np.arange(1, drawn.shape[-1] + 1, dtype=np.float64)
    squares = (drawn - (0.5 + before + drawn) / (numbers + 1)) ** 2
    variances: Floats = (0.25 + np.cumsum(squares, axis=-1) - squares) / numbers
    return variances


def _least_plausible(
    drawn: Floats, before: Floats, bets: Floats, population: int, wanted: float
) -> Floats:
    """A mean below which all are left out: capital falls as the mean grows, so by halving."""
    count = drawn.shape[-1]
    left = population - np.arange(count, dtype=np.float64)
    low = np.asarray(drawn.sum(axis=-1) / population)
    high = low + (population - count) / population
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fair = np.clip((population * middle[..., np.newaxis] - before) / left, 1e-300, 1)
        stakes = np.minimum(bets, BOLDEST / fair)
        capital = np.log1p(stakes * (drawn - fair)).sum(axis=-1)
        is_left_out = capital >= wanted + ROUNDING
        low, high = np.where(is_left_out, middle, low), np.where(is_left_out, high, middle)
    return low

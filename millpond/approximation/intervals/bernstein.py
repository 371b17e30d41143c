"""Bounds of the mean of a finite population from rows drawn without replacement, in drawn order.

Waudby-Smith and Ramdas, *Confidence sequences for sampling without replacement* (2020), the
empirical Bernstein one with predictable plug-ins, for one fixed number of draws. Their λ_t is
``bets``, ψ_E(λ_t)·v_t is ``cost``, and C_t, the mean of what is left before draw t, is linear in
the mean of all, so the bounds have a closed form. `docs/precision.md` has the proof.
"""

import math

import numpy as np

from millpond.approximation.checks import Floats

BOLDEST = 0.75
"""No bet is larger; the proof needs less than 1."""

ROUNDING = 1e-9
"""The half width is taken to be larger by this part, and by this part of the range over the rows:
more than rounding can be."""


def mean_bounds(drawn: Floats, population: int, risk: float) -> tuple[Floats, Floats]:
    """The centre and half the width of the bounds of the mean; rows of samples are bounded at once.

    ``drawn`` holds values from 0 to 1, the order in which they were drawn along the last axis.

    >>> centre, half = mean_bounds(np.array([0.5] * 50), 100, 0.05)
    >>> float(round(centre, 3)), float(round(half, 3))
    (0.5, 0.071)
    """
    count = drawn.shape[-1]
    log_risk = math.log(2 / risk)
    before = np.cumsum(drawn, axis=-1) - drawn
    guesses, variances = _guesses(drawn, before)
    bets = np.minimum(np.sqrt(2 * log_risk / (count * variances)), BOLDEST)
    cost = (-np.log1p(-bets) - bets) * (drawn - guesses) ** 2
    left = population - np.arange(count, dtype=np.float64)
    weight = (bets * (population / left)).sum(axis=-1)
    centre = (bets * (drawn + before / left)).sum(axis=-1) / weight
    half = (log_risk + cost.sum(axis=-1)) / weight
    return centre, half * (1 + ROUNDING) + ROUNDING / count


def _guesses(drawn: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Before each draw: a guess of the mean and of the variance, from the draws before it."""
    numbers = np.arange(1, drawn.shape[-1] + 1, dtype=np.float64)
    guesses = (0.5 + before) / numbers
    after = (0.5 + before + drawn) / (numbers + 1)
    squares = (drawn - after) ** 2
    variances = (0.25 + np.cumsum(squares, axis=-1) - squares) / numbers
    return guesses, variances

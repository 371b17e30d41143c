"""Tails of the hypergeometric and the binomial distribution, to about twelve digits, for any size.

One probability is computed by Loader's saddle-point form (*Fast and Accurate Computation of
Binomial Probabilities*, 2000), which does not lose digits where factorials cancel; those further
out follow by ratios, always away from the mode, where they fall.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from millpond.approximation.checks import Floats

_Ratio: TypeAlias = Callable[[Floats], Floats]
_CHUNK = 256
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def hypergeometric_at_most(hits: int, population: int, marked: int, drawn: int) -> float:
    """The chance of at most so many marked rows among those drawn without replacement.

    >>> hypergeometric_at_most(0, 4, 2, 2) * 6
    1.0
    """
    fewest, most = max(0, drawn + marked - population), min(drawn, marked)
    if hits < fewest or hits >= most:
        return float(hits >= most)
    if hits * (population + 2) >= (drawn + 1) * (marked + 1):
        return 1 - hypergeometric_at_most(drawn - hits - 1, population, population - marked, drawn)
    first = _hypergeometric(hits, population, marked, drawn)
    others = population - marked - drawn

    def ratio(k: Floats) -> Floats:
        return k / (marked - k + 1) * ((others + k) / (drawn - k + 1))

    return _tail(first, hits, ratio, hits - fewest)


def hypergeometric_at_least(hits: int, population: int, marked: int, drawn: int) -> float:
    """The chance of at least so many marked rows among those drawn without replacement."""
    return hypergeometric_at_most(drawn - hits, population, population - marked, drawn)


def binomial_at_most(hits: int, trials: int, rate: float) -> float:
    """The chance of at most so many hits, each trial being one at this rate.

    >>> binomial_at_most(0, 2, 0.5)
    0.25
    """
    if hits < 0 or hits >= trials or rate in (0, 1):
        return float(hits >= (trials if rate == 1 else 0))
    if hits >= (trials + 1) * rate:
        return 1 - _binomial_down(trials - hits - 1, trials, 1 - rate, rate)
    return _binomial_down(hits, trials, rate, 1 - rate)


def binomial_at_least(hits: int, trials: int, rate: float) -> float:
    """The chance of at least so many hits."""
    if hits <= 0 or hits > trials or rate in (0, 1):
        return float(hits <= (trials if rate == 1 else 0))
    if trials - hits >= (trials + 1) * (1 - rate):
        return 1 - _binomial_down(hits - 1, trials, rate, 1 - rate)
    return _binomial_down(trials - hits, trials, 1 - rate, rate)


def _binomial_down(hits: int, trials: int, rate: float, opposite: float) -> float:
    """The lower tail from below the mode, with both rates, none of them rounded."""
    odds = opposite / rate

    def ratio(k: Floats) -> Floats:
        return k / (trials - k + 1) * odds

    return _tail(_binomial(hits, trials, rate, opposite), hits, ratio, hits)


def _tail(first: float, hits: int, ratio: _Ratio, terms: int) -> float:
    """The sum of ``first`` and the terms below it, as long as they count.

    ``ratio(k)`` is the probability of k - 1 hits over that of k.
    """
    found, last, at = first, first, hits
    while at > hits - terms and last > found * 1e-18:
        ks = np.arange(at, max(at - _CHUNK, hits - terms), -1, dtype=np.float64)
        parts = last * np.cumprod(ratio(ks))
        found, last, at = found + float(parts.sum()), float(parts[-1]), at - len(ks)
    return min(found, 1.0)


def _hypergeometric(hits: int, population: int, marked: int, drawn: int) -> float:
    rate, opposite = drawn / population, (population - drawn) / population
    one = _binomial(hits, marked, rate, opposite)
    other = _binomial(drawn - hits, population - marked, rate, opposite)
    return one * (other / _binomial(drawn, population, rate, opposite))


def _binomial(hits: int, trials: int, rate: float, opposite: float) -> float:
    """The chance of exactly so many hits."""
    if hits == 0:
        return math.exp(trials * (math.log1p(-rate) if rate < 0.5 else math.log(opposite)))
    if hits == trials:
        return math.exp(trials * (math.log1p(-opposite) if opposite < 0.5 else math.log(rate)))
    exponent = _stirling(trials) - _stirling(hits) - _stirling(trials - hits)
    exponent -= _deviance(hits, trials * rate) + _deviance(trials - hits, trials * opposite)
    spread = 2 * math.pi * hits * ((trials - hits) / trials)
    return math.exp(exponent) / math.sqrt(spread)


def _stirling(n: int) -> float:
    """By how much the logarithm of n! is more than Stirling's formula says."""
    if n <= 15:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2
    return sum(
        term / float(n) ** power for term, power in zip(_SERIES, (1, 3, 5, 7, 9), strict=True)
    )


def _deviance(x: float, mean: float) -> float:
    """x·log(x / mean) + mean - x, without cancelling where the two are close."""
    away = x - mean
    if abs(away) >= 0.1 * (x + mean):
        return x * math.log(x / mean) - away
    v = away / (x + mean)
    found, term, power = away * v, 2 * x * v, 1
    while True:
        term *= v * v
        power += 2
        more = found + term / power
        if more == found:
            return found
        found = more

"""Sums of doubles that do not depend on the order of additions and can be undone exactly.

A double is split into five whole numbers: multiples of 2^64, 2^24, 2^-16, 2^-56 and 2^-96. Whole
numbers add and subtract without error, so windows may slide for years without drift, and any cut
into pages gives the same sum. Bits below 2^-96 are dropped for each value by itself. Values of
2^106 (8e31) and more count as infinite; infinities and NaN are counted apart.
"""

import numpy as np

from millpond.kernels.groups import Bools, Floats, Ints

LIMBS = 8
"""Columns of a sum: five limbs, then how many +infinity, -infinity and NaN."""

_SCALES = (2.0**64, 2.0**24, 2.0**-16, 2.0**-56, 2.0**-96)
_CARRY = 2**40


def split(values: Floats, weights: Ints, valid: Bools) -> list[Ints]:
    """The limbs of each value times its weight; zero where not valid."""
    usable = valid & (np.abs(values) < 2.0**106)
    rest = np.where(usable, values, 0.0)
    limbs = []
    for scale in _SCALES:
        part = np.trunc(rest / scale)
        limbs.append(part.astype(np.int64) * weights)
        rest = rest - part * scale
    odd = valid & ~usable
    limbs.append(np.where(odd & (values > 0), weights, 0))
    limbs.append(np.where(odd & (values < 0), weights, 0))
    limbs.append(np.where(odd & np.isnan(values), weights, 0))
    return limbs


def normalise(limbs: list[Ints]) -> list[Ints]:
    """The same sum with each lower limb carried into the next, so that equal sums look equal."""
    result = list(limbs)
    for place in range(len(_SCALES) - 1, 0, -1):
        carry, result[place] = np.divmod(result[place], _CARRY)
        result[place - 1] = result[place - 1] + carry
    return result


def as_pair(limbs: list[Ints]) -> tuple[Floats, Floats]:
    """The sum as an unevaluated pair of doubles, large and small part."""
    parts = [
        limb.astype(np.float64) * scale
        for limb, scale in zip(normalise(limbs)[: len(_SCALES)], _SCALES, strict=True)
    ]
    top, lost = parts[0], np.zeros(len(parts[0]))
    for part in parts[1:]:
        top, error = two_sum(top, part)
        lost = lost + error
    return two_sum(top, lost)


def as_double(limbs: list[Ints]) -> Floats:
    """The sum, rounded to a double."""
    total = as_pair(limbs)[0]
    plus, minus, nan = limbs[5:]
    total = np.where(plus > 0, np.inf, total)
    total = np.where(minus > 0, -np.inf, total)
    return np.where((nan > 0) | ((plus > 0) & (minus > 0)), np.nan, total)


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a · b and its rounding error (Dekker)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _halves(a: Floats) -> tuple[Floats, Floats]:
    factor = a * 134217729.0  # 2^27 + 1
    high = factor - (factor - a)
    return high, a - high


def variance(count: Ints, total: list[Ints], squares: list[Ints]) -> Floats:
    """The sample variance from count, sum and sum of squares, with twice the usual precision."""
    n = count.astype(np.float64)
    sum_high, sum_low = as_pair(total)
    square_high, square_low = as_pair(squares)
    left, left_error = two_product(n, square_high)
    right, right_error = two_product(sum_high, sum_high)
    difference, error = two_sum(left, -right)
    error = error + (left_error - right_error) + n * square_low - 2.0 * sum_high * sum_low
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.maximum(difference + error, 0.0) / (n * (n - 1.0))
    odd = (total[5] + total[6] + total[7]) > 0
    return np.where(odd, np.nan, result)

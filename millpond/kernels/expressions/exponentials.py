"""exp, ln and log10 to the last bit as Java's StrictMath has them, which is what Spark calls.

That is fdlibm's algorithm: an argument is reduced to a small one, for which a polynomial is good to
less than a unit in the last place. Every operation here is rounded by itself, in fdlibm's order.
"""

import numpy as np

from millpond.kernels.groups import Bools, Floats, Ints

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_PER_LN2 = 1.44269504088896338700e00
_LARGEST, _SMALLEST = 7.09782712893383973096e02, -7.45133219101941108420e02
_EXP = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_PER_LN10 = 4.34294481903251816668e-01
_LOG10_2_HIGH, _LOG10_2_LOW = 3.01029995663611771306e-01, 3.69423907715893078616e-13


def high(x: Floats) -> Ints:
    """The upper 32 bits: sign, exponent and the first 20 bits of the fraction."""
    return x.view(np.int64) >> 32


def scaled(x: Floats, exponent: Ints) -> Floats:
    """x times a power of two, where the result is no subnormal number."""
    return (x.view(np.int64) + (exponent << 52)).view(np.float64)


def exp_polynomial(x: Floats) -> Floats:
    """The part of e**x that the reduced argument needs."""
    p1, p2, p3, p4, p5 = _EXP
    t = x * x
    result: Floats = x - t * (p1 + t * (p2 + t * (p3 + t * (p4 + t * p5))))
    return result


def exp(x: Floats) -> Floats:
    """e to the power of x."""
    size = high(x) & 0x7FFFFFFF
    negative = x < 0
    usual = np.where(np.isfinite(x), x, 0.0)
    rounded = np.trunc(_PER_LN2 * usual + np.where(negative, -0.5, 0.5))
    near = np.where(negative, -1.0, 1.0)
    k = np.where(size < 0x3FF0A2B2, near, rounded)
    k = np.where(size > 0x3FD62E42, k, 0.0)
    upper = usual - k * LN2_HIGH
    lower = k * LN2_LOW
    reduced = np.where(k != 0, upper - lower, usual)
    c = exp_polynomial(reduced)
    without = 1.0 - ((reduced * c) / (c - 2.0) - reduced)
    y = 1.0 - ((lower - (reduced * c) / (2.0 - c)) - upper)
    whole = np.clip(k, -1100, 1100).astype(np.int64)
    large = scaled(y, np.where(whole >= -1021, whole, 0))
    small = scaled(y, np.where(whole >= -1021, 0, whole + 1000)) * 2.0**-1000
    result = np.where(whole == 0, without, np.where(whole >= -1021, large, small))
    result = np.where(size < 0x3E300000, 1.0 + usual, result)
    result = np.where(usual > _LARGEST, np.inf, np.where(usual < _SMALLEST, 0.0, result))
    return np.where(np.isfinite(x), result, np.where(x == -np.inf, 0.0, x))


def ln(x: Floats) -> tuple[Floats, Bools]:
    """The natural logarithm, of numbers above zero."""
    defined = ~(x <= 0)
    return np.where(np.isfinite(x), _ln(np.where(defined, x, 1.0)), x), defined


def _normal(x: Floats) -> tuple[Floats, Ints]:
    """A number that is no subnormal one, and the power of two it was divided by."""
    tiny = high(x) < 0x00100000
    return np.where(tiny, x * 2.0**54, x), np.where(tiny, -54, 0)


def _ln(x: Floats) -> Floats:
    x, k = _normal(x)
    word = high(x)
    k = k + (word >> 20) - 1023
    word = word & 0x000FFFFF
    carry = (word + 0x95F64) & 0x100000
    fraction = x.view(np.int64) & 0xFFFFFFFF
    x = ((word | (carry ^ 0x3FF00000)) << 32 | fraction).view(np.float64)
    dk = (k + (carry >> 20)).astype(np.float64)
    f = x - 1.0
    return np.where((0x000FFFFF & (2 + word)) < 3, _ln_near_one(f, dk), _ln_polynomial(f, dk, word))


def _ln_near_one(f: Floats, dk: Floats) -> Floats:
    r = f * f * (0.5 - 0.33333333333333333 * f)
    result = np.where(dk == 0, f - r, dk * LN2_HIGH - ((r - dk * LN2_LOW) - f))
    return np.where(f == 0, np.where(dk == 0, 0.0, dk * LN2_HIGH + dk * LN2_LOW), result)


def _ln_polynomial(f: Floats, dk: Floats, word: Ints) -> Floats:
    g1, g2, g3, g4, g5, g6, g7 = _LOG
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    r = z * (g1 + w * (g3 + w * (g5 + w * g7))) + w * (g2 + w * (g4 + w * g6))
    half = 0.5 * f * f
    middle = ((word - 0x6147A) | (0x6B851 - word)) > 0
    inner = np.where(middle, s * (half + r), s * (f - r))
    with_half = np.where(dk == 0, f - (half - inner), _ln_sum(dk, half - (inner + dk * LN2_LOW), f))
    without = np.where(dk == 0, f - inner, _ln_sum(dk, inner - dk * LN2_LOW, f))
    return np.where(middle, with_half, without)


def _ln_sum(dk: Floats, correction: Floats, f: Floats) -> Floats:
    return dk * LN2_HIGH - (correction - f)


def log10(x: Floats) -> tuple[Floats, Bools]:
    """The logarithm to base 10, of numbers above zero."""
    defined = ~(x <= 0)
    usual, k = _normal(np.where(defined & (x != np.inf), x, 1.0))
    word = high(usual)
    k = k + (word >> 20) - 1023
    below = (k < 0).astype(np.int64)
    fraction = usual.view(np.int64) & 0xFFFFFFFF
    part = (((word & 0x000FFFFF) | ((0x3FF - below) << 20)) << 32 | fraction).view(np.float64)
    y = (k + below).astype(np.float64)
    z = y * _LOG10_2_LOW + _PER_LN10 * _ln(part)
    return np.where(np.isfinite(x), z + y * _LOG10_2_HIGH, x), defined

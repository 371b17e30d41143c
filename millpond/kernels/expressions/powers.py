"""power to the last bit as Java's StrictMath has it: fdlibm's algorithm on arrays.

log2 of the base is found in two doubles, multiplied by the exponent, and 2 raised to that.
"""

import numpy as np

from millpond.kernels.expressions.exponentials import exp_polynomial, high
from millpond.kernels.groups import Bools, Floats, Ints

_BP, _DP_HIGH, _DP_LOW = 1.5, 5.84962487220764160156e-01, 1.35003920212974897128e-08
_L = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
_LG2, _LG2_HIGH, _LG2_LOW = (
    6.93147180559945286227e-01,
    6.93147182464599609375e-01,
    -1.90465429995776804525e-09,
)
_OVERFLOW = 8.0085662595372944372e-17
_CP, _CP_HIGH, _CP_LOW = (
    9.61796693925975554329e-01,
    9.61796700954437255859e-01,
    -7.02846165095275826516e-09,
)
_IVLN2, _IVLN2_HIGH, _IVLN2_LOW = (
    1.44269504088896338700e00,
    1.44269502162933349609e00,
    1.92596299112661746887e-08,
)


def power(x: Floats, y: Floats) -> Floats:
    """The first number to the power of the second."""
    x, y = (np.ascontiguousarray(a) for a in np.broadcast_arrays(x, y))
    odd, whole = _parity(y)
    size = np.abs(x)
    sign = np.where((x < 0) & odd, -1.0, 1.0)
    usual = np.isfinite(x) & np.isfinite(y) & (size != 0) & (size != 1)
    base, exponent = np.where(usual, size, 2.0), np.where(usual, y, 3.0)
    result = sign * _power(base, exponent)
    result = np.where((x < 0) & ~whole, np.nan, result)
    return _special(x, y, np.where(usual, result, _edge(x, y, odd, whole)))


def _parity(y: Floats) -> tuple[Bools, Bools]:
    """Whether a number is odd, and whether it is whole; large ones are even."""
    size = np.abs(y)
    whole = (np.trunc(y) == y) & (size < np.inf)
    odd = whole & (size < 2.0**53) & (np.fmod(size, 2.0) == 1.0)
    return odd, whole | (size == np.inf)


def _edge(x: Floats, y: Floats, odd: Bools, whole: Bools) -> Floats:
    """Bases 0, 1, -1 and infinity, and infinite exponents."""
    size = np.abs(x)
    z = np.where(y < 0, 1.0 / size, size)
    z = np.where((x < 0) & (size == 1) & ~whole, np.nan, z)
    z = np.where(np.signbit(x) & odd, -z, z)
    at_infinity = np.where((size > 1) == (y > 0), np.inf, 0.0)
    at_infinity = np.where(size == 1, np.nan, at_infinity)
    return np.where(np.isinf(y), at_infinity, z)


def _special(x: Floats, y: Floats, result: Floats) -> Floats:
    """Exponents for which nothing is computed, and NaN."""
    result = np.where((y == 0.5) & ~np.signbit(x), np.sqrt(x), result)
    result = np.where(y == 2, x * x, result)
    result = np.where(y == 1, x, np.where(y == -1, 1.0 / x, result))
    result = np.where(np.isnan(x) | np.isnan(y), np.nan, result)
    return np.where(y == 0, 1.0, result)


def _power(x: Floats, y: Floats) -> Floats:
    """x > 0, neither 1 nor infinite; y finite."""
    t1, t2 = _log2(x)
    near1, near2 = _log2_near_one(x)
    huge = (high(y) & 0x7FFFFFFF) > 0x41E00000
    t1, t2 = np.where(huge, near1, t1), np.where(huge, near2, t2)
    y1 = _upper(y)
    low = (y - y1) * t1 + y * t2
    top = y1 * t1
    z = low + top
    over = (z > 1024) | ((z == 1024) & (low + _OVERFLOW > z - top))
    under = (z < -1075) | ((z == -1075) & (low <= z - top))
    far = _far(x, y, huge)
    plain = ~(over | under | (far >= 0))
    result = _exp2(np.where(plain, low, 0.0), np.where(plain, top, 0.0))
    result = np.where(over, np.inf, np.where(under, 0.0, result))
    return np.where(far >= 0, far, result)


def _far(x: Floats, y: Floats, huge: Bools) -> Floats:
    """Infinity or 0 where a huge exponent decides alone, else -1."""
    word = high(x)
    huger = (high(y) & 0x7FFFFFFF) > 0x43F00000
    below = np.where(huger, word <= 0x3FEFFFFF, word < 0x3FEFFFFF)
    above = np.where(huger, word >= 0x3FF00000, word > 0x3FF00000)
    decided = huge & (below | above)
    return np.where(decided, np.where(below == (y < 0), np.inf, 0.0), -1.0)


def _upper(x: Floats) -> Floats:
    """The number with the lower 32 bits of its fraction cut off."""
    return (x.view(np.int64) & ~np.int64(0xFFFFFFFF)).view(np.float64)


def _log2_near_one(x: Floats) -> tuple[Floats, Floats]:
    t = x - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = _IVLN2_HIGH * t
    v = t * _IVLN2_LOW - w * _IVLN2
    t1 = _upper(u + v)
    return t1, v - (t1 - u)


def _log2(x: Floats) -> tuple[Floats, Floats]:
    """log2 in an upper and a lower part."""
    tiny = high(x) < 0x00100000
    x = np.where(tiny, x * 2.0**53, x)
    word = high(x)
    n = np.where(tiny, -53, 0) + (word >> 20) - 0x3FF
    j = word & 0x000FFFFF
    one_and_half = (j > 0x3988E) & (j < 0xBB67A)
    carried = j >= 0xBB67A
    n = n + carried
    word = (j | 0x3FF00000) - np.where(carried, 0x00100000, 0)
    x = (word << 32 | (x.view(np.int64) & 0xFFFFFFFF)).view(np.float64)
    return _log2_reduced(x, word, n.astype(np.float64), one_and_half)


def _log2_reduced(x: Floats, word: Ints, n: Floats, near: Bools) -> tuple[Floats, Floats]:
    l1, l2, l3, l4, l5, l6 = _L
    bp = np.where(near, _BP, 1.0)
    dp_high, dp_low = np.where(near, _DP_HIGH, 0.0), np.where(near, _DP_LOW, 0.0)
    u, v = x - bp, 1.0 / (x + bp)
    ss = u * v
    s_high = _upper(ss)
    middle = ((word >> 1) | 0x20000000) + 0x00080000 + np.where(near, 1 << 18, 0)
    t_high = (middle << 32).view(np.float64)
    t_low = x - (t_high - bp)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    s2 = ss * ss
    r = s2 * s2 * (l1 + s2 * (l2 + s2 * (l3 + s2 * (l4 + s2 * (l5 + s2 * l6)))))
    r = r + s_low * (s_high + ss)
    s2 = s_high * s_high
    t_high = _upper(3.0 + s2 + r)
    t_low = r - ((t_high - 3.0) - s2)
    u, v = s_high * t_high, s_low * t_high + t_low * ss
    p_high = _upper(u + v)
    p_low = v - (p_high - u)
    z_high, z_low = _CP_HIGH * p_high, _CP_LOW * p_high + p_low * _CP + dp_low
    t1 = _upper(((z_high + z_low) + dp_high) + n)
    return t1, z_low - (((t1 - n) - dp_high) - z_high)


def _exp2(low: Floats, top: Floats) -> Floats:
    """2 to the power of a sum."""
    z = low + top
    word = high(z)
    size = word & 0x7FFFFFFF
    large = size > 0x3FE00000
    k = np.where(large, (size >> 20) - 0x3FF, 0)
    moved = word + (0x00100000 >> (k + 1))
    k = np.where(large, ((moved & 0x7FFFFFFF) >> 20) - 0x3FF, 0)
    t = ((moved & ~(0x000FFFFF >> k)) << 32).view(np.float64)
    n = ((moved & 0x000FFFFF) | 0x00100000) >> (20 - k)
    n = np.where(large, np.where(word < 0, -n, n), 0)
    top = np.where(large, top - t, top)
    t = _upper(low + top)
    u = t * _LG2_HIGH
    v = (low - (t - top)) * _LG2 + t * _LG2_LOW
    z = u + v
    w = v - (z - u)
    t1 = exp_polynomial(z)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    return np.ldexp(z, n.astype(np.int32))

"""Numbers: whole ones in 64 bits that must not overflow, doubles as IEEE 754 and Java have them."""

import numpy as np

from millpond.kernels.columns import marked
from millpond.kernels.expressions.operand import Array
from millpond.kernels.expressions.strict import nothing_fails
from millpond.kernels.groups import Bools, Floats

_LEAST = np.int64(-(2**63))
_BOUND = 2.0**63

Checked = tuple[Array, Bools | None]
"""Results, and where they are wrong."""


def add(a: Array, b: Array) -> Checked:
    """The sum."""
    total = a + b
    return (total, nothing_fails(((a ^ total) & (b ^ total)) < 0)) if _whole(a) else (total, None)


def subtract(a: Array, b: Array) -> Checked:
    """The difference."""
    rest = a - b
    return (rest, nothing_fails(((a ^ b) & (a ^ rest)) < 0)) if _whole(a) else (rest, None)


def multiply(a: Array, b: Array) -> Checked:
    """The product; where doubles say that it may be too large, it is computed exactly."""
    product = a * b
    if not _whole(a):
        return product, None
    near = np.abs(a.astype(np.float64) * b) > 9.2e18
    if not near.any():
        return product, None
    left, right = np.broadcast_arrays(a, b)
    fails = near.copy()
    for row in marked(near):
        fails[row] = not -(2**63) <= int(left[row]) * int(right[row]) < 2**63
    return product, nothing_fails(fails)


def negate(a: Array) -> Checked:
    """The negative; the least whole number has none."""
    return -a, nothing_fails(a == _LEAST) if _whole(a) else None


def absolute(a: Array) -> Checked:
    """The absolute value."""
    return np.abs(a), nothing_fails(a == _LEAST) if _whole(a) else None


def divide(a: Floats, b: Floats) -> tuple[Floats, Bools]:
    """The quotient, which is defined unless the divisor is zero."""
    return a / b, b != 0


def remainder(a: Array, b: Array) -> tuple[Array, Bools]:
    """The remainder with the sign of the dividend; the divisors 0, 1 and -1 need no division."""
    if _whole(a):
        trivial = (b == 0) | (b == -1)
        return np.fmod(a, np.where(trivial, np.int64(1), b)), b != 0
    return np.fmod(a, b), b != 0


def ceiling(a: Array) -> Checked:
    """The smallest whole number not below."""
    return (a, None) if _whole(a) else _as_whole(np.ceil(a))


def floor(a: Array) -> Checked:
    """The largest whole number not above."""
    return (a, None) if _whole(a) else _as_whole(np.floor(a))


def _as_whole(a: Floats) -> Checked:
    """Doubles without fractions as whole numbers; NaN is 0, as in Java."""
    fits = (a >= -_BOUND) & (a < _BOUND)
    return np.where(fits, a, 0.0).astype(np.int64), nothing_fails(~fits & ~np.isnan(a))


def root(a: Floats) -> tuple[Floats, Bools]:
    """The square root, NULL below zero; NaN is above all numbers."""
    return np.sqrt(a), ~(a < 0)


def sign(a: Array) -> Checked:
    """-1, 0 or 1; NaN has no sign."""
    if _whole(a):
        return np.sign(a).astype(np.int32), None
    unsigned = np.isnan(a)
    return np.sign(np.where(unsigned, 0.0, a)).astype(np.int32), nothing_fails(unsigned)


def to_int(a: Array) -> Checked:
    """A BIGINT or DOUBLE as an INT, towards zero."""
    fits = (
        (a >= -(2**31)) & (a < 2**31)
        if _whole(a)
        else (np.floor(a) <= 2**31 - 1) & (np.ceil(a) >= -(2**31))
    )
    return np.where(fits, a, 0).astype(np.int32), nothing_fails(~fits)


def to_bigint(a: Floats) -> Checked:
    """A DOUBLE as a BIGINT, towards zero."""
    fits = (a < _BOUND) & (a >= -_BOUND)
    return np.where(fits, a, 0.0).astype(np.int64), nothing_fails(~fits)


def _whole(a: Array) -> bool:
    return a.dtype.kind == "i"

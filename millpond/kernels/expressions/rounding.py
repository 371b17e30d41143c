"""round: half away from zero, of the decimal number that a double is written as."""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np

from millpond.cql.expressions import Call, Literal
from millpond.kernels.columns import marked
from millpond.kernels.expressions.faults import Fault
from millpond.kernels.expressions.operand import Array, Operand
from millpond.kernels.expressions.strict import failing, nothing_fails, plain
from millpond.kernels.groups import Bools, Floats, Ints
from millpond.schema import Type

_EXACT = 2.0**52
_DIGITS = Context(prec=400)


def round_half_up(call: Call) -> Callable[..., Operand] | None:
    """round to the digits that the call names; only Spark cuts whole digits off a double.

    How a large double is written, on which that depends, is not the same in all Javas.
    """
    given = call.arguments[1] if len(call.arguments) > 1 else None
    digits = given.value if isinstance(given, Literal) and isinstance(given.value, int) else 0
    if call.type is Type.DOUBLE:
        return _of_value(plain(lambda a: _doubles(a, digits))) if digits >= 0 else None
    if digits >= 0:
        return lambda value, *_: value
    return _of_value(failing(lambda a: _whole(a, 10**-digits), Fault.ARITHMETIC_OVERFLOW))


def _of_value(function: Callable[..., Operand]) -> Callable[..., Operand]:
    return lambda value, *_: function(value)


def _whole(a: Ints, unit: int) -> tuple[Array, Bools | None]:
    rest = np.fmod(a, unit)
    cut = a - rest
    up = np.where(np.abs(rest) * 2 >= unit, np.sign(rest) * unit, 0)
    total = cut + up
    return total, nothing_fails(((cut ^ total) & (up ^ total)) < 0)


def _doubles(a: Floats, digits: int) -> Floats:
    """Where the product with a power of ten leaves no doubt, the quotient is the answer."""
    size = np.abs(a)
    unit = 10.0**digits
    scaled = size * unit
    below = np.floor(scaled)
    rest = scaled - below
    quotient = (below + (rest >= 0.5)) / unit
    result = np.where(quotient == 0, 0.0, np.copysign(quotient, a))
    doubtful = (np.abs(rest - 0.5) <= scaled * 2.0**-50) | (scaled >= _EXACT)
    whole = ~(size < _EXACT)  # also infinite, and NaN
    result = np.where(whole, a, result)
    for row in marked(doubtful & ~whole):
        result[row] = _decimal(float(a[row]), digits)
    return result


def _decimal(x: float, digits: int) -> float:
    step = Decimal(1).scaleb(-digits)
    return float(Decimal(repr(x)).quantize(step, ROUND_HALF_UP, _DIGITS)) + 0.0

"""Angles and other functions of doubles, value by value as the C library computes them."""

import math
from collections.abc import Callable

import numpy as np

from millpond.kernels.expressions.operand import Operand, Value
from millpond.kernels.expressions.rows import by_row, size
from millpond.kernels.expressions.strict import met, valid

Function = Callable[..., Operand]


def of_doubles(function: Callable[..., float]) -> Function:
    """A function of doubles; where it has no value it is NULL, and too large is infinite."""

    def computed(*numbers: float) -> float | None:
        if any(map(math.isnan, numbers)):
            return math.nan
        try:
            return function(*numbers)
        except ValueError:
            return None
        except OverflowError:
            return math.inf if numbers[0] > 0 else -math.inf

    def apply(*arguments: Value) -> Operand:
        found = by_row(computed, *arguments)
        rows = size(arguments)
        known = np.array([each is not None for each in found[:rows]], np.bool_)
        data = np.array([0.0 if each is None else each for each in found[:rows]], np.float64)
        mask = valid(*arguments)
        return Operand(data, known if mask is None else known & mask, met(*arguments))

    return apply


FUNCTIONS: dict[str, Function] = {
    "sin": of_doubles(math.sin),
    "cos": of_doubles(math.cos),
    "tan": of_doubles(math.tan),
    "asin": of_doubles(math.asin),
    "acos": of_doubles(math.acos),
    "atan": of_doubles(math.atan),
    "atan2": of_doubles(math.atan2),
    "sinh": of_doubles(math.sinh),
    "cosh": of_doubles(lambda x: math.cosh(abs(x))),
    "tanh": of_doubles(math.tanh),
    "degrees": of_doubles(math.degrees),
    "radians": of_doubles(math.radians),
    "cbrt": of_doubles(math.cbrt),
    "hypot": of_doubles(math.hypot),
}

"""Comparisons: NaN equals itself and is above all numbers, -0.0 equals 0.0, text by its bytes."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.expressions.faults import first_of
from millpond.kernels.expressions.logic import any_of, choose, null_like
from millpond.kernels.expressions.operand import Array, Operand, Text, Value, of_array
from millpond.kernels.expressions.strict import met, valid
from millpond.kernels.groups import Bools
from millpond.schema import Type

MANY = 4
"""From so many members on a list of constants is looked up in."""


def equal(a: Value, b: Value) -> Operand:
    """Whether the values are equal."""
    return _compare(a, b, pc.equal, _equal)


def unequal(a: Value, b: Value) -> Operand:
    """Whether the values differ."""
    return _compare(a, b, pc.not_equal, lambda x, y: ~_equal(x, y))


def less(a: Value, b: Value) -> Operand:
    """Whether the first is below the second."""
    return _compare(a, b, pc.less, _less)


def less_or_equal(a: Value, b: Value) -> Operand:
    """Whether the first is not above the second."""
    return _compare(a, b, pc.less_equal, lambda x, y: ~_less(y, x))


def greater(a: Value, b: Value) -> Operand:
    """Whether the first is above the second."""
    return _compare(a, b, pc.greater, lambda x, y: _less(y, x))


def greater_or_equal(a: Value, b: Value) -> Operand:
    """Whether the first is not below the second."""
    return _compare(a, b, pc.greater_equal, lambda x, y: ~_less(x, y))


def not_distinct(a: Value, b: Value) -> Operand:
    """Whether the values are equal or both NULL."""
    same = equal(a, b).true
    left, right = a.valid, b.valid
    if left is not None and right is not None:
        same = same | ~(left | right)
    return Operand(same, None, first_of(a.faults, b.faults))


def null_if(a: Value, b: Value) -> Value:
    """The first value unless the second equals it."""
    same = equal(a, b)
    return choose(Operand(same.true, None, same.faults), null_like(a), a)


def greatest(*values: Value) -> Value:
    """The largest value that is not NULL; of equal ones, the first."""
    return _extreme(values, greater)


def least(*values: Value) -> Value:
    """The smallest value that is not NULL; of equal ones, the first."""
    return _extreme(values, less)


def _extreme(values: tuple[Value, ...], better: Callable[[Value, Value], Operand]) -> Value:
    best = values[0]
    for value in values[1:]:
        wins = better(value, best).true
        if best.valid is not None:
            wins = wins | ~best.valid
        if value.valid is not None:
            wins = wins & value.valid
        faults = first_of(best.faults, value.faults)
        best = choose(Operand(wins, None, faults), value, best)
    return best


def _compare(
    a: Value, b: Value, of_text: Callable[..., pa.Array], of_arrays: Callable[[Array, Array], Bools]
) -> Operand:
    if isinstance(a, Text) and isinstance(b, Text):
        answer = of_array(pa.array(of_text(*_aligned(a, b))), Type.BOOLEAN)
        return Operand(answer.data, answer.valid, met(a, b))
    return Operand(of_arrays(a.data, b.data), valid(a, b), met(a, b))


def _aligned(a: Text, b: Text) -> tuple[pa.Array | pa.Scalar, pa.Array | pa.Scalar]:
    """Arrow repeats scalars, but no arrays of one element."""
    if len(a.data) == len(b.data):
        return a.data, b.data
    return (a.data[0], b.data) if len(a.data) == 1 else (a.data, b.data[0])


def _equal(a: Array, b: Array) -> Bools:
    same: Bools = a == b
    return same | ((a != a) & (b != b)) if a.dtype.kind == "f" else same


def _less(a: Array, b: Array) -> Bools:
    below: Bools = a < b
    return below | ((b != b) & (a == a)) if a.dtype.kind == "f" else below


def one_of(value: Value, *others: Value) -> Operand:
    """Whether the value equals one of the others, with three truth values."""
    if len(others) >= MANY and all(_is_known_constant(other) for other in others):
        return Operand(_found(value, others), value.valid, value.faults)
    return any_of(*(equal(value, other) for other in others))


def _is_known_constant(value: Value) -> bool:
    return len(value.data) == 1 and value.valid is None and value.faults is None


def _found(value: Value, constants: tuple[Value, ...]) -> Bools:
    """Which values are among some constants, looked up rather than compared one by one."""
    if isinstance(value, Text):
        among = pc.is_in(value.data, value_set=pa.concat_arrays([each.data for each in constants]))
        texts: Bools = among.to_numpy(zero_copy_only=False)
        return texts
    wanted = np.concatenate([each.data for each in constants])
    found: Bools = np.isin(value.data, wanted)
    return found | (value.data != value.data) if (wanted != wanted).any() else found

"""``bound``: estimates and bounds of answers from a sample, from the sums of what was kept."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.approximation.checks import Floats
from millpond.approximation.intervals.of_sums import answers_of
from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.expressions import Call, Literal
from millpond.errors import MillpondError
from millpond.kernels.expressions.operand import Value, of_array, to_array
from millpond.kernels.expressions.rows import size
from millpond.schema import Type

_WHOLE = {"low": np.floor, "certain_low": np.floor, "high": np.ceil, "certain_high": np.ceil}
_LARGEST = float(2**63 - 1024)
_ENDS = np.iinfo(np.int64)


def bound(call: Call) -> Callable[..., Value]:
    """How a call of ``bound`` is applied: its first arguments say what is asked for."""
    types = [argument.type for argument in call.arguments]

    def apply(*arguments: Value) -> Value:
        rows = size(arguments)
        pairs = zip(arguments[_SAID:], types[_SAID:], strict=True)
        columns = [to_array(value, type_, rows) for value, type_ in pairs]
        return of_array(bound_of(call, columns), call.type)

    return apply


_SAID = 3
"""So many arguments are constants: the kind of answer, the side, the risk."""


def bound_of(call: Call, columns: list[pa.Array]) -> pa.Array:
    """The column that a call asks for; where a sum is NULL it counts as nothing."""
    kind, side, risk = (_constant(each) for each in call.arguments[:_SAID])
    numbers = [_operand(column) for column in columns]
    found = answers_of(str(kind), numbers, float(risk)).side(str(side))
    if call.type is not Type.BIGINT:
        return pa.array(found, ARROW_TYPES[call.type], mask=np.isnan(found))
    return _whole_numbers(_WHOLE.get(str(side), np.rint)(found))


def _whole_numbers(found: Floats) -> pa.Array:
    """BIGINTs; what is beyond them is the last one."""
    is_none = np.isnan(found)
    inner = np.clip(np.where(is_none, 0, found), -_LARGEST, _LARGEST).astype(np.int64)
    whole = np.where(found > _LARGEST, _ENDS.max, np.where(found < -_LARGEST, _ENDS.min, inner))
    return pa.array(whole, mask=is_none)


def _constant(expression: object) -> str | float:
    if isinstance(expression, Literal) and isinstance(expression.value, str | float):
        return expression.value
    raise MillpondError(f"internal: {expression} is no constant")


def _operand(column: pa.Array) -> Any:
    """A column as numbers; landmarks are what they are."""
    return column.to_pylist() if pa.types.is_binary(column.type) else _numbers(column)


def _numbers(column: pa.Array) -> Floats:
    filled = column.cast(pa.float64(), safe=False).fill_null(0.0)
    return np.asarray(filled, dtype=np.float64)

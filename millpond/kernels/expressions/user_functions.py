"""Calls of the user's functions in expressions: what raises is a fault of its rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.expressions import UserCall
from millpond.functions.calls import Answers, FunctionCode
from millpond.functions.user_function import UserFunction
from millpond.kernels.expressions.attempts import attempt
from millpond.kernels.expressions.faults import Faults, first_of, own_fault
from millpond.kernels.expressions.operand import Value, of_array, to_array
from millpond.kernels.expressions.rows import size

_MOST_WORDS = 16
"""So many different errors of one call are told apart."""


def call_of(call: UserCall) -> Callable[..., Value]:
    """How a function of the user is applied to operands."""
    types = [argument.type for argument in call.arguments]

    def apply(*arguments: Value) -> Value:
        rows = size(arguments)
        pairs = zip(arguments, types, strict=True)
        columns = [to_array(attempt(value), type_, rows) for value, type_ in pairs]
        values, raised = answers(call.definition, columns)
        met = reduce(first_of, [argument.faults for argument in arguments])
        return replace(of_array(values, call.type), faults=first_of(met, _faults(rows, raised)))

    return apply


def _faults(rows: int, raised: dict[int, str]) -> Faults | None:
    if not raised:
        return None
    different = list(dict.fromkeys(raised.values()))[:_MOST_WORDS]
    numbers = {words: own_fault(words) for words in different}
    faults = np.zeros(rows, np.uint8)
    for row, words in raised.items():
        faults[row] = numbers.get(words, numbers[different[0]])
    return faults


def answers(function: UserFunction, columns: Sequence[pa.Array]) -> Answers:
    """What the function gives for the rows of its arguments' columns."""
    name, result = function.name, function.result
    called = FunctionCode(name, function.code, str(result), ARROW_TYPES[result])
    return function.processes.answers(called, list(columns))

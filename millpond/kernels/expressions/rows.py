"""Functions that Python computes row by row."""

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.kernels.expressions.operand import Text, Value
from millpond.kernels.expressions.strict import met


def by_row(function: Callable[..., Any], *arguments: Value) -> list[Any]:
    """The function of each row's values, None where one of them is NULL."""
    rows = size(arguments)
    columns = [_values(argument, rows) for argument in arguments]
    if all(argument.valid is None for argument in arguments):
        return [function(*values) for values in zip(*columns, strict=False)]
    return [None if None in values else function(*values) for values in zip(*columns, strict=False)]


def size(arguments: Iterable[Value]) -> int:
    """How many rows the operands have together; a constant has any number."""
    sizes = {len(argument.data) for argument in arguments}
    return sizes.pop() if len(sizes) == 1 else (sizes - {1}).pop()


def _values(argument: Value, rows: int) -> Iterable[Any]:
    if isinstance(argument, Text):
        values = argument.data.to_pylist()
    elif argument.valid is None:
        values = argument.data.tolist()
    else:
        data, valid = np.broadcast_arrays(argument.data, argument.valid)
        pairs = zip(data.tolist(), valid.tolist(), strict=True)
        values = [value if is_there else None for value, is_there in pairs]
    return repeat(values[0], rows) if len(values) == 1 else values


def text_of(answers: Iterable[str | None], *arguments: Value) -> Text:
    """Answers of a strict function as an operand."""
    return Text(pa.array(answers, pa.string()), met(*arguments))


def bytes_of(answers: Iterable[bytes | None], *arguments: Value) -> Text:
    """The same of a function that gives BINARYs."""
    return Text(pa.array(answers, pa.binary()), met(*arguments))

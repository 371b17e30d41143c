"""Calls of the user's functions: whole columns at once; halves, only to find the rows that raise.

What raises is a fault of its rows. An answer of another length or type than promised is no row's
fault, for the rows of one call depend on how pages are cut: it stops the query.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from millpond.connectors.arrow import ARROW_TYPES
from millpond.cql.expressions import UserCall
from millpond.errors import InputError
from millpond.kernels.expressions.attempts import attempt
from millpond.kernels.expressions.faults import Faults, first_of, own_fault
from millpond.kernels.expressions.operand import Value, of_array, to_array
from millpond.kernels.expressions.rows import size
from millpond.user_function import UserFunction

_MOST_WORDS = 16
"""So many different errors of one call are told apart."""


class Answers(NamedTuple):
    """What a function gives for some rows: values, and the words of the rows that raised."""

    values: pa.Array
    raised: dict[int, str]


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
    rows = len(columns[0])
    if rows == 0:
        return Answers(pa.array([], ARROW_TYPES[function.result]), {})
    if function.processes.are_wanted:
        return _answers_apart(function, columns)
    called = _loaded(function)
    try:
        values = called(*columns)
    except SystemExit as end:  # no row's fault, and nobody else's end
        raise InputError(f"function {function.name} has called sys.exit({end.code!r})") from None
    except Exception as error:  # noqa: BLE001 (whatever a function of the user may raise)
        if rows == 1:
            return Answers(pa.nulls(1, ARROW_TYPES[function.result]), {0: _words(function, error)})
    else:
        return Answers(_checked(function, values, rows), {})
    middle = rows // 2
    first = answers(function, [column[:middle] for column in columns])
    second = answers(function, [column[middle:] for column in columns])
    raised = first.raised | {row + middle: words for row, words in second.raised.items()}
    return Answers(pa.concat_arrays([first.values, second.values]), raised)


# -- apart -----------------------------------------------------------------------------------


def _answers_apart(function: UserFunction, columns: Sequence[pa.Array]) -> Answers:
    """What the function gives in a process of its own."""
    request = pickle.dumps((function, _packed(columns)))
    replied = pickle.loads(function.processes.call(function.name, request))  # noqa: S301 (ours)
    if isinstance(replied, str):
        raise InputError(replied)
    packed, raised = replied
    return Answers(_unpacked(packed)[0], raised)


def answered(request: bytes) -> bytes:
    """What such a process replies: the answers, or the words of what stops the query."""
    function, packed = pickle.loads(request)  # noqa: S301 (the engine's that has started it)
    try:
        values, raised = answers(function, _unpacked(packed))
    except InputError as error:
        return pickle.dumps(str(error))
    return pickle.dumps((_packed([values]), raised))


def _packed(columns: Sequence[pa.Array]) -> bytes:
    batch = pa.record_batch(list(columns), [str(place) for place in range(len(columns))])
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(buffer.getvalue())


def _unpacked(packed: bytes) -> list[pa.Array]:
    with pa.ipc.open_stream(packed) as reader:
        return list(reader.read_next_batch().columns)


# -- in this process -------------------------------------------------------------------------


def _loaded(function: UserFunction) -> Callable[..., Any]:
    try:
        return _unpickled(function.code)
    except Exception as error:
        raise InputError(
            f"{_words(function, error)}; it was sent as it is where it was registered, and cannot "
            "be read where it is needed: import what it uses inside it, and have that installed"
        ) from error


@lru_cache(maxsize=256)
def _unpickled(code: bytes) -> Callable[..., Any]:
    called: Callable[..., Any] = pickle.loads(code)  # noqa: S301 (the user's own, of this process)
    return called


def _words(function: UserFunction, error: Exception) -> str:
    said = str(error).strip().splitlines()
    return f"function {function.name}: {type(error).__name__}{': ' + said[0] if said else ''}"


def _checked(function: UserFunction, values: Any, rows: int) -> pa.Array:
    """The values, if they are what was promised."""
    wanted = ARROW_TYPES[function.result]
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array):
        raise InputError(
            f"function {function.name} gives {type(values).__name__}; it must give an Arrow array"
        )
    if len(values) != rows:
        raise InputError(
            f"function {function.name} gives {len(values)} values for {rows} rows; "
            "it must give one for each"
        )
    if pa.types.is_null(values.type):
        values = values.cast(wanted)
    if values.type != wanted:
        raise InputError(
            f"function {function.name} gives {values.type}, but was registered to give "
            f"{function.result}, which is {wanted}; cast its answer, or register it with its type"
        )
    return values

"""Calls of the user's functions: whole columns at once; halves, only to find the rows that raise.

What raises is a fault of its rows. An answer of another length or type than promised is no row's
fault, for the rows of one call depend on how pages are cut: it stops the query. As a program this
answers calls in a process of its own (`processes.py`), so it imports little.
"""

import os
import pickle
import struct
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import IO, Any, NamedTuple

import pyarrow as pa

from millpond.errors import InputError
from millpond.functions.stepping import stepped

_LENGTH = struct.Struct("<Q")


class FunctionCode(NamedTuple):
    """A function to be called, and what it is to give."""

    name: str
    code: bytes
    result: str
    arrow_type: pa.DataType
    is_kept: bool | None = None
    """Of an aggregate, whether it keeps a state; None if it is none."""


class Answers(NamedTuple):
    """What a function gives for some rows: values, and the words of the rows that raised."""

    values: pa.Array
    raised: dict[int, str]


def answers(function: FunctionCode, columns: Sequence[pa.Array]) -> Answers:
    """What the function gives for the rows of its arguments' columns."""
    rows = len(columns[0])
    if rows == 0:
        return Answers(pa.array([], function.arrow_type), {})
    called = _loaded(function)
    try:
        values = called(*columns)
    except SystemExit as end:  # no row's fault, and nobody else's end
        raise InputError(f"function {function.name} has called sys.exit({end.code!r})") from None
    except Exception as error:  # noqa: BLE001 (whatever a function of the user may raise)
        if rows == 1:
            return Answers(pa.nulls(1, function.arrow_type), {0: _words(function, error)})
    else:
        return Answers(_checked(function, values, rows), {})
    middle = rows // 2
    first = answers(function, [column[:middle] for column in columns])
    second = answers(function, [column[middle:] for column in columns])
    raised = first.raised | {row + middle: words for row, words in second.raised.items()}
    return Answers(pa.concat_arrays([first.values, second.values]), raised)


def _loaded(function: FunctionCode) -> Callable[..., Any]:
    try:
        loaded = _unpickled(function.code)
    except Exception as error:
        raise InputError(
            f"{_words(function, error)}; it was sent as it is where it was registered, and cannot "
            "be read where it is needed: import what it uses inside it, and have that installed"
        ) from error
    if function.is_kept is None:
        called: Callable[..., Any] = loaded
        return called
    return lambda *columns: stepped(loaded, bool(function.is_kept), function.arrow_type, columns)


@lru_cache(maxsize=256)
def _unpickled(code: bytes) -> Any:
    return pickle.loads(code)  # noqa: S301 (the user's own, of this process)


def _words(function: FunctionCode, error: Exception) -> str:
    said = str(error).strip().splitlines()
    return f"function {function.name}: {type(error).__name__}{': ' + said[0] if said else ''}"


def _checked(function: FunctionCode, values: Any, rows: int) -> pa.Array:
    """The values, if they are what was promised."""
    wanted = function.arrow_type
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


# -- in a process of its own -----------------------------------------------------------------


def request_of(function: FunctionCode, columns: Sequence[pa.Array]) -> bytes:
    """A call as bytes."""
    return pickle.dumps((tuple(function), _packed(columns)))


def answers_in(reply: bytes) -> Answers:
    """What a process has replied; raises what stops the query."""
    replied = pickle.loads(reply)  # noqa: S301 (a process that this one has started)
    if isinstance(replied, str):
        raise InputError(replied)
    packed, raised = replied
    return Answers(_unpacked(packed)[0], raised)


def reply_to(request: bytes) -> bytes:
    """The answers to a call, or the words of what stops the query."""
    function, packed = pickle.loads(request)  # noqa: S301 (the engine's that has started this)
    try:
        values, raised = answers(FunctionCode(*function), _unpacked(packed))
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


def write_message(pipe: IO[bytes], content: bytes) -> None:
    """Writes bytes with their length before them."""
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def read_message(pipe: IO[bytes]) -> bytes | None:
    """Reads what ``write_message`` has written; None if whoever writes has ended."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = pipe.read(length)
    return content if len(content) == length else None


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answers requests until there are no more."""
    while (request := read_message(requests)) is not None:
        write_message(replies, reply_to(request))


def main() -> None:
    """Answers what comes on standard input; what functions print goes to standard error."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    serve(os.fdopen(requests, "rb"), os.fdopen(replies, "wb"))


if __name__ == "__main__":
    main()

"""What can go wrong in a row, and the words for it: the same ones as for an error of Spark."""

from enum import IntEnum
from itertools import cycle

import numpy as np
import numpy.typing as npt

from millpond.errors import InputError
from millpond.kernels.columns import marked
from millpond.kernels.groups import Bools

Faults = npt.NDArray[np.uint8]
"""A ``Fault`` for each row, 0 where there is none."""


class Fault(IntEnum):
    """Kinds of faults; names are the first words of Spark's error conditions."""

    ARITHMETIC_OVERFLOW = 1
    CAST_OVERFLOW = 2
    CAST_INVALID_INPUT = 3
    DATETIME_OVERFLOW = 4
    INVALID_INDEX_OF_ZERO = 5
    INVALID_FORMAT = 6
    NUMERIC_VALUE_OUT_OF_RANGE = 7


WORDS = {
    Fault.ARITHMETIC_OVERFLOW: "a number leaves the range of its type; CAST what it is computed "
    "from to DOUBLE, or from INT to BIGINT",
    Fault.CAST_OVERFLOW: "a number does not fit the type it is cast to; CAST it to a wider one",
    Fault.CAST_INVALID_INPUT: "a text does not read as the type it is cast to",
    Fault.DATETIME_OVERFLOW: "a date or time leaves its range",
    Fault.INVALID_INDEX_OF_ZERO: "split_part counts parts from 1, or from -1 backwards; there is "
    "no part 0",
    Fault.INVALID_FORMAT: "a LIKE pattern escapes a character that needs no escape, or ends with "
    "the escape character",
    Fault.NUMERIC_VALUE_OUT_OF_RANGE: "a number has more digits than its DECIMAL; CAST it, or what "
    "it is computed from, to one with more digits before the point",
}

_NUMBERS = cycle(range(64, 256))
_OWN_WORDS: dict[int, str] = {}
"""What functions of the user have raised of late."""


def fault_where(rows: Bools, fault: Fault) -> Faults | None:
    """The fault in these rows; None if there are none."""
    return np.where(rows, np.uint8(fault), np.uint8(0)) if rows.any() else None


def first_of(first: Faults | None, second: Faults | None) -> Faults | None:
    """What is met first of two faults in a row."""
    if first is None or second is None:
        return second if first is None else first
    return np.where(first != 0, first, second)


def only(rows: Bools | None, faults: Faults | None) -> Faults | None:
    """The faults of those rows alone; ``rows`` None means all."""
    if faults is None or rows is None:
        return faults
    return np.where(rows, faults, np.uint8(0))


def own_fault(words: str) -> int:
    """The number of a fault that has words of its own; numbers come back after many others."""
    number = next(_NUMBERS)
    _OWN_WORDS[number] = words
    return number


def raise_first(faults: Faults | None) -> None:
    """Raises the fault of the first row that has one."""
    if faults is not None and faults.any():
        raise InputError(words_of(int(faults[marked(faults)[0]])))


def words_of(number: int) -> str:
    """What is said of a fault."""
    return _OWN_WORDS[number] if number in _OWN_WORDS else WORDS[Fault(number)]

"""What Spark says when data does not fit, in the user's words."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from millpond.errors import InputError, MillpondError, StateError, StoreError
from millpond.functions.processes import FunctionEndedError
from millpond.functions.user_function import UserFunction
from millpond.kernels.expressions import WORDS, Fault
from millpond.storage.faults import FULL

# PySpark logs every failure with the stacks of both sides before it raises it.
logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)

_BESIDE = re.compile(r"^\[[\w.]+\]\s*|\s*SQLSTATE: \w+$")
"""What Spark puts around its words."""

_STORE = re.compile(r"^millpond\.errors\.StoreError: (.*)$", re.MULTILINE)
"""What a worker says of the store."""

_WORDS = {fault.name: words for fault, words in WORDS.items()}


@contextlib.contextmanager
def in_plain_words(where: Callable[[], str]) -> Iterator[None]:
    """Turns what Spark raises inside into an error that names the place and the thing.

    ``where`` is called only when something is raised, because finding the place takes time.
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"{where()}: {error}") from error
    except (PySparkException, Py4JError) as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from error
        words = plain_words(error)
        if words is None:
            raise
        raise InputError(f"{where()}: {words}") from error


def in_words(error: BaseException | None, where: Callable[[], str]) -> MillpondError:
    """What a step raised, as an error that names the place and the thing."""
    try:
        with in_plain_words(where):
            raise error or StateError("a step came to no end")
    except InputError as said:
        return said
    except BaseException as raised:  # noqa: BLE001 (a failure of any kind stays where it is)
        words = str(raised).strip().splitlines()
        failure = StateError(f"{where()}: {type(raised).__name__}: {words[0] if words else ''}")
        failure.__cause__ = raised
        return failure


def store_trouble(error: BaseException | None) -> StoreError | None:
    """What is wrong with the store, where that is why a step, here or in a worker, has failed."""
    if isinstance(error, StoreError):
        return error
    said = _STORE.findall(str(error)) if isinstance(error, PySparkException) else ()
    if not said:
        return None
    full = any(os.strerror(number) in said[-1] for number in FULL)
    return StoreError(said[-1], errno.ENOSPC if full else None)


def has_ended_its_process(error: BaseException) -> bool:
    """Whether a function of the user has ended the process that it ran in, here or on Spark."""
    is_there = "Python worker exited unexpectedly" in str(error)
    return isinstance(error, FunctionEndedError) or is_there


def named_if_ended(
    error: BaseException | None, called: Iterable[UserFunction]
) -> BaseException | None:
    """The error of a step; one of a worker that has ended names the functions that ran in it."""
    if error is None or isinstance(error, InputError) or not has_ended_its_process(error):
        return error
    names = " or ".join(sorted({each.name for each in called})) or "of the user"
    return FunctionEndedError(
        f"function {names} has ended the Python worker of Spark's that it ran in"
    )


def _was_interrupted(error: BaseException) -> bool:
    """Whether it is what Spark says of a job that Ctrl-C has cancelled."""
    before = error.__context__
    return before is not None and (
        isinstance(before, KeyboardInterrupt) or _was_interrupted(before)
    )


def plain_words(error: PySparkException | Py4JError) -> str | None:
    """One sentence about an error of Spark; None if it is not about the data."""
    if isinstance(error, Py4JError):
        # Spark lets Java's own error through where a date or time overflows inside a function;
        # its message, "long overflow", is left out by code that Java has compiled.
        is_overflow = "java.lang.ArithmeticException" in str(error)
        return WORDS[Fault.DATETIME_OVERFLOW] if is_overflow else None
    known = _WORDS.get((error.getCondition() or "").split(".")[0])
    if known is not None:
        return known
    said = re.findall(r"^millpond\.errors\.InputError: (.*)$", str(error), re.MULTILINE)
    if said:  # by a worker
        return str(said[-1])
    lines = str(error).strip().splitlines()
    return _BESIDE.sub("", lines[0]) if lines else type(error).__name__

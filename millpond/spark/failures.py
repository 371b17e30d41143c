"""What Spark says when data does not fit, in the user's words."""

import contextlib
import errno
import logging
import os
import re
from collections.abc import Callable, Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from millpond.errors import InputError, MillpondError, StoreError
from millpond.execution.failures import CancelledStepError, has_ended_its_process
from millpond.kernels.expressions import WORDS, Fault
from millpond.spark.marks import was_cancelled
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


@contextlib.contextmanager
def meant() -> Iterator[None]:
    """Turns what Spark raises inside into the error that is meant by it, if it is one of ours."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        ours = _ours(error)
        if ours is None:
            raise
        raise ours from error


def _ours(error: PySparkException | Py4JError) -> MillpondError | None:
    if isinstance(error, PySparkException):
        trouble = _store_trouble(error)
        if trouble is not None:
            return trouble
    if has_ended_its_process(error):
        return None
    words = plain_words(error)
    if was_cancelled(error):
        return CancelledStepError(words or str(error))
    return None if words is None else InputError(words)


def _store_trouble(error: PySparkException) -> StoreError | None:
    """What is wrong with the store, where that is why a worker has failed."""
    said = _STORE.findall(str(error))
    if not said:
        return None
    full = any(os.strerror(number) in said[-1] for number in FULL)
    return StoreError(said[-1], errno.ENOSPC if full else None)


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

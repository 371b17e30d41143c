"""What Spark says when data does not fit, in the user's words."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from millpond.errors import InputError, MillpondError, StateError

# PySpark logs every failure with the stacks of both sides before it raises it.
logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)

_WORDS = {
    "ARITHMETIC_OVERFLOW": "a number leaves the range of its type; CAST what it is computed from "
    "to DOUBLE, or from INT to BIGINT",
    "CAST_OVERFLOW": "a number does not fit the type it is cast to; CAST it to a wider one",
    "CAST_INVALID_INPUT": "a text does not read as the type it is cast to",
    "DATETIME_OVERFLOW": "a date or time leaves its range",
}


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
        if isinstance(error, Py4JError):
            raise
        raise InputError(f"{where()}: {plain_words(error)}") from error


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


def _was_interrupted(error: BaseException) -> bool:
    """Whether it is what Spark says of a job that Ctrl-C has cancelled."""
    before = error.__context__
    return before is not None and (
        isinstance(before, KeyboardInterrupt) or _was_interrupted(before)
    )


def plain_words(error: PySparkException) -> str:
    """One sentence about an error of Spark."""
    known = _WORDS.get((error.getCondition() or "").split(".")[0])
    if known is not None:
        return known
    lines = str(error).strip().splitlines()
    return re.sub(r"^\[[\w.]+\]\s*", "", lines[0]) if lines else type(error).__name__

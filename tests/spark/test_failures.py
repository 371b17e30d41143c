"""What Spark raises, in the user's words."""

from __future__ import annotations

import errno
import os

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from millpond.errors import InputError, MillpondError, StoreError
from millpond.execution.failures import CancelledStepError
from millpond.kernels.expressions import WORDS, Fault
from millpond.spark.failures import in_plain_words, meant, plain_words


def raise_after(first: BaseException) -> None:
    try:
        raise first
    finally:
        raise Py4JError("the job was cancelled")


def test_a_job_that_was_interrupted_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), in_plain_words(lambda: "here"):
        raise_after(KeyboardInterrupt())


def test_a_job_that_failed_by_itself_is_none() -> None:
    with pytest.raises(Py4JError), in_plain_words(lambda: "here"):
        raise_after(ValueError())


@pytest.mark.parametrize("message", [": long overflow", ""])
def test_a_time_that_overflows_is_told_with_and_without_the_message_of_java(message: str) -> None:
    """Java leaves the message out of an error that compiled code throws often."""
    error = Py4JError(f"Caused by: java.lang.ArithmeticException{message}\n\tat java.base/...")
    assert plain_words(error) == WORDS[Fault.DATETIME_OVERFLOW]


def raised(error: Exception) -> BaseException:
    """What whoever executes a step sees of an error of Spark's."""
    with pytest.raises((MillpondError, PySparkException, Py4JError)) as caught, meant():
        raise error
    return caught.value


def test_what_a_step_raises_on_spark_is_one_of_our_errors() -> None:
    found = raised(PySparkException("millpond.errors.InputError: row 3 does not fit"))
    assert (type(found), str(found)) == (InputError, "row 3 does not fit")
    found = raised(PySparkException("[SPARK_JOB_CANCELLED] Job 5 cancelled SQLSTATE: XXKDA"))
    assert (type(found), str(found)) == (CancelledStepError, "Job 5 cancelled")


def test_a_store_that_is_full_for_a_worker_is_the_stores_trouble() -> None:
    full = os.strerror(errno.ENOSPC)
    found = raised(PySparkException(f"...\nmillpond.errors.StoreError: pages/7: {full}"))
    assert isinstance(found, StoreError)
    assert (str(found), found.errno) == (f"pages/7: {full}", errno.ENOSPC)


@pytest.mark.parametrize(
    "error",
    [PySparkException("Python worker exited unexpectedly"), Py4JError("connection refused")],
)
def test_what_says_nothing_of_the_data_stays_what_it_is(error: Exception) -> None:
    assert raised(error) is error

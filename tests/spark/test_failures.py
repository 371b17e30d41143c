"""What Spark raises, in the user's words."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from millpond.kernels.expressions import WORDS, Fault
from millpond.spark.failures import in_plain_words, plain_words


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

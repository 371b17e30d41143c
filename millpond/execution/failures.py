"""Why a step failed, in the user's words."""

from collections.abc import Callable, Iterable

from millpond.errors import InputError, MillpondError, StateError
from millpond.functions.processes import FunctionEndedError
from millpond.functions.user_function import UserFunction


class CancelledStepError(InputError):
    """The work of a step was cancelled."""


def in_words(error: BaseException | None, where: Callable[[], str]) -> MillpondError:
    """What a step raised, as an error that names the place and the thing."""
    raised = error or StateError("a step came to no end")
    said: MillpondError
    if isinstance(raised, InputError):
        said = InputError(f"{where()}: {raised}")
    else:
        words = str(raised).strip().splitlines()
        said = StateError(f"{where()}: {type(raised).__name__}: {words[0] if words else ''}")
    said.__cause__ = raised
    return said


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

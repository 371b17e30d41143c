"""Every error a user can meet, each naming the place, the thing and the way out."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Position:
    """A place in a script, counted from one."""

    line: int
    column: int


@dataclass(frozen=True)
class CqlWarning:
    """What a statement may say and its author has hardly meant, with its place and the way out.

    >>> str(CqlWarning("DISTINCT takes rows back", Position(3, 14)))
    'line 3, column 14: warning: DISTINCT takes rows back'
    """

    message: str
    position: Position

    def __str__(self) -> str:
        place = f"line {self.position.line}, column {self.position.column}"
        return f"{place}: warning: {self.message}"


class MillpondError(Exception):
    """The root of all errors raised on purpose; its text is meant for the user."""


class CqlError(MillpondError):
    """A fault in a CQL text, with its place.

    >>> str(CqlError('no stream "bids"', Position(3, 14)))
    'line 3, column 14: no stream "bids"'
    """

    def __init__(self, message: str, position: Position | None = None) -> None:
        self.message = message
        self.position = position
        place = f"line {position.line}, column {position.column}: " if position else ""
        super().__init__(place + message)


class InputError(MillpondError):
    """Data that does not fit its declaration; names the source and the place in it."""

    def __init__(self, message: str, column: str | None = None) -> None:
        self.column = column
        """The declared column at fault, where it is one."""
        super().__init__(message)


class OutgrownError(InputError):
    """A step whose output would take more memory than its share of the budget.

    ``until``: up to that time, which is earlier than its end, it should fit; None: nothing smaller
    is left than one instant, and its text says what that would take.
    """

    def __init__(self, message: str, until: int | None = None) -> None:
        super().__init__(message)
        self.until = until


class OutputError(MillpondError):
    """Results that cannot be written; names the query and the file."""


class MachineError(MillpondError):
    """The machine lacks something Millpond needs, such as a usable Java."""


class StateError(MillpondError):
    """A call that does not fit the engine's present state."""


class DamageError(StateError):
    """A store that is not as it was written, or is none; names file, place and way out."""


class StoreError(StateError):
    """A file of a store that cannot be written or read; names it and the way out."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        self.errno = errno
        """The system's number of what is wrong, where it has one."""
        super().__init__(message)


class UnforcedError(StoreError):
    """A file that could not be forced onto the disk: what the system says of it is in doubt."""


class InvariantError(MillpondError):
    """An engine whose parts do not agree with one another, which is a defect of Millpond.

    >>> str(InvariantError(["nobody reads op3"]))
    'the engine does not agree with itself, which is a defect of Millpond:\\n  nobody reads op3'
    """

    def __init__(self, complaints: Sequence[str]) -> None:
        self.complaints = tuple(complaints)
        """Where they do not."""
        said = "the engine does not agree with itself, which is a defect of Millpond:"
        super().__init__("\n  ".join([said, *complaints]))


class StrategyError(MillpondError):
    """A scheduling strategy that is unknown, set wrongly, or given a plan it cannot run."""

"""Errors as a user sees them: place, message, the line and a caret; never a Python traceback."""

import os
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass

from millpond.errors import CqlError, CqlWarning, MillpondError, Position

EXIT_ERROR = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


STDIN_SCRIPT = "<stdin>"
"""The name of a script that was read from standard input."""


@dataclass(frozen=True)
class Script:
    """A text and the name it goes by in messages."""

    name: str
    text: str


def describe_fault(error: MillpondError, script: Script | None = None) -> str:
    """The message for an error, with the line at fault where there is one.

    >>> from millpond.errors import Position
    >>> print(describe_fault(CqlError("no stream x", Position(1, 8)), Script("a.cql", "SELECT x")))
    a.cql:1:8: error: no stream x
      SELECT x
             ^
    """
    if not isinstance(error, CqlError) or error.position is None:
        return f"{script.name if script else 'millpond'}: error: {error}"
    return _at(error.position, f"error: {error.message}", script)


def describe_warning(warning: CqlWarning, script: Script) -> str:
    """The text for a warning, with the line it is about."""
    return _at(warning.position, f"warning: {warning.message}", script)


def warn(warnings: Iterable[CqlWarning], script: Script) -> None:
    """Prints warnings on stderr."""
    for each in warnings:
        sys.stderr.write(describe_warning(each, script) + "\n")
    sys.stderr.flush()


def _at(position: Position, text: str, script: Script | None) -> str:
    """A message for a place in a script, and the line there."""
    name = script.name if script else "<script>"
    line, column = position.line, position.column
    message = f"{name}:{line}:{column}: {text}"
    lines = script.text.splitlines() if script else []
    if not 0 < line <= len(lines):
        return message
    shown = lines[line - 1]
    return f"{message}\n  {shown}\n  {_space_before(shown, column)}^"


def report(error: BaseException, script: Script | None = None) -> int:
    """Prints an error on stderr and returns the exit code for it."""
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    if isinstance(error, MillpondError):
        sys.stderr.write(describe_fault(error, script) + "\n")
        return EXIT_ERROR
    if os.environ.get("MILLPOND_DEBUG"):
        traceback.print_exception(error)
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    sys.stderr.write(
        f"millpond: internal error: {type(error).__name__}: {first_line} "
        "(MILLPOND_DEBUG=1 shows where)\n"
    )
    return EXIT_INTERNAL


def _space_before(line: str, column: int) -> str:
    """Blanks up to a column that line up with the line above, tabs and all."""
    return "".join("\t" if character == "\t" else " " for character in line[: column - 1])

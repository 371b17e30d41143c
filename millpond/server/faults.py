"""What goes wrong, as HTTP says it: a status, a message, and the place in a text."""

from __future__ import annotations

from typing import Any

from millpond.errors import CqlError, MillpondError


class RequestError(Exception):
    """A request that is refused."""

    def __init__(self, status: int, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status, self.message, self.details = status, message, details

    def body(self) -> dict[str, Any]:
        """What the answer says."""
        return {"error": self.message, **self.details}


def not_found(message: str) -> RequestError:
    """Something that is asked for is not there."""
    return RequestError(404, message)


def of_engine(error: MillpondError, status: int = 400) -> RequestError:
    """What the engine refuses."""
    if isinstance(error, CqlError) and error.position is not None:
        line, column = error.position.line, error.position.column
        return RequestError(status, error.message, line=line, column=column)
    return RequestError(status, str(error))

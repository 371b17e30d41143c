"""What goes wrong, as HTTP says it: a status, a message, and the place in a text."""

from typing import Any

from millpond.errors import CqlError, MillpondError, StoreError


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
    """What the engine refuses; what the store does is not the fault of who asks."""
    status = 503 if _is_of_store(error) else status
    if isinstance(error, CqlError) and error.position is not None:
        line, column = error.position.line, error.position.column
        return RequestError(status, error.message, line=line, column=column)
    return RequestError(status, str(error))


def _is_of_store(error: BaseException | None) -> bool:
    """Whether an error is, or stems from, a file of the store."""
    while error is not None and not isinstance(error, StoreError):
        error = error.__cause__ or error.__context__
    return error is not None

"""What callers hand to the engine, checked before anything is done with it."""

from numbers import Integral
from typing import Any

from millpond.errors import StateError


def as_text(value: Any, what: str) -> str:
    """The value, if it is text that can be written as UTF-8.

    >>> as_text("S", "a name")
    'S'
    """
    if not isinstance(value, str):
        raise StateError(f"{what} is text, not {shown_value(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise StateError(
            f"{what} has half of a surrogate pair at character {error.start + 1}, which is no text"
        ) from None
    return value


def as_ticks(value: Any, what: str) -> int | None:
    """The value, if it is a time in ticks, or None."""
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or abs(int(value)) >= 2**63:
        raise StateError(
            f"{what} is a number of ticks of 64 bits, or None, not {shown_value(value)}"
        )
    return int(value)


def as_session(value: Any) -> Any:
    """The value, if it is a Spark session, or None; PySpark is not loaded for this."""
    if value is not None and not hasattr(value, "sparkContext"):
        raise StateError(f"spark is a SparkSession or None, not {shown_value(value)}")
    return value


def shown_value(value: Any) -> str:
    """The value as messages show it, whatever its own class makes of that."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 (a class of the user's, or a number too long to write)
        text = f"an object of {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


_SHOWN_CHARACTERS = 120

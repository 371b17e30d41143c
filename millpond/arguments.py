"""What callers hand to the engine, checked before anything is done with it."""

from __future__ import annotations

from typing import Any

from millpond.errors import StateError


def as_text(value: Any, what: str) -> str:
    """The value, if it is text.

    >>> as_text("S", "a name")
    'S'
    """
    if not isinstance(value, str):
        raise StateError(f"{what} is text, not {value!r}")
    return value

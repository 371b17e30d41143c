"""json_value: a number, text or truth value inside a text of JSON, as it is written there."""

import json
from collections.abc import Callable
from typing import Any

from millpond.cql.expressions import Call, Literal
from millpond.cql.json_paths import Step, steps_of
from millpond.kernels.expressions.operand import Text
from millpond.kernels.expressions.rows import by_row, text_of


def json_value(call: Call) -> Callable[..., Text]:
    """How a call is applied, whose path is a constant."""
    path = call.arguments[1]
    steps = (steps_of(str(path.value)) if isinstance(path, Literal) else None) or ()

    def apply(text: Text, *_: Any) -> Text:
        return text_of(by_row(lambda one: _found(one, steps), text), text)

    return apply


def _found(text: str, steps: tuple[Step, ...]) -> str | None:
    """What a path leads to; None if that is no single value, or the text no JSON."""
    try:
        value = json.loads(text, parse_float=str, parse_int=str, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return _whole(value) if isinstance(value, str) else None


def _refused(word: str) -> None:
    """NaN and Infinity, which Python reads, are no JSON."""
    raise ValueError(word)


def _whole(text: str) -> str | None:
    """The text, unless half of a surrogate pair stands in it, which no text has."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text

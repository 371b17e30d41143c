"""regexp_like, regexp_extract and regexp_replace, by RE2: the time grows with the text alone.

Both lowerings of expressions call what is here, and analysis to see whether it works.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from millpond.cql.expressions import Call, Literal

MOST_GROUPS = 8

Arrays = Callable[[pa.Array], pa.Array]


def fault_of(call: Call) -> str:
    """What is wrong with the pattern of a call and what goes with it; empty: nothing."""
    try:
        pc.match_substring_regex(pa.array([""]), _text(call, 1))
    except pa.ArrowInvalid as error:
        words = str(error).removeprefix("Invalid regular expression: ")
        return f"{call.function} cannot read its pattern: {words}"
    try:
        function_of(call)(pa.array([""]))
    except pa.ArrowInvalid:
        return f"this pattern of {call.function} has fewer groups than it is asked for"
    return ""


def function_of(call: Call) -> Arrays:
    """What a call makes of texts."""
    pattern = _text(call, 1)
    match call.function:
        case "regexp_like":
            return lambda texts: pc.match_substring_regex(texts, pattern)
        case "regexp_extract":
            group = _group(call, pattern)
            return lambda texts: _extracted(texts, pattern, group)
    replacement = _text(call, 2)
    return lambda texts: pc.replace_substring_regex(texts, pattern, replacement)


def _text(call: Call, position: int) -> str:
    argument = call.arguments[position]
    return str(argument.value) if isinstance(argument, Literal) else ""


def _group(call: Call, pattern: str) -> int:
    """Which group is asked for: the first, or all that matches if there is none."""
    if len(call.arguments) > 2:
        return int(_text(call, 2))
    try:
        _extracted(pa.array([""]), pattern, 1)
    except pa.ArrowInvalid:
        return 0
    return 1


def _extracted(texts: pa.Array, pattern: str, group: int) -> pa.Array:
    """A group of the first match, which takes the place of the whole text."""
    whole = rf"(?s)\A.*?((?-s:{pattern})).*\z"
    found = pc.replace_substring_regex(texts, whole, rf"\{group + 1}", max_replacements=1)
    return pc.if_else(pc.match_substring_regex(texts, pattern), found, pa.scalar(None, texts.type))

"""Named parameters: ``:limit`` in a text stands for a constant that is given beside it."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from millpond.cql.text.places import position_at
from millpond.errors import CqlError, Position, StateError
from millpond.spelling import suggestion

# Quoted texts and comments stand for themselves, and so does the :: of a cast.
_PIECE = re.compile(
    r"""--[^\n\r]* | /\*.*?(?:\*/|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z)
      | :: | :(?P<parameter>[^\W\d]\w*) | .""",
    re.VERBOSE | re.DOTALL,
)


def with_parameters(text: str, parameters: Mapping[str, Any]) -> str:
    """The text with constants written out in the place of parameters.

    >>> with_parameters("SELECT a FROM S WHERE a > :least AND s <> ':least'", {"least": 5})
    "SELECT a FROM S WHERE a > 5 AND s <> ':least'"
    """
    if not parameters:
        return text
    written = {name: written_out(name, value) for name, value in parameters.items()}
    used = set[str]()

    def replaced(piece: re.Match[str]) -> str:
        name = piece["parameter"]
        if name is None:
            return piece.group()
        if name not in written:
            place = position_at(text, Position(1, 1), piece.start())
            raise CqlError(f"no value for :{name}{suggestion(name, written)}", place)
        used.add(name)
        return written[name]

    filled = _PIECE.sub(replaced, text)
    unused = sorted(set(written) - used)
    if unused:
        raise StateError(f"the text has no :{unused[0]}, for which a value is given")
    return filled


def written_out(name: str, value: Any) -> str:
    """A value as a constant of CQL.

    >>> written_out("a", "it's"), written_out("a", -5), written_out("a", date(2024, 2, 29))
    ("'it''s'", '(-5)', "DATE '2024-02-29'")
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"({value})" if value < 0 else str(value)
        case float() if math.isfinite(value):
            return f"({value!r})" if math.copysign(1, value) < 0 else repr(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case list() | tuple() if value:
            return f"ARRAY[{', '.join(written_out(name, each) for each in value)}]"
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return f"TIMESTAMP '{moment}+00:00'"
        case date():
            return f"DATE '{value}'"
    raise StateError(
        f"parameter {name!r} is {value!r}; it can be a text, bytes, a finite number, TRUE or "
        "FALSE, a date, a datetime, None, or a list of some of them"
    )

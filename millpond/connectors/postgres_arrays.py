"""Arrays as PostgreSQL writes them: {1,NULL,"a b"}."""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}\\]+)|(\{\})', re.DOTALL)
_BOUNDS = re.compile(r"(?:\[-?\d+:-?\d+\])+=")
_QUOTED = re.compile(r"\\(.)", re.DOTALL)


def array_text(values: Sequence[Any] | None) -> str | None:
    r"""An ARRAY as the server reads it.

    >>> array_text([1, None, 'a"b', True, b"\xca"])
    '{"1",NULL,"a\\"b","t","\\\\xca"}'
    """
    if values is None:
        return None
    return "{" + ",".join("NULL" if each is None else _quoted(each) for each in values) + "}"


def _quoted(value: Any) -> str:
    text = _text(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, date) else str(value)


def elements_of(text: str | None) -> list[str | None] | None:
    r"""The texts of the elements of an array that the server has written.

    >>> elements_of('{1,NULL,"NULL","a\\"b"}'), elements_of("[0:1]={1,2}"), elements_of("{}")
    (['1', None, 'NULL', 'a"b'], ['1', '2'], [])
    """
    if text is None:
        return None
    inner = _BOUNDS.sub("", text, count=1)[1:-1]
    if "{" in _PIECE.sub("", inner):
        raise ValueError(text)
    return [_element(*piece.group(1, 2)) for piece in _PIECE.finditer(inner)]


def _element(quoted: str | None, plain: str | None) -> str | None:
    if quoted is not None:
        return _QUOTED.sub(r"\1", quoted)
    return None if plain == "NULL" else plain

"""Python values as those of a declared type, where nothing is lost."""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.connectors.base64_texts import of_base64_text
from millpond.connectors.nested import outside_type
from millpond.connectors.pandas_there import is_absent, is_moment, python_moment
from millpond.schema import Type


def converted(value: Any, to: Type) -> Any:
    """The value as Arrow takes it; raises a TypeError, a ValueError, an OverflowError or an
    InvalidOperation if it is none of the type.

    >>> converted(2.0, Type.INT), converted(("1.5", None), Type.array(Type.decimal(3, 1)))
    (2, [Decimal('1.5'), None])
    """
    if value is None or is_absent(value):
        return None
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    if to.is_nested:
        if isinstance(value, str):  # of JSON, as CSV has it
            return nested_of_text(value, to)
        return _nested(value, to)
    return _CONVERSIONS[to.family](value)


def _nested(value: Any, to: Type) -> Any:
    if to.is_array:
        return [_part(each, to.element) for each in _elements(value)]
    if not isinstance(value, Mapping):
        raise TypeError
    if to.is_map:
        pairs = [(_key(key, to.key), _part(each, to.element)) for key, each in value.items()]
        if any(key is None for key, _ in pairs):
            raise TypeError
        return pairs
    named = {str(name).lower(): each for name, each in value.items()}
    if len(named) < len(value):
        raise TypeError  # two values for one field
    return {f.name: _part(named.get(f.name.lower()), f.type) for f in to.fields}


def nested_of_text(text: str, to: Type) -> Any:
    """An ARRAY, STRUCT or MAP of a text of JSON; raises one of ``NOT_NESTED``."""
    numbers = Decimal if "DECIMAL" in to.value else None
    found = converted(json.loads(text, parse_float=numbers, parse_constant=_refused), to)
    _ = pa.scalar(found, outside_type(to))  # raises where a number is too large
    return found


def _refused(word: str) -> None:
    """NaN and Infinity, which Python reads, are no JSON."""
    raise ValueError(word)


NOT_NESTED = (
    TypeError,
    ValueError,
    OverflowError,
    InvalidOperation,
    RecursionError,
    UnicodeEncodeError,
    pa.ArrowException,
)
"""What reading a text, or having Arrow take its elements, raises."""


def _elements(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        value = list(value)
    if not isinstance(value, list | tuple):
        raise TypeError
    return list(value)


def _key(value: Any, to: Type) -> Any:
    """A key of a MAP; those of JSON are texts."""
    if isinstance(value, str) and to in (Type.BOOLEAN, Type.INT, Type.BIGINT):
        value = json.loads(value)
    return converted(value, to)


def _part(value: Any, to: Type) -> Any:
    """A value within another; JSON has texts for the doubles that are no numbers to it."""
    is_word = to is Type.DOUBLE and isinstance(value, str)
    return converted(_SPECIAL.get(value, value) if is_word else value, to)


_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | Decimal)
        or value != int(value)
    ):
        raise TypeError
    return int(value)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise TypeError
    return Decimal(repr(value) if isinstance(value, float) else value)


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError
    return float(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):  # as JSON has it
        value = of_base64_text(value.strip())
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError
    return bytes(value)


def _date(value: Any) -> date:
    if isinstance(value, str) and _ISO_DATE.fullmatch(value.strip()):
        return date.fromisoformat(value.strip())
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError
    return value


def _timestamp(value: Any) -> datetime:
    if isinstance(value, str) and _ISO_TIME.fullmatch(value.strip()):
        value = datetime.fromisoformat(value.strip())
    elif isinstance(value, np.datetime64) or is_moment(value):
        value = python_moment(value)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, datetime.min.time())
    if not isinstance(value, datetime):
        raise TypeError
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _null(value: Any) -> None:
    if not (isinstance(value, float) and math.isnan(value)):
        raise TypeError


_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ISO_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
"""As files have them: Python alone reads more, such as weeks, and much that is none."""

_CONVERSIONS: dict[Type, Callable[[Any], Any]] = {
    Type.BOOLEAN: _boolean,
    Type.INT: _integer,
    Type.BIGINT: _integer,
    Type.DECIMAL: _decimal,
    Type.DOUBLE: _double,
    Type.STRING: _string,
    Type.BINARY: _bytes,
    Type.DATE: _date,
    Type.TIMESTAMP: _timestamp,
    Type.NULL: _null,
}

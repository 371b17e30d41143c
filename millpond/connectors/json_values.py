"""Values as JSON has them: times as ISO text, and no numbers that JSON lacks."""

import json
import math
from base64 import b64encode
from datetime import date
from decimal import Decimal
from typing import Any


def json_value(value: Any) -> Any:
    r"""A value as ``json.dumps`` takes it.

    A DECIMAL is a text: who reads a number of JSON may know no more of it than a double. A BINARY
    is in base64.

    >>> json_value(float("inf")), json_value(date(2026, 1, 2)), json_value(Decimal("1.50"))
    ('Infinity', '2026-01-02', '1.50')
    >>> json_value(b"\xca\xfe")
    'yv4='
    """
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if isinstance(value, dict):
        return {_key(key): json_value(each) for key, each in value.items()}
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, date):  # a datetime is a date too
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _key(key: Any) -> str:
    """A key of a MAP, or the name of a field."""
    found = json_value(key)
    return json.dumps(found) if isinstance(found, bool | int) else str(found)


def json_nested(value: list[Any] | dict[Any, Any]) -> str:
    """An ARRAY, STRUCT or MAP as a text of JSON, which formats have that know no such values.

    >>> json_nested([1.5, None, float("nan")]), json_nested({True: [date(2026, 1, 2)]})
    ('[1.5,null,"NaN"]', '{"true":["2026-01-02"]}')
    """
    return json.dumps(json_value(value), ensure_ascii=False, separators=(",", ":"))

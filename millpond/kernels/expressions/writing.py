"""Dates and times as text."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.expressions.dates import DAY, day, days_of, month, year
from millpond.kernels.expressions.operand import Array, Operand, Text, to_array
from millpond.kernels.groups import Bools
from millpond.schema import Type

_FIRST, _LAST = -719_162, 2_932_896
"""The days of the years with four digits that Arrow writes as well."""


def date_text(value: Operand) -> Text:
    """DATEs as text."""
    usual = _is_usual(value.data, value.valid)
    written = pc.cast(to_array(value, Type.DATE, len(value.data)), pa.string()) if usual else None
    return Text(_rows(value, _dates(value.data)) if written is None else written, value.faults)


def time_text(value: Operand) -> Text:
    """TIMESTAMPs as text, without the zeros that end a fraction."""
    days = days_of(value.data)
    if _is_usual(days, value.valid):
        written = pc.cast(to_array(value, Type.TIMESTAMP, len(value.data)), pa.string())
        return Text(pc.replace_substring_regex(written, r"\.?0+$", ""), value.faults)
    clocks = map(_clock, (value.data - days * DAY).tolist())
    texts = map(" ".join, zip(_dates(days.astype(np.int32)), clocks, strict=True))
    return Text(_rows(value, list(texts)), value.faults)


def _is_usual(days: Array, valid: Bools | None) -> bool:
    usual = (days >= _FIRST) & (days <= _LAST)
    return bool((usual if valid is None else usual | ~valid).all())


def _rows(value: Operand, texts: list[str]) -> pa.Array:
    mask = None if value.valid is None else ~value.valid
    return pa.array(np.array(texts, dtype=object), pa.string(), mask=mask)


def _dates(days: Array) -> list[str]:
    parts = zip(year(days).tolist(), month(days).tolist(), day(days).tolist(), strict=True)
    return [f"{_year(y)}-{m:02}-{d:02}" for y, m, d in parts]


def _year(number: int) -> str:
    sign = "-" if number < 0 else "+" if number > 9999 else ""
    return f"{sign}{abs(number):04}"


def _clock(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text

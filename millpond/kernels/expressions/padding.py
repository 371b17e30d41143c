"""Texts filled up or cut to a length, as long as memory holds them."""

import numpy as np
import pyarrow.compute as pc

from millpond.errors import InputError
from millpond.kernels.expressions.operand import Operand, Text
from millpond.kernels.expressions.rows import by_row, size, text_of
from millpond.kernels.expressions.strict import valid

MOST_CHARACTERS = 2**28
"""So many characters may lpad and rpad put into one column of a page."""


def pad_left(text: Text, width: Operand, padding: Text) -> Text:
    """Filled up on the left, or cut, to a length."""
    _within_memory(text, width, padding)
    answers = by_row(lambda t, n, p: _padding(t, n, p) + t[: max(n, 0)], text, width, padding)
    return text_of(answers, text, width, padding)


def pad_right(text: Text, width: Operand, padding: Text) -> Text:
    """Filled up on the right, or cut, to a length."""
    _within_memory(text, width, padding)
    answers = by_row(lambda t, n, p: t[: max(n, 0)] + _padding(t, n, p), text, width, padding)
    return text_of(answers, text, width, padding)


def _within_memory(text: Text, width: Operand, padding: Text) -> None:
    """Refuses a page of texts that no memory holds: a width is a number like any other."""
    rows = size((text, width, padding))
    given = valid(text, width, padding)
    widths = np.maximum(width.data if given is None else np.where(given, width.data, 0), 0)
    filled = np.where(pc.fill_null(pc.not_equal(padding.data, ""), False), widths, 0)
    total = int(filled.astype(np.float64).sum()) * (rows if len(filled) == 1 else 1)
    if total > MOST_CHARACTERS:
        raise InputError(
            f"lpad or rpad would fill up {rows} rows with {total:,} characters, more than "
            f"{MOST_CHARACTERS:,}; give a smaller length"
        )


def _padding(text: str, width: int, padding: str) -> str:
    missing = width - len(text)
    if missing <= 0 or not padding:
        return ""
    return (padding * (missing // len(padding) + 1))[:missing]

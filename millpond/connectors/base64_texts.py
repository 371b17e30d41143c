"""BINARYs in base64, where a format has texts only: CSV, JSON, and what people read."""

import binascii
import re
from base64 import b64decode, b64encode

import pyarrow as pa

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def of_base64_text(text: str) -> bytes | None:
    """The bytes of a text in base64; None of other texts.

    >>> of_base64_text("yv4="), of_base64_text("yv4"), of_base64_text("")
    (b'\\xca\\xfe', None, b'')
    """
    try:
        return b64decode(text) if _BASE64.fullmatch(text) else None
    except binascii.Error:
        return None


def base64_column(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """BINARYs as texts."""
    values = column.to_pylist()
    return pa.array([None if v is None else b64encode(v).decode() for v in values], pa.string())


def of_base64_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as BINARYs; raises ``ArrowInvalid`` if one is not in base64."""
    found = [None if text is None else _read(text) for text in column.to_pylist()]
    return pa.chunked_array([pa.array(found, pa.binary())])


def _read(text: str) -> bytes:
    found = of_base64_text(text.strip())
    if found is None:
        raise pa.ArrowInvalid(f"{text!r} is not in base64")
    return found

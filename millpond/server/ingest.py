"""Bodies of requests as rows: JSON lines, a JSON list, CSV with a header, or Arrow."""

import hashlib
import io
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.csv

from millpond.connectors.arrow import arrow_schema, conform
from millpond.connectors.csv_records import records
from millpond.connectors.nested import outside_table
from millpond.errors import InputError
from millpond.schema import Schema
from millpond.server.arrow_body import arrow_table
from millpond.server.faults import RequestError
from millpond.spelling import suggestion

ARROW = ("application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file")
JSON_LINES = ("application/x-ndjson", "application/jsonl", "application/json-lines", "text/plain")


def rows_of_body(body: bytes, content_type: str, schema: Schema, most_bytes: int) -> Any:
    """What `Engine.push` takes; raises ``InputError`` with the line at fault.

    What a row of JSON has no key for is NULL, as in files. What unpacks to more than
    ``most_bytes`` is refused with 413.
    """
    kind = content_type.split(";", maxsplit=1)[0].strip().lower()
    if kind in ARROW:
        return arrow_table(body, schema, most_bytes)
    if kind == "text/csv":
        return _csv(body, schema)
    if kind == "application/json":
        return [_with_absent(row, schema) for row in _json_list(body, schema.has_decimals)]
    if kind in JSON_LINES or not kind:
        return [_with_absent(row, schema) for row in _json_lines(body, schema.has_decimals)]
    raise RequestError(
        415, f"{kind[:60]}: send application/x-ndjson, application/json, text/csv or Arrow"
    )


def _csv(body: bytes, schema: Schema) -> pa.Table:
    """The rows of a text with a header; cells are read as those of a file are."""
    header = next(records(body, b","), None)
    if header is None:
        return outside_table(arrow_schema(schema).empty_table(), schema.types)
    names = [cell.decode(errors="replace").strip() for cell in header.cells]
    known = {name.lower() for name in schema.names}
    for name in names:
        if name.lower() not in known:
            fault = f"column {name[:100]} is not declared{suggestion(name, schema.names)}"
            raise InputError(f"CSV, line 1: {fault}")
    rest = body[header.end :]
    if not rest.strip(b"\r\n"):
        return outside_table(arrow_schema(schema).empty_table(), schema.types)
    try:
        table = pyarrow.csv.read_csv(io.BytesIO(rest), *_as_text(names))
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"CSV: {error}") from None

    def where(row: int) -> str:
        record = next(islice(records(rest, b","), row, None))
        return f"CSV, line {header.last_line + record.last_line}"

    return outside_table(conform(table, schema, where, read_text=True), schema.types)


def _as_text(names: list[str]) -> tuple[Any, Any, Any]:
    """How Arrow reads all columns as text: an empty cell is NULL, a quoted one an empty text."""
    return (
        pyarrow.csv.ReadOptions(column_names=names),
        pyarrow.csv.ParseOptions(newlines_in_values=True),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _json_list(body: bytes, exact: bool) -> list[Any]:
    rows = _loads(body, "the body", exact)
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise InputError("the body is no list of rows, nor a row")
    return [_row(row, f"row {number}") for number, row in enumerate(rows, start=1)]


def _json_lines(body: bytes, exact: bool) -> list[Any]:
    return [
        _row(_loads(line, f"line {number}", exact), f"line {number}")
        for number, line in enumerate(body.split(b"\n"), start=1)
        if line.strip()
    ]


def _loads(text: bytes, place: str, exact: bool) -> Any:
    """The value of a text; ``exact``: numbers with a point keep all their digits."""
    try:
        return json.loads(text, parse_float=Decimal if exact else None)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{place}: this is no JSON: {reason}") from None


def _row(value: Any, place: str) -> Any:
    if not isinstance(value, dict | list):
        raise InputError(f"{place}: a row is an object, or a list of values in order")
    return value if isinstance(value, dict) else tuple(value)


def _with_absent(row: Any, schema: Schema) -> Any:
    """A row with NULL for the columns that it has no key for; what is not declared stays in it.

    >>> from millpond.schema import Field, Type
    >>> _with_absent({"B": 1}, Schema((Field("a", Type.INT), Field("b", Type.INT))))
    {'a': None, 'B': 1}
    """
    if isinstance(row, tuple) or len(row) >= len(schema):
        return row
    there = {key.lower() for key in row}
    return {name: None for name in schema.names if name.lower() not in there} | row


class IdempotencyKeys:
    """The keys of requests that were done, with what they were about."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._digests: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def used(self, target: str, key: str, body: bytes) -> Iterator[str]:
        """The key as the engine remembers it; refused if it was used for something else.

        What is refused inside has not used it: a corrected body may come with the same key.
        """
        if not 1 <= len(key) <= 200 or not key.isprintable():
            raise RequestError(400, "Idempotency-Key: 1 to 200 printable characters")
        whole = f"{target.lower()}/{key}"
        digest = hashlib.sha256(body).hexdigest()[:32]
        is_first = self._take(whole, digest)
        try:
            yield f"{whole}/{digest}"
        except BaseException:
            if is_first:
                with self._lock:
                    self._digests.pop(whole, None)
            raise

    def _take(self, whole: str, digest: str) -> bool:
        """Whether a key is new; it is taken from now on."""
        with self._lock:
            is_first = whole not in self._digests
            known = self._digests.setdefault(whole, digest)
            while len(self._digests) > self._most:
                self._digests.popitem(last=False)
        if known != digest:
            raise RequestError(409, "this Idempotency-Key was used with another body")
        return is_first

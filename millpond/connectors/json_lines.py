"""Files of JSON lines, read and written.

An absent key is NULL and an undeclared one is skipped. Times are ISO text. Results are written as
`{"ts": …, "weight": …, "row": {…}}`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

from millpond.connectors.arrow import RowPosition, conform
from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.encoding import is_utf8, not_utf8
from millpond.connectors.files import LONG_BYTES, Block, Blocks
from millpond.connectors.followed_files import FollowedFiles, is_followed
from millpond.connectors.json_text import json_results
from millpond.connectors.rows import rows_to_arrow
from millpond.connectors.sinks import Results, TextSink
from millpond.connectors.sources import Declaration, files_of
from millpond.connectors.text_files import TextFiles
from millpond.errors import InputError
from millpond.schema import Schema, Type


def source(
    declaration: Declaration, file: str, *, follow: bool = False
) -> JsonSource | FollowedFiles:
    """Reads a file, the ``.json`` and ``.jsonl`` files of a directory, or those of a pattern; with
    ``follow`` as they grow."""
    suffixes = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz")
    if is_followed(declaration, follow):
        return FollowedFiles(declaration, file, JsonSource(declaration, []), *suffixes)
    return JsonSource(declaration, files_of(declaration, file, *suffixes))


def sink(results: Results, file: str, *, append: bool = False) -> JsonSink:
    """Writes one JSON object a result."""
    return JsonSink(results, file, append)


class JsonSource(TextFiles):
    """The objects of files, one a line."""

    def __init__(self, declaration: Declaration, files: list[Path]) -> None:
        super().__init__(declaration, Blocks(files, self.end_of_records))

    def end_of_records(self, text: bytes) -> int:
        """How much of a text is whole lines."""
        return text.rfind(b"\n") + 1

    def end_of(self, block: Block, record: int) -> int:
        """How many bytes of a block come before the end of a line with something on it."""
        number, _ = next(itertools.islice(_numbered_lines(block), record, None))
        count = number - block.lines_before
        lines = block.content.split(b"\n", count)
        return len(block.content) - (len(lines[-1]) if len(lines) > count else 0)

    def _table(self, block: Block) -> tuple[pa.Table, RowPosition]:
        def where(row: int) -> str:
            number, _ = next(itertools.islice(_numbered_lines(block), row, None))
            return f"{block.name}, line {number}"

        return JsonLines(self._declaration.schema).table(block, where), where

    def _records(self, block: Block) -> list[Block]:
        return [
            Block(block.name, line + b"\n", number - 1) for number, line in _numbered_lines(block)
        ]


@dataclass(frozen=True)
class JsonLines:
    """Makes a table of lines of JSON."""

    schema: Schema

    def table(self, block: Block, where: RowPosition) -> pa.Table:
        """The rows of a block; ``where`` names their places."""
        try:
            return self._read_at_once(block, where)
        except _NOT_AT_ONCE:
            return self._read_by_line(block, where)  # which takes more, or names the fault

    def _read_at_once(self, block: Block, where: RowPosition) -> pa.Table:
        """By Arrow; raises if there is anything in the block that Arrow takes otherwise."""
        if _NULL_LINE.search(block.content) or self._has_objects:
            raise ValueError
        options = self._parse_options(block.content.lstrip().partition(b"\n")[0])
        table = pyarrow.json.read_json(
            pa.BufferReader(block.content),
            pyarrow.json.ReadOptions(
                use_threads=len(block.content) > LONG_BYTES,
                block_size=max(len(block.content), LONG_BYTES),
            ),
            options,
        )
        table.validate(full=True)  # Arrow takes text that is not UTF-8
        if table.num_rows != sum(1 for _ in _numbered_lines(block)) or self._has_other_spellings(
            block.content, table
        ):
            raise ValueError
        return conform(table, self.schema, where)

    @property
    def _has_objects(self) -> bool:
        """Whether a column has STRUCTs or MAPs: Arrow reads no maps, and names in one case only."""
        return any("STRUCT<" in str(each) or "MAP<" in str(each) for each in self.schema.types)

    def _parse_options(self, first_line: bytes) -> pyarrow.json.ParseOptions:
        """Reads the declared columns, their names written as in the first line."""
        spellings = {key.lower(): key for key in _parsed(first_line or b"{}")}
        fields = [
            pa.field(
                spellings.get(f.name.lower(), f.name),
                _as_in_json(f.type),
            )
            for f in self.schema.fields
        ]
        return pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
        )

    def _has_other_spellings(self, content: bytes, table: pa.Table) -> bool:
        """Whether a column with NULLs is written in another way on other lines."""
        return any(
            key != name.encode()
            for name, column in zip(table.column_names, table.columns, strict=True)
            if column.null_count
            for key in set(_key(name.encode()).findall(content))
        )

    def _read_by_line(self, block: Block, where: RowPosition) -> pa.Table:
        lines = enumerate(_numbered_lines(block))
        exact = self.schema.has_decimals
        rows = [_object(partial(where, row), line, exact) for row, (_, line) in lines]
        return rows_to_arrow(rows, self.schema, where, lenient=True)


def _as_in_json(type_: Type) -> pa.DataType:
    """How Arrow reads values of a type: times and bytes are texts."""
    if type_.is_array:
        return pa.list_(_as_in_json(type_.element))
    is_text = type_ in (Type.TIMESTAMP, Type.DATE, Type.BINARY)
    return pa.string() if is_text else ARROW_TYPES[type_]


class JsonSink(TextSink):
    """Results as lines of JSON."""

    def write(self, table: pa.Table) -> None:
        """Adds results."""
        lines = (json.dumps(result, ensure_ascii=False) for result in json_results(table))
        self.append_text("".join(f"{line}\n" for line in lines).encode())


_NOT_AT_ONCE = (
    AttributeError,
    InputError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowNotImplementedError,
)
_NULL_LINE = re.compile(rb"^[ \t\r]*null", re.MULTILINE)
"""Arrow reads it as an object without keys, and as the first line it ends the process."""


def one_line(value: bytes, row: int, where: RowPosition) -> bytes:
    """A JSON text in one line."""
    if not value.strip():
        raise InputError(f"{where(row)}: an empty value is no JSON")
    if b"\n" in value and any(b"\n" in text for text in _JSON_STRING.findall(value)):
        raise InputError(f"{where(row)}: no JSON: a string goes over the end of a line")
    return value.replace(b"\n", b" ")


_JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _numbered_lines(block: Block) -> Iterator[tuple[int, bytes]]:
    """The lines with something on them, and their numbers in the file."""
    for number, line in enumerate(block.content.split(b"\n"), start=block.lines_before + 1):
        if line.strip():
            yield number, line


@cache
def _key(name: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'"(' + re.escape(name) + rb')"[ \t]*:', re.IGNORECASE)


def _object(where: Callable[[], str], line: bytes, exact: bool) -> dict[str, Any]:
    """The object of a line; ``where`` is asked only if there is a fault."""
    try:
        row = _parsed(line, exact)
    except UnicodeDecodeError as error:
        raise _not_utf8(where(), line, error) from None
    except json.JSONDecodeError as error:
        raise InputError(f"{where()}, character {error.colno}: no JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{where()}: arrays or objects too deep in each other") from None
    except ValueError as error:
        raise InputError(f"{where()}: {error}") from None
    if not isinstance(row, _Object):
        raise InputError(f"{where()}: a JSON object is wanted, one a line, not {_kind(row)}")
    if row.repeated:
        raise InputError(f"{where()}: the key {row.repeated[0]} is there twice")
    return row


def _parsed(line: bytes, exact: bool = False) -> Any:
    """The value of a line; ``exact``: numbers with a point keep all their digits."""
    numbers = Decimal if exact else None
    return json.loads(line.decode(), object_pairs_hook=_Object, parse_float=numbers)


class _Object(dict[str, Any]):
    """A JSON object that knows which of its keys are there more than once."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        keys = [key for key, _ in pairs]
        self.repeated = [] if len(self) == len(keys) else [k for k in self if keys.count(k) > 1]


def _not_utf8(where: str, line: bytes, error: UnicodeDecodeError) -> InputError:
    """Names the key of the first value that is no text, where the line is JSON otherwise."""
    try:
        row = json.loads(line.decode("latin-1"))
        for key, value in row.items() if isinstance(row, dict) else ():
            if isinstance(value, str) and not is_utf8(value.encode("latin-1", "replace")):
                return not_utf8(f"{where}, column {key}", value.encode("latin-1", "replace"))
    except (ValueError, RecursionError):
        pass
    return not_utf8(f"{where}, character {error.start + 1}", line[error.start :])


def _kind(value: Any) -> str:
    return {type(None): "null", list: "an array", str: "a string"}.get(type(value), repr(value))

"""Files of JSON lines, read and written.

An absent key is NULL and an undeclared one is skipped. Times are ISO text. Results are written as
`{"ts": …, "weight": …, "row": {…}}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

from millpond.connectors.arrow import ARROW_TYPES, Place, conform
from millpond.connectors.files import TextFiles
from millpond.connectors.json_text import json_results
from millpond.connectors.rows import rows_to_arrow
from millpond.connectors.sinks import Results, TextSink
from millpond.connectors.sources import Declaration, files_of
from millpond.errors import InputError
from millpond.schema import Type

BLOCK_BYTES = 4 * 2**20


def source(declaration: Declaration, file: str) -> JsonSource:
    """Reads a file, the ``.json`` and ``.jsonl`` files of a directory, or those of a pattern."""
    suffixes = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz")
    return JsonSource(declaration, files_of(declaration, file, *suffixes))


def sink(results: Results, file: str, *, append: bool = False) -> JsonSink:
    """Writes one JSON object a result."""
    return JsonSink(results, file, append)


class JsonSource(TextFiles):
    """The objects of files, one a line."""

    def _tables(self, file: Path) -> Iterator[pa.Table]:
        with self._read.opened(file) as content:
            lines_before = 0
            for block in _blocks_of_lines(content):
                yield self._table(file, block, lines_before)
                lines_before += block.count(b"\n")

    def _table(self, file: Path, block: bytes, lines_before: int) -> pa.Table:
        schema = self._declaration.schema
        try:
            options = self._parse_options(block.lstrip().partition(b"\n")[0])
            table = pyarrow.json.read_json(pa.BufferReader(block), parse_options=options)
            return conform(table, schema, lambda row: f"{file}, after line {lines_before}")
        except (ValueError, AttributeError, pa.ArrowNotImplementedError, InputError):
            return self._table_by_line(file, block, lines_before)  # to name the line at fault

    def _parse_options(self, first_line: bytes) -> pyarrow.json.ParseOptions:
        """Reads the declared columns, their names written as in the first line."""
        spellings = {key.lower(): key for key in json.loads(first_line or b"{}")}
        text = pa.string()
        fields = [
            pa.field(
                spellings.get(f.name.lower(), f.name),
                text if f.type in (Type.TIMESTAMP, Type.DATE) else ARROW_TYPES[f.type],
            )
            for f in self._declaration.schema.fields
        ]
        return pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
        )

    def _table_by_line(self, file: Path, block: bytes, lines_before: int) -> pa.Table:
        numbered = [
            (lines_before + number, line)
            for number, line in enumerate(block.split(b"\n"), start=1)
            if line.strip()
        ]
        rows = [_parsed(file, number, line) for number, line in numbered]
        place: Place = lambda row: f"{file}, line {numbered[row][0]}"  # noqa: E731
        return rows_to_arrow(rows, self._declaration.schema, place, lenient=True)


class JsonSink(TextSink):
    """Results as lines of JSON."""

    def write(self, table: pa.Table) -> None:
        """Adds results; they are in the file when this returns."""
        lines = (json.dumps(result, ensure_ascii=False) for result in json_results(table))
        self.append_text("".join(f"{line}\n" for line in lines))


def _blocks_of_lines(content: pa.NativeFile) -> Iterator[bytes]:
    rest = b""
    while block := content.read(BLOCK_BYTES):
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            yield whole + newline
    if rest.strip():
        yield rest


def _parsed(file: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{file}, line {number}: no JSON ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{file}, line {number}: a JSON object is wanted, one a line")
    return row

"""CSV files, read and written.

An empty cell is NULL and a quoted empty one an empty string. The first line is taken for a header
if it holds the name of a declared column; then columns are found by name, else by position.
"""

from __future__ import annotations

import copy
import csv
import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from millpond.connectors.arrow import RowPosition, arrow_schema, conform, positions
from millpond.connectors.csv_records import Record, end_of_records, records
from millpond.connectors.encoding import is_utf8, not_utf8
from millpond.connectors.files import LONG_BYTES, Block, Blocks
from millpond.connectors.followed_files import FollowedFiles, is_followed
from millpond.connectors.python_values import readable
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results, TextSink, flat
from millpond.connectors.sources import Declaration, files_of
from millpond.connectors.text_files import TextFiles
from millpond.errors import InputError


def source(
    declaration: Declaration,
    file: str,
    *,
    header: bool | str = "auto",
    delimiter: str = ",",
    null: str = "",
    follow: bool = False,
) -> CsvSource | FollowedFiles:
    """Reads a file, the ``.csv`` files of a directory, or the files of a pattern; with ``follow``
    as they grow."""
    form = _form(declaration, header, delimiter, null)
    if is_followed(declaration, follow):
        return FollowedFiles(declaration, file, CsvSource(declaration, [], form), ".csv", ".csv.gz")
    return CsvSource(declaration, files_of(declaration, file, ".csv", ".csv.gz"), form)


def csv_text(declaration: Declaration, header: Any, delimiter: Any, null: Any) -> CsvSource:
    """Reads blocks of CSV that somebody else has."""
    return CsvSource(declaration, [], _form(declaration, header, delimiter, null))


def _form(declaration: Declaration, header: Any, delimiter: Any, null: Any) -> _Form:
    return _Form(
        _one_character(declaration.name, delimiter),
        str(revealed(null)),
        _header(declaration, header),
    )


def sink(results: Results, file: str, *, append: bool = False, delimiter: str = ",") -> CsvSink:
    """Writes one line a result: ts, weight, columns."""
    return CsvSink(results, file, append, delimiter)


@dataclass(frozen=True)
class _Form:
    delimiter: str
    null: str
    header: bool | None

    def end_of_records(self, text: bytes) -> int:
        """How much of a text is whole records."""
        return end_of_records(text, self.delimiter.encode())

    def records(self, text: bytes) -> Iterator[Record]:
        """The records of a text one by one."""
        return records(text, self.delimiter.encode())


class CsvSource(TextFiles):
    """The rows of CSV files."""

    def __init__(self, declaration: Declaration, files: list[Path], form: _Form) -> None:
        self._form = form
        self._names: list[str] = []
        super().__init__(declaration, Blocks(files, form.end_of_records))

    def end_of_records(self, text: bytes) -> int:
        """How much of a text that begins with a record is whole records."""
        return self._form.end_of_records(text)

    def learn(self, head: Block) -> None:
        """The names of a file's columns are those of its header."""
        super().learn(head)
        self._without_header(head)

    def holds_rows(self, head: Block) -> bool:
        """Whether the beginning of a file is more than a header."""
        try:
            body = copy.copy(self)._without_header(head)
        except InputError:
            return True  # it is said when the file is read
        return super().holds_rows(body)

    def end_of(self, block: Block, record: int) -> int:
        """How many bytes of a block come before the end of a record."""
        body = self._without_header(block).content
        found = next(itertools.islice(self._form.records(body), record, None))
        return len(block.content) - len(body) + found.end

    def _table(self, block: Block) -> tuple[pa.Table, RowPosition]:
        body = self._without_header(block)
        schema, where = self._declaration.schema, self._where(body)
        if not self._names or not body.content.strip(b"\r\n"):
            return arrow_schema(schema).empty_table(), where
        wanted = positions(self._names, schema, lambda _: f"{block.name}, line 1")
        try:
            table = self._parsed(body.content, wanted)
        except pa.ArrowInvalid as error:
            raise self._fault(body, wanted, error) from None
        return conform(table, schema, where, read_text=True), where

    def _parsed(self, content: bytes, wanted: list[int]) -> pa.Table:
        """The wanted columns as text; all go by their number, as undeclared names may repeat."""
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            pyarrow.csv.ReadOptions(
                column_names=[str(number) for number in range(len(self._names))],
                block_size=len(content) + 1,
                use_threads=len(content) > LONG_BYTES,
            ),
            pyarrow.csv.ParseOptions(delimiter=self._form.delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                include_columns=[str(number) for number in wanted],
                column_types=dict.fromkeys(map(str, wanted), pa.string()),
                null_values=[self._form.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return table.rename_columns(list(self._declaration.schema.names))

    def _without_header(self, block: Block) -> Block:
        """The block; of a file's first one without its header, which names the columns."""
        if not block.is_first:
            return block
        self._names = []
        first = next(self._form.records(block.content), None)
        if first is None:
            return block
        self._names, has_header = self._columns(block.name, first)
        if not has_header:
            return block
        return replace(block, content=block.content[first.end :], lines_before=first.last_line)

    def _columns(self, name: str, first: Record) -> tuple[list[str], bool]:
        """The names of a file's columns, and whether its first record is a header."""
        schema = self._declaration.schema
        declared = [name.lower() for name in schema.names]
        cells = [cell.decode(errors="replace").strip() for cell in first.cells]
        found = any(cell.lower() in declared for cell in cells)
        if found if self._form.header is None else self._form.header:
            positions(cells, schema, lambda _: f"{name}, line {first.line}")
            return cells, True
        if len(cells) != len(declared) and not self._declaration.skips_bad_rows:
            raise InputError(
                f"{name}, line {first.line}: {len(cells)} columns, but {self._declaration.name} "
                f"has {len(declared)}: {schema}"
            )
        return list(schema.names), False

    def _records(self, block: Block) -> list[Block]:
        body, found, start = self._without_header(block), list[Block](), 0
        for record in self._form.records(body.content):
            lines = body.lines_before + record.line - 1
            found.append(Block(body.name, body.content[start : record.end], lines))
            start = record.end
        return found

    def _where(self, block: Block) -> RowPosition:
        """Names the line of a record, found only when asked for: records may span lines."""

        def where(row: int) -> str:
            record = next(itertools.islice(self._form.records(block.content), row, None))
            return f"{block.name}, line {block.lines_before + record.last_line}"

        return where

    def _fault(self, block: Block, wanted: list[int], error: Exception) -> InputError:
        """The first record with another number of cells, or with a cell that is no text."""
        for record in self._form.records(block.content):
            where = f"{block.name}, line {block.lines_before + record.last_line}"
            if len(record.cells) != len(self._names):
                found = f"{len(record.cells)} columns instead of {len(self._names)}"
                return InputError(f"{where}: {found}")
            for number in wanted:
                cell = record.cells[number]
                if not is_utf8(cell):
                    return not_utf8(f"{where}, column {self._names[number]}", cell)
        return InputError(f"{block.name}, after line {block.lines_before}: {error}")


class CsvSink(TextSink):
    """Results as lines of a CSV file."""

    def __init__(self, results: Results, file: str, append: bool, delimiter: str) -> None:
        self._delimiter = _one_character(results.query, delimiter)
        super().__init__(results, file, append)
        if not self.has_content:
            header = io.StringIO()
            csv.writer(header, delimiter=self._delimiter, lineterminator="\n").writerow(
                results.names
            )
            self.append_text(header.getvalue().encode())

    def write(self, table: pa.Table) -> None:
        """Adds results."""
        options = pyarrow.csv.WriteOptions(include_header=False, delimiter=self._delimiter)
        buffer = pa.BufferOutputStream()
        pyarrow.csv.write_csv(readable(flat(table, self.results)), buffer, options)
        self.append_text(buffer.getvalue().to_pybytes())


def _one_character(owner: str, delimiter: str | Secret) -> str:
    value = revealed(delimiter)
    character = {"tab": "\t", "\\t": "\t"}.get(value, value)
    if not isinstance(character, str) or len(character) != 1:
        raise InputError(f"{owner}: delimiter {delimiter!r} is not one character")
    if not character.isascii() or character in '"\r\n\0':
        raise InputError(f"{owner}: {delimiter!r} cannot be a delimiter; usual are , ; | and tab")
    return character


def _header(declaration: Declaration, header: bool | str) -> bool | None:
    known, given = {"auto": None, "true": True, "false": False}, str(revealed(header)).lower()
    if given not in known:
        raise InputError(f"{declaration.name}: header is true, false or 'auto', not {header!r}")
    return known[given]

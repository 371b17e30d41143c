"""CSV files, read and written.

An empty cell is NULL and a quoted empty one an empty string. The first line is taken for a header
if it holds the name of a declared column; then columns are found by name, else by position.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from millpond.connectors.arrow import Place, conform, positions
from millpond.connectors.files import TextFiles, text_of
from millpond.connectors.sinks import Results, TextSink, flat
from millpond.connectors.sources import Declaration, files_of
from millpond.errors import InputError


def source(
    declaration: Declaration,
    file: str,
    *,
    header: bool | str = "auto",
    delimiter: str = ",",
    null: str = "",
) -> CsvSource:
    """Reads a file, the ``.csv`` files of a directory, or the files of a pattern."""
    form = _Form(_one_character(declaration, delimiter), str(null), _header(declaration, header))
    return CsvSource(declaration, files_of(declaration, file, ".csv", ".csv.gz"), form)


def sink(results: Results, file: str, *, append: bool = False, delimiter: str = ",") -> CsvSink:
    """Writes one line a result: ts, weight, columns."""
    return CsvSink(results, file, append, delimiter)


@dataclass(frozen=True)
class _Form:
    delimiter: str
    null: str
    header: bool | None


class CsvSource(TextFiles):
    """The rows of CSV files."""

    def __init__(self, declaration: Declaration, files: list[Path], form: _Form) -> None:
        super().__init__(declaration, files)
        self._form = form

    def _tables(self, file: Path) -> Iterator[pa.Table]:
        names, has_header = self._columns(file)
        if not names:
            return
        with self._read.opened(file) as content:
            records = 0
            for batch in self._batches(content, names, has_header, file):
                place = self._place(file, records + has_header)
                table = pa.Table.from_batches([batch])
                yield conform(table, self._declaration.schema, place, read_text=True)
                records += batch.num_rows

    def _batches(
        self, content: pa.NativeFile, names: list[str], has_header: bool, file: Path
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from pyarrow.csv.open_csv(
                content,
                pyarrow.csv.ReadOptions(column_names=names, skip_rows_after_names=int(has_header)),
                pyarrow.csv.ParseOptions(
                    delimiter=self._form.delimiter, newlines_in_values=True, ignore_empty_lines=True
                ),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[self._form.null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._fault(file, len(names), error) from None

    def _columns(self, file: Path) -> tuple[list[str], bool]:
        """The names of the file's columns, none for an empty file, and whether it has a header."""
        with text_of(file) as text:
            first = next(filter(None, csv.reader(text, delimiter=self._form.delimiter)), None)
        declared = [name.lower() for name in self._declaration.schema.names]
        if first is None:
            return [], False
        cells = [cell.strip() for cell in first]
        found = any(cell.lower() in declared for cell in cells)
        if found if self._form.header is None else self._form.header:
            positions(cells, self._declaration.schema, lambda _: f"{file}, line 1")
            return cells, True
        if len(cells) != len(declared):
            raise InputError(
                f"{file}, line 1: {len(cells)} columns, but {self._declaration.name} has "
                f"{len(declared)}: {self._declaration.schema}"
            )
        return list(self._declaration.schema.names), False

    def _place(self, file: Path, records_before: int) -> Place:
        """Names the line of a record, found only when asked for: records may span lines."""

        def place(row: int) -> str:
            with text_of(file) as text:
                reader = csv.reader(text, delimiter=self._form.delimiter)
                records = (reader.line_num for record in reader if record)
                wanted = itertools.islice(records, records_before + row, None)
                return f"{file}, line {next(wanted, reader.line_num)}"

        return place

    def _fault(self, file: Path, columns: int, error: Exception) -> InputError:
        with text_of(file) as text:
            reader = csv.reader(text, delimiter=self._form.delimiter)
            for record in reader:
                if record and len(record) != columns:
                    found = f"{len(record)} columns instead of {columns}"
                    return InputError(f"{file}, line {reader.line_num}: {found}")
        return InputError(f"{file}: {error}")


class CsvSink(TextSink):
    """Results as lines of a CSV file."""

    def __init__(self, results: Results, file: str, append: bool, delimiter: str) -> None:
        super().__init__(results, file, append)
        self._delimiter = delimiter
        if not self.has_content:
            csv.writer(self.text, delimiter=delimiter, lineterminator="\n").writerow(results.names)

    def write(self, table: pa.Table) -> None:
        """Adds results; they are in the file when this returns."""
        options = pyarrow.csv.WriteOptions(include_header=False, delimiter=self._delimiter)
        buffer = pa.BufferOutputStream()
        pyarrow.csv.write_csv(flat(table, self.results), buffer, options)
        self.append_text(buffer.getvalue().to_pybytes().decode())


def _one_character(declaration: Declaration, delimiter: str) -> str:
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise InputError(f"{declaration.name}: delimiter {delimiter!r} is not one character")
    return delimiter


def _header(declaration: Declaration, header: bool | str) -> bool | None:
    known = {"auto": None, "true": True, "false": False}
    if str(header).lower() not in known:
        raise InputError(f"{declaration.name}: header is true, false or 'auto', not {header!r}")
    return known[str(header).lower()]

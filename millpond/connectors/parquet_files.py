"""Parquet: a file, a directory or a pattern is read; results become a directory of part files."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.connectors.arrow import RowPosition, conform, positions
from millpond.connectors.bad_rows import BadRow, salvaged
from millpond.connectors.files import display_name
from millpond.connectors.forcing import force_files, force_names
from millpond.connectors.locations import STDIN, identity
from millpond.connectors.rows import row_position
from millpond.connectors.sinks import Results, file_of, flag, flat
from millpond.connectors.sources import (
    Declaration,
    Progress,
    SourcePage,
    cut_pages,
    cut_salvaged,
    files_of,
)
from millpond.connectors.times import check_times
from millpond.errors import InputError

_PART = re.compile(r"part-(\d{6})\.parquet")


def source(declaration: Declaration, file: str) -> ParquetSource:
    """Reads a file, the ``.parquet`` files of a directory, or the files of a pattern."""
    files = files_of(declaration, file, ".parquet")
    for each in files:
        if each == STDIN or not each.is_file():
            raise InputError(
                f"{declaration.name}: {display_name(each)} is a pipe; Parquet is read from its "
                "end, so it has to be a file"
            )
    return ParquetSource(declaration, files)


def sink(results: Results, directory: str, *, append: bool = False) -> ParquetSink:
    """Writes each batch of results as one more file of the directory."""
    return ParquetSink(results, directory, append)


class ParquetSource:
    """The rows of Parquet files, row group by row group."""

    ends = True

    def __init__(self, declaration: Declaration, files: list[Path]) -> None:
        self._declaration, self._files = declaration, files
        self._total_rows: int | None = None
        self._done_rows = 0

    @property
    def reads_files(self) -> bool:
        """Whether anybody who sees the files can read the rows; bad ones are put aside here."""
        return not self._declaration.skips_bad_rows

    def pages(self) -> Iterator[pa.Table | SourcePage]:
        """The rows of one file after the other."""
        self._done_rows = 0
        self._total_rows = sum(_opened(file).metadata.num_rows for file in self._files)
        schema, page_rows = self._declaration.schema, self._declaration.settings.page_rows
        if self._declaration.skips_bad_rows:
            found = itertools.chain.from_iterable(map(self._salvaged, self._files))
            return cut_salvaged(found, schema, page_rows)
        tables = itertools.chain.from_iterable(map(self._tables, self._files))
        return cut_pages(tables, schema, page_rows)

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self._done_rows, self._total_rows, "rows")

    def _tables(self, file: Path) -> Iterator[pa.Table]:
        rows = 0
        with _opened(file) as parquet:
            for batch in self._batches(file, parquet):
                self._done_rows += batch.num_rows
                yield self._checked(pa.Table.from_batches([batch]), row_position(str(file), rows))
                rows += batch.num_rows

    def _salvaged(self, file: Path) -> Iterator[pa.Table | BadRow]:
        """The rows of a file, and in their places those that do not fit; a column of another type
        is refused."""
        rows = 0
        with _opened(file) as parquet:
            for batch in self._batches(file, parquet):
                self._done_rows += batch.num_rows
                table = pa.Table.from_batches([batch])
                self._checked(table.slice(0, 0), row_position(str(file), rows))
                yield from self._salvaged_rows(table, file, rows)
                rows += batch.num_rows

    def _salvaged_rows(
        self, table: pa.Table, file: Path, before: int
    ) -> Iterator[pa.Table | BadRow]:
        def read(part: Sequence[int]) -> pa.Table:
            where = row_position(str(file), before + part[0])
            return self._checked(table.slice(part[0], len(part)), where)

        def bad(row: int, error: InputError) -> BadRow:
            values = table.slice(row, 1).to_pylist()[0]
            return BadRow(
                f"{file}, row {before + row + 1}",
                str(error),
                json.dumps(values, default=str, ensure_ascii=False).encode(),
            )

        return salvaged(range(table.num_rows), read, bad)

    def _checked(self, table: pa.Table, where: RowPosition) -> pa.Table:
        table = conform(table, self._declaration.schema, where)
        check_times(table, self._declaration, where)
        return table

    def _batches(self, file: Path, parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
        """The declared columns; what is wrong inside of the file is said in one line."""
        try:
            names = parquet.schema_arrow.names
            found = positions(names, self._declaration.schema, lambda _: str(file))
            wanted = [names[position] for position in found]
            page_rows = self._declaration.settings.page_rows
            yield from parquet.iter_batches(batch_size=page_rows, columns=wanted)
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise InputError(f"{file}: damaged ({_first_line(error)})") from None


class ParquetSink:
    """Results as files `part-000000.parquet`, …, each complete from the moment it is there."""

    def __init__(self, results: Results, directory: str, append: Any) -> None:
        self._results = results
        append = flag(results, "append", append)
        self._directory = file_of(results, directory)
        parts = self._parts()
        claimed = [*parts, self._directory / "part-000000.parquet"]
        results.claims.write(results.query, str(directory), claimed, self._covers)
        self._directory.mkdir(parents=True, exist_ok=True)
        kept = int(parts[-1].name[5:11]) + 1 if append and parts else 0
        self._next = kept if results.resume is None else results.resume
        self._first_loose = 0
        """From this number on files may be with the system and not on the disk."""
        self._is_named = False
        for part in parts:
            if int(part.name[5:11]) >= self._next:
                part.unlink()

    def mark(self) -> int:
        """The number of the next file."""
        return self._next

    def _parts(self) -> list[Path]:
        if not self._directory.is_dir():
            return []
        return sorted(file for file in self._directory.iterdir() if _PART.fullmatch(file.name))

    def _covers(self, file: Path) -> bool:
        """Whether a file is one of the parts, there or to come."""
        is_part = _PART.fullmatch(file.name) is not None
        return is_part and identity(file.parent) == identity(self._directory)

    def next_part(self) -> Path:
        """Where somebody else may write the next file; ``has_part`` makes it count."""
        return self._directory / f".part-{self._next:06d}.parquet"

    def has_part(self) -> None:
        """The next file is written."""
        unfinished = self.next_part()
        unfinished.replace(unfinished.with_name(unfinished.name[1:]))
        self._next += 1

    def write(self, table: pa.Table) -> None:
        """Adds one file, written under another name first."""
        unfinished = self.next_part()
        try:
            pq.write_table(flat(table, self._results), unfinished)
            self.has_part()
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise

    def force(self) -> None:
        """Forces the files written since the last time onto the disk."""
        if not self._is_named:
            force_names(self._directory)
        loose = (self._part(number) for number in range(self._first_loose, self._next))
        force_files(part for part in loose if part.exists())  # somebody may have taken it away
        self._first_loose, self._is_named = self._next, True

    def _part(self, number: int) -> Path:
        return self._directory / f"part-{number:06d}.parquet"

    def close(self) -> None:
        """Nothing is left to do."""


def _opened(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{file}: no Parquet file ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

"""Parquet: a file, a directory or a pattern is read; results become a directory of part files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.connectors.arrow import conform, positions
from millpond.connectors.files import display_name
from millpond.connectors.locations import STDIN, identity
from millpond.connectors.rows import row_position
from millpond.connectors.sinks import Results, file_of, flag, flat
from millpond.connectors.sources import Declaration, Progress, cut_pages, files_of
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

    reads_files = True

    def __init__(self, declaration: Declaration, files: list[Path]) -> None:
        self._declaration, self._files = declaration, files
        self._total_rows: int | None = None
        self._done_rows = 0

    def pages(self) -> Iterator[pa.Table]:
        """The rows of one file after the other."""
        self._total_rows = sum(_opened(file).metadata.num_rows for file in self._files)
        tables = itertools.chain.from_iterable(map(self._tables, self._files))
        page_rows = self._declaration.settings.page_rows
        return cut_pages(tables, self._declaration.schema, page_rows)

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self._done_rows, self._total_rows, "rows")

    def _tables(self, file: Path) -> Iterator[pa.Table]:
        schema, rows = self._declaration.schema, 0
        with _opened(file) as parquet:
            for batch in self._batches(file, parquet):
                self._done_rows += batch.num_rows
                where = row_position(str(file), rows)
                table = conform(pa.Table.from_batches([batch]), schema, where)
                check_times(table, self._declaration, where)
                yield table
                rows += batch.num_rows

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

    def close(self) -> None:
        """Nothing is left to do."""


def _opened(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{file}: no Parquet file ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

"""Parquet: a file, a directory or a pattern is read; results become a directory of part files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.connectors.arrow import conform, positions
from millpond.connectors.rows import row_place
from millpond.connectors.sinks import Results, flat
from millpond.connectors.sources import Declaration, Progress, cut_pages, files_of
from millpond.errors import InputError

_PART = re.compile(r"part-(\d{6})\.parquet")


def source(declaration: Declaration, file: str) -> ParquetSource:
    """Reads a file, the ``.parquet`` files of a directory, or the files of a pattern."""
    return ParquetSource(declaration, files_of(declaration, file, ".parquet"))


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
            names = parquet.schema_arrow.names
            wanted = [names[position] for position in positions(names, schema, lambda _: str(file))]
            page_rows = self._declaration.settings.page_rows
            for batch in parquet.iter_batches(batch_size=page_rows, columns=wanted):
                self._done_rows += batch.num_rows
                table = pa.Table.from_batches([batch])
                yield conform(table, schema, row_place(str(file), rows))
                rows += batch.num_rows


class ParquetSink:
    """Results as files `part-000000.parquet`, …, each complete from the moment it is there."""

    def __init__(self, results: Results, directory: str, append: bool) -> None:
        self._results = results
        self._directory = results.directory / Path(directory).expanduser()
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{results.query} INTO {directory}: {error.strerror}") from None
        parts = sorted(file for file in self._directory.iterdir() if _PART.fullmatch(file.name))
        if not append:
            for part in parts:
                part.unlink()
        self._next = int(parts[-1].name[5:11]) + 1 if append and parts else 0

    def write(self, table: pa.Table) -> None:
        """Adds one file, written under another name first."""
        part = self._directory / f"part-{self._next:06d}.parquet"
        unfinished = part.with_name(f".{part.name}")
        pq.write_table(flat(table, self._results), unfinished)
        unfinished.replace(part)
        self._next += 1

    def close(self) -> None:
        """Nothing is left to do."""


def _opened(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{file}: no Parquet file ({error})") from None

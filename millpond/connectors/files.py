"""Reads text files as bytes, compressed or not, and knows how far it has come."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from millpond.connectors.sources import Declaration, Progress, cut_pages
from millpond.errors import InputError

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class FilesRead:
    """The bytes of several files, counted while they are read one after the other."""

    def __init__(self, files: list[Path]) -> None:
        self.total_bytes = sum(file.stat().st_size for file in files)
        self._bytes_before = 0
        self._open_file: pa.NativeFile | None = None

    @contextmanager
    def opened(self, file: Path) -> Iterator[pa.NativeFile]:
        """The file's content, uncompressed; faults of the file become input errors."""
        try:
            with pa.OSFile(str(file)) as raw:
                self._open_file = raw
                yield uncompressed(raw, file)
        except OSError as error:
            raise InputError(f"{file}: {error.strerror or error}") from None
        finally:
            self._open_file = None
            self._bytes_before += file.stat().st_size if file.exists() else 0

    def progress(self) -> Progress:
        """Bytes read so far, as they are on disk."""
        current = self._open_file.tell() if self._open_file and not self._open_file.closed else 0
        return Progress(self._bytes_before + current, self.total_bytes)


class TextFiles:
    """A source of the rows of text files, one file after the other."""

    ends = True

    def __init__(self, declaration: Declaration, files: list[Path]) -> None:
        self._declaration, self._files = declaration, files
        self._read = FilesRead(files)

    def pages(self) -> Iterator[pa.Table]:
        """The rows, in pages."""
        tables = itertools.chain.from_iterable(map(self._tables, self._files))
        page_rows = self._declaration.settings.page_rows
        return cut_pages(tables, self._declaration.schema, page_rows)

    def progress(self) -> Progress:
        """Bytes read."""
        return self._read.progress()

    def _tables(self, file: Path) -> Iterator[pa.Table]:
        """The rows of a file."""
        raise NotImplementedError


def uncompressed(raw: pa.NativeFile, file: Path) -> pa.NativeFile:
    """The content of a file that may be compressed, as its name says."""
    compression = _COMPRESSIONS.get(file.suffix)
    return pa.CompressedInputStream(raw, compression) if compression else raw


@contextmanager
def text_of(file: Path) -> Iterator[io.TextIOWrapper]:
    """The text of a file, for looking at single lines."""
    with pa.OSFile(str(file)) as raw:
        text = io.TextIOWrapper(
            uncompressed(raw, file), encoding="utf-8-sig", errors="replace", newline=""
        )
        yield text
        text.detach()

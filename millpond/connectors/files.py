"""Reads text files, pipes and standard input once, from front to back, in blocks of whole records.

Nothing is read twice, so that a pipe serves as well as a file: a block knows on which line it
begins, and the place of a fault is looked for in the block itself.
"""

import io
import os
import select
import stat
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import pyarrow as pa

from millpond.connectors.locations import STDIN
from millpond.connectors.sources import Progress
from millpond.errors import InputError

BLOCK_BYTES = 4 * 2**20
LONG_BYTES = 2**16
"""A shorter text is not worth the start of several threads."""

LONGEST_RECORD_BYTES = 64 * 2**20
PAUSE_SECONDS = 0.05
"""How long a pipe may be silent before what has come is handed on."""

EndOfRecords: TypeAlias = Callable[[bytes], int]
"""How much of a text that begins with a record is whole records."""

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


@dataclass(frozen=True)
class Block:
    """Whole records of one file, and how many lines come before them."""

    name: str
    content: bytes
    lines_before: int

    @property
    def is_first(self) -> bool:
        """Whether the file begins with it."""
        return self.lines_before == 0


class Blocks:
    """The blocks of several files, one after the other; the last one can be put back."""

    def __init__(self, files: list[Path], end_of_records: EndOfRecords) -> None:
        self._files, self._end_of_records = files, end_of_records
        self.is_live = any(map(is_pipe, files))
        self._total_bytes = None if self.is_live else sum(file.stat().st_size for file in files)
        self._bytes_before = 0
        self._open: _Counted | None = None
        self._blocks = self._all()
        self._returned: list[Block] = []

    def __iter__(self) -> Iterator[Block]:
        while True:
            block = self._returned.pop() if self._returned else next(self._blocks, None)
            if block is None:
                return
            yield block

    def again(self) -> Self:
        """The same files from their beginning, as they are now."""
        try:
            return type(self)(self._files, self._end_of_records)
        except OSError as error:
            name = display_name(Path(error.filename)) if error.filename else "a file"
            raise InputError(f"{name}: {error.strerror}") from None

    def put_back(self, block: Block) -> None:
        """The block comes again, for a reader that understands it better."""
        self._returned.append(block)

    def progress(self) -> Progress:
        """Bytes read so far, as they are on disk."""
        now = self._open.count if self._open else 0
        return Progress(self._bytes_before + now, self._total_bytes)

    def _all(self) -> Iterator[Block]:
        for file in self._files:
            name, lines = display_name(file), 0
            with self._opened(file) as content:
                for part in self._whole_records(name, self._chunks(content)):
                    yield Block(name, part if lines else part.removeprefix(BOM_UTF8), lines)
                    lines += count_lines(part)

    def _whole_records(self, name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        rest, lines = b"", 0
        for chunk in chunks:
            rest = rest + chunk if rest else chunk
            if end := self._end_of_records(rest):
                yield rest[:end]
                lines += count_lines(rest[:end])
                rest = rest[end:]
            elif len(rest) > LONGEST_RECORD_BYTES:
                raise InputError(
                    f"{name}, line {lines + 1}: longer than {LONGEST_RECORD_BYTES // 2**20} MB; "
                    "is a quote left open?"
                )
        if rest:
            yield rest

    def _chunks(self, content: Any) -> Iterator[bytes]:
        while True:
            chunk = content.read(BLOCK_BYTES)
            if not chunk:
                return
            yield chunk

    @contextmanager
    def _opened(self, file: Path) -> Iterator[Any]:
        """The file's content, uncompressed; faults of the file become input errors."""
        try:
            with _raw(file) as raw:
                self._open = _Counted(raw)
                yield _uncompressed(self._open, file)
        except OSError as error:
            compression = COMPRESSIONS.get(file.suffix)
            hint = f"; by its name it is compressed with {compression}" if compression else ""
            raise InputError(f"{display_name(file)}: {error.strerror or error}{hint}") from None
        finally:
            self._bytes_before += self._open.count if self._open else 0
            self._open = None


class _Counted(io.RawIOBase):
    """A file that counts what is read of it, and of a pipe reads what is there."""

    def __init__(self, raw: io.FileIO) -> None:
        self._raw, self.count = raw, 0
        self._is_live = not stat.S_ISREG(os.fstat(raw.fileno()).st_mode)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size) or b""
        while data and len(data) < size and self._has_more():
            more = self._raw.read(size - len(data))
            if not more:
                break
            data += more
        self.count += len(data)
        return data

    def _has_more(self) -> bool:
        """Whether a pipe goes on, and does not pause."""
        if not self._is_live:
            return True
        waiting = select.poll()  # which takes files of any number, unlike select
        waiting.register(self._raw.fileno(), select.POLLIN | select.POLLHUP)
        return bool(waiting.poll(1000 * PAUSE_SECONDS))


def is_pipe(file: Path) -> bool:
    """Whether the file can be read once only, and says itself when it goes on."""
    status = os.fstat(0) if file == STDIN else file.stat()
    return not stat.S_ISREG(status.st_mode)


def display_name(file: Path) -> str:
    """The file as messages call it."""
    return "standard input" if file == STDIN else str(file)


def count_lines(text: bytes) -> int:
    """How many lines end in a text: with LF, CR LF, or in a text without LF with CR.

    >>> count_lines(b"a\\r\\nb\\r\\n"), count_lines(b"a\\rb\\r")
    (2, 2)
    """
    return text.count(b"\n") or text.count(b"\r")


def _raw(file: Path) -> io.FileIO:
    return io.FileIO(0, closefd=False) if file == STDIN else io.FileIO(str(file))


def _uncompressed(raw: _Counted, file: Path) -> Any:
    """The content of a file that may be compressed, as its name says."""
    compression = COMPRESSIONS.get(file.suffix)
    if compression is None:
        return raw
    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), compression)

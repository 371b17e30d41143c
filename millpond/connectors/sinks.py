"""What a sink is, what its faults say, and what text sinks share."""

import errno
import os
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from millpond.connectors.claims import Claims
from millpond.connectors.forcing import force_names, force_open
from millpond.connectors.locations import STDIN, identity, located
from millpond.connectors.secrets import Secret, hiding, revealed
from millpond.connectors.sources import no_session
from millpond.errors import OutputError
from millpond.interruption import uninterrupted
from millpond.schema import Field, Schema, Type

WAIT_SECONDS = 0.1
"""How long a sink waits for the reader of a pipe before it looks whether that is wanted still."""


@dataclass(frozen=True)
class Results:
    """The query whose results a sink takes; tables have the columns ts, weight and the query's."""

    query: str
    schema: Schema
    directory: Path = Path()
    claims: Claims = field(default_factory=Claims)
    resume: Any = None
    """What the sink's ``mark`` was when an earlier run ended: whatever it holds beyond goes."""
    is_stream: bool = True
    """Whether results only come; those of a relation come and go, by the signs of their weights."""
    session: Callable[[], Any] = no_session
    """The engine's session of Spark, started now if there is none yet."""

    @property
    def names(self) -> list[str]:
        """The columns' names, made different from each other."""
        return unique_names(["ts", "weight", *self.schema.names])

    @property
    def columns(self) -> Schema:
        """The columns of tables, of which names differ from each other."""
        types = [Type.BIGINT, Type.BIGINT, *(field.type for field in self.schema.fields)]
        return Schema(tuple(map(Field, self.names, types)))


class Sink(Protocol):
    """Takes the results of one query, in tables that are numbered from 0.

    So that nothing is there twice after a restart, a sink says by ``mark()``, a value of JSON, what
    it contains; opened with a mark as ``Results.resume`` it forgets what it has beyond it. One that
    cannot forget has ``write_numbered(table, number)``, which is called in place of ``write``: a
    number that it has already, by a transaction of its own, it passes over. A sink without
    ``mark`` is not for stores that last. ``force()``, where there is one, has what was written
    outlive a loss of power.
    """

    def write(self, table: pa.Table) -> None:
        """Adds results: columns ts, weight and the query's own."""

    def close(self) -> None:
        """Finishes what is written; nothing follows."""


def unique_names(names: list[str]) -> list[str]:
    """The names with a number after each repetition.

    >>> unique_names(["ts", "a", "ts"])
    ['ts', 'a', 'ts_2']
    """
    taken: set[str] = set()
    result = []
    for name in names:
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        taken.add(unique)
        result.append(unique)
    return result


def flat(table: pa.Table, results: Results) -> pa.Table:
    """The table with names that differ from each other, as files need them."""
    return table.rename_columns(results.names)


def file_of(results: Results, name: str | Secret) -> Path:
    """The file or directory that INTO names."""
    location = located(results.query, results.directory, name)
    if location.path == STDIN:
        raise OutputError(
            f"query {results.query} INTO {name}: this is standard input; "
            "without INTO `millpond run` prints results on standard output"
        )
    return location.path


def flag(results: Results, option: str, value: Any) -> bool:
    """An option that is true or false."""
    known, given = {"true": True, "false": False}, str(revealed(value)).lower()
    if given not in known:
        raise OutputError(f"query {results.query}: {option} is true or false, not {value!r}")
    return known[given]


class NamedSink:
    """A sink whose faults name the query and the place, whatever connector it is of.

    After a failed write closing is quiet: what is lost was said already.
    """

    def __init__(self, sink: Sink, query: str, place: str, secrets: Sequence[Secret] = ()) -> None:
        self._sink, self._query, self._place, self._secrets = sink, query, place, secrets
        self._has_failed = False
        self.forces: Callable[[], bool] = lambda: False
        """Whether what a mark says has to outlive a loss of power."""
        self.refuse_lost: Callable[[], None] = lambda: None
        """Refuses to write what another engine writes, which has taken the store."""

    def write(self, table: pa.Table, number: int = 0) -> None:
        """Adds the results of a number."""
        self.refuse_lost()
        numbered = getattr(self._sink, "write_numbered", None)
        with self._naming():
            if numbered is None:
                self._sink.write(table)
            else:
                numbered(table, number)
            self._has_failed = False

    @property
    def is_remote(self) -> bool:
        """Whether somebody else may be long in taking what is written."""
        return bool(getattr(self._sink, "is_remote", False))

    def mark(self) -> Any:
        """What the sink contains, for ``Results.resume`` of a later run; None if it cannot say."""
        if self.forces():
            self.force()
        mark = getattr(self._sink, "mark", None)
        return None if mark is None else mark()

    def next_part(self) -> Path | None:
        """Where somebody else may write the next results as a file; None if not so.

        Where a secret leads nobody else is told.
        """
        part = None if self._secrets else getattr(self._sink, "next_part", None)
        return None if part is None else part()

    def has_part(self) -> None:
        """The file of ``next_part`` is written."""
        self.refuse_lost()
        with self._naming():
            getattr(self._sink, "has_part")()  # noqa: B009 (not every sink has it)

    def force(self) -> None:
        """Forces what is written onto the disk, if the sink is of files."""
        force = getattr(self._sink, "force", None)
        if force is not None:
            with self._naming():
                force()

    def give_up(self) -> None:
        """Waits no more for whoever reads what is written, where somebody does."""
        give_up = getattr(self._sink, "give_up", None)
        if give_up is not None:
            give_up()

    def close(self) -> None:
        """Finishes what is written."""
        has_failed = self._has_failed
        try:
            with self._naming():
                self._sink.close()
        except OutputError:
            if not has_failed:
                raise

    @contextmanager
    def _naming(self) -> Iterator[None]:
        with hiding(self._secrets):
            try:
                yield
            except Exception as error:
                self._has_failed = True
                raise write_fault(self._query, self._place, error) from error


def write_fault(query: str, place: str, error: Exception) -> OutputError:
    """What to say of results that cannot be written."""
    if isinstance(error, OutputError):
        return error
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.errno is not None:
        reason = os.strerror(error.errno)
        if error.filename and f"'{error.filename}'" not in place:
            reason = f"{error.filename}: {reason}"
    return OutputError(f"query {query} INTO {place}: {reason}")


class TextSink:
    """A text file of results; without ``append`` it replaces the file that was there.

    What a write adds is there whole or, where the file is no device, not at all.
    """

    def __init__(self, results: Results, file: str | Secret, append: Any) -> None:
        self.results = results
        append = flag(results, "append", append)
        path = file_of(results, file)
        results.claims.write(
            results.query, str(file), [path], lambda other: identity(other) == identity(path)
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        goes_on = append or results.resume is not None
        self._file = _opened(results.query, path, "ab" if goes_on else "wb")
        self._path, self._is_named = path, False
        self._is_given_up = False
        if results.resume is not None:
            self._cut_back(path, results.resume)
        self.has_content = self.mark() > 0
        """Whether anything was written to the file before."""

    def _cut_back(self, path: Path, size: int) -> None:
        """Forgets what was written after the last mark."""
        if self.mark() < size:
            self._file.close()
            raise OutputError(
                f"query {self.results.query}: {path} had {size} bytes when the store was last open "
                f"and lacks the end of them; put it back, or give the script another store"
            )
        self._file.truncate(size)

    def mark(self) -> int:
        """How long the file is."""
        return os.fstat(self._file.fileno()).st_size

    def append_text(self, text: bytes) -> None:
        """Adds whole lines; they are in the file when this returns."""
        size = self.mark()
        rest = memoryview(text)
        try:
            while rest:
                written = self._file.write(rest)
                if written is None:  # whoever reads has not read what is there
                    self._wait(len(rest), len(text))
                rest = rest[written or 0 :]
        except OSError:
            with suppress(OSError):
                self._file.truncate(size)
                self._file.seek(size)
            raise

    def _wait(self, left: int, whole: int) -> None:
        """Waits a moment for the reader of a pipe; raises if there is no more time for that."""
        if self._is_given_up or uninterrupted.was_asked:
            raise OutputError(
                f"query {self.results.query}: nobody has read the pipe {self._file.name} for too "
                f"long; {left} of the {whole} bytes of the last results were not written"
            )
        select.select((), (self._file,), (), WAIT_SECONDS)

    def give_up(self) -> None:
        """Waits no more for the reader of a pipe."""
        self._is_given_up = True

    def force(self) -> None:
        """Forces what is written, and the name of the file, onto the disk."""
        force_open(self._file.fileno())
        if not self._is_named:
            force_names(self._path)
            self._is_named = True

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _opened(query: str, path: Path, mode: str) -> FileIO:
    """A file, unbuffered; a pipe is not waited for: whoever reads it is to be there."""
    if not path.is_fifo():
        return cast("FileIO", path.open(mode, buffering=0))
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise OutputError(
            f"query {query}: nobody reads the pipe {path}; start that first"
        ) from None
    return FileIO(pipe, "wb")

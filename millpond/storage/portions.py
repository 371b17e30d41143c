"""Parts of pages as they are read elsewhere: which files, which rows, and what is made of them.

A Python worker that reads Parquet itself and evaluates a branch on Arrow gets its rows several
times quicker than through the JVM, so this is the way wherever expressions allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from millpond.kernels.branches import ArrowBranch
from millpond.kernels.columns import integers
from millpond.kernels.hashing import buckets
from millpond.planning.branches import Branch, Outputs
from millpond.storage.files import RowFile, open_rows
from millpond.storage.pages import Span, places

CUT_ROWS = 10_000
"""A piece that is mapped and has so many rows is shared by all tasks: each gets its part."""

TOGETHER_ROWS = 20_000
"""Pieces of up to so many rows together are evaluated together: each evaluation has its price."""


@dataclass(frozen=True)
class FileSpan:
    """Some rows of a file of the store: all, those in (after, until], or those that end there."""

    name: str
    after: int
    until: int
    ends: bool
    is_whole: bool
    is_sorted: bool = False
    """Whether its rows lie in order of time."""

    @staticmethod
    def of(span: Span) -> list[FileSpan]:
        """The spans of a page's files; the page is written now if it was not yet."""
        page = span.page
        meant = span.after, span.until, span.ends, span.is_whole, page.is_sorted
        return [FileSpan(name, *meant) for name in page.sound_names]

    @property
    def is_looked_for(self) -> bool:
        """Whether each row must be looked at to tell whether it is meant."""
        return not self.is_whole and (self.ends or not self.is_sorted)

    def rows(self, table: pa.Table) -> pa.Table:
        """Of a piece of the file the rows that are meant."""
        if self.is_whole:
            return table
        times = integers(table["_ts"])
        if not self.is_looked_for:
            low, high = places(times, self.after, self.until)
            return table.slice(low, high - low)
        if self.ends:
            ends = integers(table["_te"])
            meant = (times <= self.after) & (ends > self.after) & (ends <= self.until)
        else:
            meant = (times > self.after) & (times <= self.until)
        return table.filter(pa.array(meant))


class Scan:
    """Files of a store while one task reads them: what several want is read once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, RowFile] = {}
        self._read: dict[tuple[str, int, str], pa.ChunkedArray] = {}

    def file(self, name: str) -> RowFile:
        """A file, open."""
        if name not in self._files:
            self._files[name] = open_rows(self._directory / name)
        return self._files[name]

    def columns(self, name: str, group: int, names: Sequence[str]) -> pa.Table:
        """Some columns of a piece of a file."""
        file = self.file(name)
        if file.is_mapped:
            return file.piece(group, names)
        missing = [each for each in names if (name, group, each) not in self._read]
        if missing:
            read = file.piece(group, missing)
            self._read |= {(name, group, each): read[each] for each in missing}
        return pa.table({each: self._read[name, group, each] for each in names})

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()


@dataclass(frozen=True)
class Portion:
    """What one branch reads in one mode, and what an operator wants of it."""

    branch: Branch
    outputs: Outputs
    seed: int
    is_ended: bool
    spans: tuple[FileSpan, ...]

    def table(self, scan: Scan, task: int, tasks: int, is_cut: bool = False) -> list[pa.Table]:
        """The rows of every n-th piece, or an n-th of each if they are cut; filtered, projected."""
        compiled = _compiled(self.branch, self.outputs, self.seed)
        pieces = self._pieces(compiled, scan, task, tasks, is_cut)
        return [compiled.made_of(rows, self.is_ended) for rows in _together(pieces)]

    def _pieces(
        self, compiled: ArrowBranch, scan: Scan, task: int, tasks: int, is_cut: bool
    ) -> Iterator[tuple[FileSpan, pa.Table]]:
        """Of the rows of a task the columns that a branch needs, by pieces; some are not meant."""
        number = 0
        for span in self.spans:
            file = scan.file(span.name)
            needed = compiled.needs(file.names)
            for group in range(file.pieces):
                cuts = is_cut or (file.is_mapped and file.piece_rows(group) >= CUT_ROWS)
                if cuts or number % tasks == task:
                    rows = scan.columns(span.name, group, needed)
                    rows = rows if span.is_looked_for else span.rows(rows)
                    yield span, _part(rows, task, tasks) if cuts else rows
                number += 1

    def made_of(self, output: pa.Table) -> list[pa.Table]:
        """The same of rows that are in no file yet, each span being a range of times of them."""
        compiled = _compiled(self.branch, self.outputs, self.seed)
        return [compiled.rows(span.rows(output), ended=self.is_ended) for span in self.spans]


def _part(rows: pa.Table, task: int, tasks: int) -> pa.Table:
    """The n-th of some rows that a task gets."""
    first, last = (rows.num_rows * each // tasks for each in (task, task + 1))
    return rows.slice(first, last - first)


def _together(pieces: Iterable[tuple[FileSpan, pa.Table]]) -> Iterator[pa.Table]:
    """The rows that are meant, in fewer tables where these are small."""
    some, rows, first = list[pa.Table](), 0, None
    for span, table in pieces:
        rows += table.num_rows
        if first is not None and (rows > TOGETHER_ROWS or not _are_alike(first, (span, table))):
            yield _meant(first[0], some)
            some, rows, first = [], table.num_rows, None
        first = first or (span, table)
        some.append(table)
    if first is not None:
        yield _meant(first[0], some)


def _are_alike(one: tuple[FileSpan, pa.Table], other: tuple[FileSpan, pa.Table]) -> bool:
    """Whether rows of two pieces can be evaluated together."""
    spans = [
        (span.after, span.until, span.ends) if span.is_looked_for else None
        for span, _ in (one, other)
    ]
    return spans[0] == spans[1] and one[1].schema == other[1].schema


def _meant(span: FileSpan, tables: Sequence[pa.Table]) -> pa.Table:
    """Of rows with the same meaning those that are meant, if they were not looked at yet."""
    rows = pa.concat_tables(tables)
    return span.rows(rows) if span.is_looked_for else rows


@lru_cache(maxsize=256)
def _compiled(branch: Branch, outputs: Outputs, seed: int) -> ArrowBranch:
    return ArrowBranch(branch, outputs, seed)


@dataclass(frozen=True)
class TaskRows:
    """The rows of a step that each task gets: a bucket of keys, every n-th piece, or an n-th
    of each where there are too few."""

    portions: tuple[Portion, ...]
    keys: tuple[str, ...]
    tasks: int

    def rows(self, scan: Scan, task: int, schema: pa.Schema) -> pa.Table:
        """The rows of a task."""
        of_pieces = (0, 1) if self.keys else (task, self.tasks)
        is_cut = of_pieces[1] > pieces(self.portions)
        tables = [
            self.bucket(table.select(schema.names).cast(schema), task)
            for portion in self.portions
            for table in portion.table(scan, *of_pieces, is_cut)
        ]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def bucket(self, table: pa.Table, task: int) -> pa.Table:
        """Of some rows those of a task."""
        if not self.keys or self.tasks == 1 or table.num_rows == 0:
            return table
        numbers = buckets([table[name] for name in self.keys], self.tasks)
        return table.filter(pa.array(np.asarray(numbers == task)))


def pieces(portions: Sequence[Portion]) -> int:
    """About how many pieces there are: a file has one or two."""
    return sum(len(portion.spans) for portion in portions)

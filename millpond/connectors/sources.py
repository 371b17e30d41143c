"""What a source is, and the files it reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.claims import Claims
from millpond.connectors.locations import existing_files, located
from millpond.connectors.secrets import revealed
from millpond.errors import InputError
from millpond.schema import Schema
from millpond.settings import Settings


def no_session() -> Any:
    """There is none: whoever opens the source or sink has no engine."""
    raise InputError("Spark is not there: it is the engine's, and this is read or written by none")


@dataclass(frozen=True)
class Declaration:
    """What a source must deliver: the declared name and columns, and where files are looked for."""

    name: str
    schema: Schema
    timestamp_column: int | None = None
    settings: Settings = field(default_factory=Settings)
    directory: Path = Path()
    claims: Claims = field(default_factory=Claims)
    skips_bad_rows: bool = False
    """Whether rows that cannot be read are put aside; else the first one is an error."""
    lasts: bool = True
    """Whether a later run may go on where this one ends: the engine has a store that lasts."""
    key: tuple[int, ...] = ()
    """The columns of a relation's PRIMARY KEY."""
    replaces: bool = False
    """Whether a row takes the place of the one that has its key: ON CONFLICT REPLACE."""
    session: Callable[[], Any] = no_session
    """The engine's session of Spark, started now if there is none yet."""


@dataclass(frozen=True)
class SourcePage:
    """A page of a source: its rows, the bad ones among them, and where it goes on behind them."""

    rows: pa.Table
    bad: tuple[BadRow, ...] = ()
    position_after: Callable[[int], Any] | None = None
    """Where the source goes on behind so many rows of the page and the bad ones before them, as a
    value of JSON; behind all of them, if they are as many as there are. None: a source that is
    read again from its beginning."""
    until: int | None = None
    """Nothing at or before this time, in ticks, follows the page, if that is known."""

    @property
    def position(self) -> Any:
        """Where the source goes on behind the page."""
        return None if self.position_after is None else self.position_after(self.rows.num_rows)

    def behind(self, rows: int, bad: int) -> SourcePage:
        """The page without its first rows, and without the first of the bad ones."""
        after = self.position_after
        return SourcePage(
            self.rows.slice(rows),
            tuple(replace(each, after=max(0, each.after - rows)) for each in self.bad[bad:]),
            None if after is None else lambda more: after(rows + more),
            self.until,
        )

    def cut(self, rows: int) -> tuple[SourcePage, SourcePage]:
        """The first rows, fewer than there are, with the bad ones before the last; and the rest."""
        bad = tuple(each for each in self.bad if each.after < rows)
        first = SourcePage(self.rows.slice(0, rows), bad, self.position_after)
        return first, self.behind(rows, len(bad))


def as_page(page: pa.Table | SourcePage) -> SourcePage:
    """What a source has yielded, as a page of it."""
    return page if isinstance(page, SourcePage) else SourcePage(page)


@dataclass(frozen=True)
class Progress:
    """How far a source has been read; ``total`` is None where no end is known."""

    done: int
    total: int | None
    unit: str = "bytes"
    is_held: bool = False
    """Whether a page waits that there is no room for."""


class Source(Protocol):
    r"""Tuples of one stream or relation, page by page.

    One that may have nothing to deliver for a while, a pipe say, has ``is_live = True``: asking it
    for a page waits until there is one.

    A source that knows where it is yields ``SourcePage``\ s with a position and has
    ``pages_from(position)``, the pages behind one: the position is in the commit that takes the
    page. One without is read again from its beginning after a restart, without the rows that were
    taken, so it has to deliver the same ones. An empty page with a position has only that
    committed: where a source begins, say, that takes what comes from now on. One that waits may
    have ``close()``: it is to end. One that somebody keeps its data for may have
    ``committed(position)``: what comes before is in a commit that lasts and need not be kept; and
    ``forget()``: the input is dropped; what takes a while is done by a thread that it returns.
    One that is live and knows its own time may have ``nothing_until()``: a time in ticks at or
    before which nothing will come that it has not yielded, or None. It is asked, from other
    threads, when others wait for it: on-demand timestamps.
    """

    ends: bool
    """Whether nothing will ever follow the last page."""

    def pages(self) -> Iterator[pa.Table | SourcePage]:
        """Tables of the declared schema with at most ``settings.page_rows`` rows, read lazily; or
        pages with such tables."""

    def progress(self) -> Progress:
        """How far the pages have been read."""


def close_source(source: Source) -> None:
    """Has a source wait for nothing any more, where it may."""
    close = getattr(source, "close", None)
    if close is not None:
        close()


def nothing_until(source: Source) -> int | None:
    """A time in ticks at or before which a source will yield nothing more, if it knows one."""
    known = getattr(source, "nothing_until", None)
    found: int | None = None if known is None else known()
    return found


def say_committed(source: Source, position: Any) -> None:
    """Tells a source, where it is asked to be told, that a position is in a commit."""
    committed = getattr(source, "committed", None)
    if committed is not None and position is not None:
        committed(position)


def forget(source: Source) -> threading.Thread | None:
    """Has a source keep nothing for a later run, where it may; its input is dropped. The thread
    that is at it, if there is one."""
    found = getattr(source, "forget", None)
    thread: threading.Thread | None = None if found is None else found()
    return thread


def is_live(source: Source) -> bool:
    """Whether a source may have nothing to deliver for a while."""
    return getattr(source, "is_live", False)


@dataclass(frozen=True)
class Taken:
    """How much of a source was taken, by what a commit says."""

    rows: int = 0
    bad: int = 0
    position: Any = None


@dataclass(eq=False)
class OpenPages:
    """The pages of a source that is being read, and how much of it has been handed out."""

    source: Source
    pages: Iterator[pa.Table | SourcePage]
    rows: int = 0
    bad: int = 0
    position: Any = None
    error: BaseException | None = None
    """What the source has raised: these pages yield nothing any more."""

    @staticmethod
    def of(source: Source, taken: Taken) -> OpenPages:
        """The pages behind what was taken, without those before where the source can skip them."""
        if taken.position is not None and hasattr(source, "pages_from"):
            pages = source.pages_from(taken.position)
            return OpenPages(source, pages, taken.rows, taken.bad, taken.position)
        if taken.rows and hasattr(source, "pages_after"):
            return OpenPages(source, source.pages_after(taken.rows), taken.rows)
        return OpenPages(source, source.pages())

    def behind(self, rows: int, bad: int = 0) -> SourcePage | None:
        """The next page behind so many rows, which others may have read; None at the end."""
        if self.error is not None:
            self._open_again(self.error)
        try:
            return self._behind(rows, bad)
        except BaseException as error:
            self.error = error
            raise

    def _open_again(self, error: BaseException) -> None:
        """Reads on after an error; what cannot be read again, as a pipe, has not ended by it, but
        raises it each time."""
        if is_live(self.source) and not hasattr(self.source, "pages_from"):
            raise error
        again = OpenPages.of(self.source, Taken(self.rows, self.bad, self.position))
        self.pages, self.rows, self.bad, self.error = again.pages, again.rows, again.bad, None

    def _behind(self, rows: int, bad: int) -> SourcePage | None:
        for each in self.pages:
            page = as_page(each)
            first, self.rows = self.rows, self.rows + page.rows.num_rows
            first_bad, self.bad = self.bad, self.bad + len(page.bad)
            self.position = page.position
            is_position = self.position is not None and not (page.rows.num_rows or page.bad)
            is_next = (self.rows, self.bad) == (rows, bad)
            if self.rows > rows or self.bad > bad or (is_position and is_next):
                return page.behind(max(0, rows - first), max(0, bad - first_bad))
        return None


def is_true(owner: str, option: str, value: Any) -> bool:
    """An option of a source that is true or false."""
    given = {"true": True, "false": False}.get(str(revealed(value)).lower())
    if given is None:
        raise InputError(f"{owner}: {option} is true or false, not {value!r}")
    return given


def files_of(declaration: Declaration, name: str, *suffixes: str) -> list[Path]:
    """The files that a name stands for, claimed for this source."""
    location = located(declaration.name, declaration.directory, name, *suffixes)
    files = existing_files(declaration.name, location)
    declaration.claims.read(declaration.name, location, files)
    return files


def cut_pages(tables: Iterator[pa.Table], schema: Schema, page_rows: int) -> Iterator[pa.Table]:
    """The same rows in pages of ``page_rows``, the last one shorter."""
    rest = arrow_schema(schema).empty_table()
    for table in tables:
        rest = pa.concat_tables([rest, table])
        while rest.num_rows >= page_rows:
            yield rest.slice(0, page_rows).combine_chunks()
            rest = rest.slice(page_rows)
    if rest.num_rows:
        yield rest.combine_chunks()


def cut_salvaged(
    found: Iterator[pa.Table | BadRow], schema: Schema, page_rows: int
) -> Iterator[SourcePage]:
    """The same rows and bad rows in pages of at most ``page_rows`` of both."""
    tables, rows, bad = [arrow_schema(schema).empty_table()], 0, list[BadRow]()
    for each in found:
        if isinstance(each, BadRow):
            bad.append(replace(each, after=rows))
        else:
            tables.append(each)
            rows += each.num_rows
        if rows >= page_rows or len(bad) >= page_rows:
            page = SourcePage(pa.concat_tables(tables).combine_chunks(), tuple(bad))
            while page.rows.num_rows > page_rows:
                first, page = page.cut(page_rows)
                yield first
            yield page
            tables, rows, bad = tables[:1], 0, []
    if rows or bad:
        yield SourcePage(pa.concat_tables(tables).combine_chunks(), tuple(bad))

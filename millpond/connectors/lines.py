"""Lines of text that somebody sends, of JSON or CSV: rows as they come, of one connection or many.

Nobody can be asked for lines again. So what was read and not committed is lost with the process,
and going on with a store is refused unless the declaration takes gaps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any, Protocol

import pyarrow as pa

from millpond.connectors.bad_rows import BadRow, told_apart
from millpond.connectors.csv_files import csv_text
from millpond.connectors.files import LONGEST_RECORD_BYTES, Block, count_lines
from millpond.connectors.json_lines import JsonSource
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.connectors.text_files import TextFiles
from millpond.errors import InputError

logger = logging.getLogger("millpond")

LOOK_SECONDS = 0.2
"""So often whoever waits for lines looks whether they are wanted still."""

AGAIN_SECONDS = 1.0
"""So long after a connection has broken off it is tried again."""

READ_BYTES = 2**18


class BrokenOffError(Exception):
    """The other side is gone without a word."""


class AwayError(BrokenOffError):
    """Nobody is there."""


class Lines:
    """What one connection has sent: whole lines, and the beginning of the next one."""

    def __init__(self, name: str, text: TextFiles) -> None:
        self.name, self._text = name, text
        self._rest, self._lines = b"", 0
        self.head: Block | None = None
        """What came first, which may name the columns."""

    def add(self, content: bytes) -> Block | None:
        """The whole lines that there are now."""
        self._rest = self._rest + content if self._rest else content
        end = self._text.end_of_records(self._rest)
        if not end and len(self._rest) > LONGEST_RECORD_BYTES:
            raise InputError(
                f"{self.name}, line {self._lines + 1}: longer than "
                f"{LONGEST_RECORD_BYTES // 2**20} MB; is a quote left open?"
            )
        return self._cut(end)

    def end(self) -> Block | None:
        """The last line, which may lack its end."""
        return self._cut(len(self._rest))

    def _cut(self, end: int) -> Block | None:
        if not end:
            return None
        block = Block(self.name, self._rest[:end], self._lines)
        self._rest, self._lines = self._rest[end:], self._lines + count_lines(block.content)
        self.head = self.head or block
        return block


Came = tuple[Lines, Block]
"""Whole lines of a connection."""


class Feed(Protocol):
    """Whoever sends lines."""

    place: str
    """What messages call it."""

    def came(self, text: TextFiles, is_closed: Event) -> Iterator[Came]:
        """Lines as they come, until the other side has ended or ``is_closed``; raises
        ``BrokenOffError``."""


@dataclass(frozen=True)
class Form:
    """How lines are read, as options of a declaration say."""

    format: Any = "json"
    header: Any = "auto"
    delimiter: Any = ","
    null: Any = ""

    def text(self, declaration: Declaration) -> TextFiles:
        """Who reads the lines."""
        if self.format == "csv":
            return csv_text(declaration, self.header, self.delimiter, self.null)
        if self.format != "json":
            raise InputError(f"{declaration.name}: format is 'json' or 'csv', not {self.format!r}")
        if (self.header, self.delimiter, self.null) != ("auto", ",", ""):
            raise InputError(
                f"{declaration.name}: header, delimiter and null are for format = 'csv'"
            )
        return JsonSource(declaration, [])


class LineSource:
    """The rows of lines that are sent."""

    is_live = True

    def __init__(
        self, declaration: Declaration, feed: Feed, form: Form, takes_gaps: bool, ends: bool
    ) -> None:
        self._declaration, self._feed, self._text = declaration, feed, form.text(declaration)
        self._takes_gaps, self.ends = takes_gaps, ends and not takes_gaps
        self._is_closed = Event()
        self._read_bytes = 0
        self._learnt: Lines | None = None

    def pages(self) -> Iterator[SourcePage]:
        """The rows that come; an empty page says first that there may be some that were read."""
        yield SourcePage(self._text.empty(), (), _begun)
        yield from self._connected()

    def pages_from(self, position: Any) -> Iterator[SourcePage]:
        """The rows that come from now on."""
        if not self._takes_gaps:
            raise self._fault(
                "lines that were sent and are not in the store cannot be asked for again: rows may "
                "be lost; DROP it and declare it again, or say gaps = true if that may be"
            )
        yield from self._connected()

    def progress(self) -> Progress:
        """Bytes read."""
        return Progress(self._read_bytes, None)

    def close(self) -> None:
        """Nobody waits for a line any more."""
        self._is_closed.set()

    def _fault(self, said: str) -> InputError:
        return InputError(f"{self._declaration.name} FROM {self._feed.place}: {said}")

    def _connected(self) -> Iterator[SourcePage]:
        """One connection after the other, where gaps are taken."""
        has_come = False
        while not self._is_closed.is_set():
            try:
                for lines, block in self._feed.came(self._text, self._is_closed):
                    has_come = True
                    yield from self._pages(lines, block)
                if not self._takes_gaps or self._is_closed.is_set():
                    return
            except BrokenOffError as error:
                if self._is_closed.is_set():
                    return
                has_come = has_come or not isinstance(error, AwayError)
                if not self._takes_gaps or not has_come:
                    raise self._fault(str(error)) from None
                logger.warning("%s: %s; it is tried again", self._declaration.name, error)
            self._is_closed.wait(AGAIN_SECONDS)

    def _pages(self, lines: Lines, block: Block) -> Iterator[SourcePage]:
        self._read_bytes += len(block.content)
        rows, bad, _ = told_apart(iter(self._found(lines, block)), self._text.empty())
        page = SourcePage(rows, tuple(bad), _begun)
        while page.rows.num_rows > self._declaration.settings.page_rows:
            first, page = page.cut(self._declaration.settings.page_rows)
            yield first
        if page.rows.num_rows or page.bad:
            yield page

    def _found(self, lines: Lines, block: Block) -> list[pa.Table | BadRow]:
        """The rows of lines, and those that cannot be read: all, if it is the header."""
        try:
            if self._learnt is not lines and lines.head is not None:
                self._text.learn(lines.head)
                self._learnt = lines
            return list(self._text.found_in(block))
        except InputError as error:
            if not self._declaration.skips_bad_rows:
                raise
            return [BadRow(f"{block.name}, line 1", str(error), block.content)]


def _begun(rows: int) -> dict[str, Any]:
    return {"has_begun": True}


def cut_off(lines: Lines) -> None:
    """A connection has broken off: the line that it was in is left out."""
    if lines.end() is not None:
        logger.warning("%s broke off in a line, which is left out", lines.name)

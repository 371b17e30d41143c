"""Sources of text files that grow: rows as they come, and how far each file was read."""

from __future__ import annotations

import glob
import threading
from collections.abc import Iterator
from typing import Any

from millpond.connectors.bad_rows import told_apart
from millpond.connectors.file_offsets import Offset, Piece, RotatedFile
from millpond.connectors.files import COMPRESSIONS
from millpond.connectors.growing_files import GrowingFiles
from millpond.connectors.locations import STDIN, Location, located
from millpond.connectors.secrets import revealed
from millpond.connectors.sources import Declaration, Progress, SourcePage
from millpond.connectors.text_files import TextFiles
from millpond.errors import InputError

LOOK_SECONDS = 0.2
"""So often it is looked whether there is more."""


class FollowedFiles:
    """The rows of files that go on: of one through rotation, of all that come to a directory."""

    ends = False
    is_live = True

    def __init__(self, declaration: Declaration, name: Any, text: TextFiles, *suffixes: str):
        self._declaration, self._text = declaration, text
        self._location = _location(declaration, name, suffixes)
        declaration.claims.read(declaration.name, self._location, self._location.files())
        self._is_closed = threading.Event()
        self._read = 0

    def pages(self) -> Iterator[SourcePage]:
        """The rows that are there and those that come; an empty page says first what is read."""
        files = self._files()
        files.begin()
        begins = _position(files.offsets)
        yield SourcePage(self._text.empty(), (), lambda _: begins)
        yield from self._following(files)

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """The rows behind a position."""
        files = self._files()
        files.go_on([Offset.of(each) for each in position["files"]])
        return self._following(files)

    def progress(self) -> Progress:
        """Bytes read; there is no end."""
        return Progress(self._read, None)

    def close(self) -> None:
        """Nobody waits for a row any more."""
        self._is_closed.set()

    def _files(self) -> GrowingFiles:
        name = self._declaration.name
        text = self._text
        return GrowingFiles(name, self._location, text.end_of_records, text.holds_rows)

    def _following(self, files: GrowingFiles) -> Iterator[SourcePage]:
        learnt = None
        try:
            while not self._is_closed.is_set():
                for piece in files.pieces():
                    if learnt != piece.file.inode or not piece.file.end:
                        head = files.head(piece)
                        if head is None:
                            break  # it was renamed: the next look finds it
                        self._text.learn(head)
                        learnt = piece.file.inode
                    yield from self._pages_of(piece)
                self._read = files.read_bytes
                self._is_closed.wait(LOOK_SECONDS)
        finally:
            files.close()

    def _pages_of(self, piece: Piece) -> Iterator[SourcePage]:
        """The rows of a piece, in pages."""
        block = piece.block
        rows, bad, places = told_apart(self._text.found_in(block), self._text.empty())

        def position_after(count: int) -> dict[str, Any]:
            if count == len(places):
                return _position(piece.behind(None))
            end = self._text.end_of(block, places[count - 1]) if count else 0
            return _position(piece.behind(end))

        page = SourcePage(rows, tuple(bad), position_after)
        while page.rows.num_rows > self._declaration.settings.page_rows:
            first, page = page.cut(self._declaration.settings.page_rows)
            yield first
        yield page


def _position(offsets: list[Offset]) -> dict[str, Any]:
    return {"files": [each.as_json() for each in offsets]}


def _location(declaration: Declaration, name: Any, suffixes: tuple[str, ...]) -> Location:
    """A file with what it is rotated to, or a directory or a pattern."""
    owner = declaration.name
    found = located(owner, declaration.directory, name, *suffixes)
    if found.path == STDIN:
        raise InputError(f"{owner}: standard input is not followed; without follow it goes on too")
    if found.path.is_dir() or glob.has_magic(str(found.path)):
        return found
    if found.path.suffix in COMPRESSIONS:
        raise InputError(f"{owner}: {name} is compressed, and what is compressed does not grow")
    if found.path.exists() and not found.path.is_file():
        raise InputError(f"{owner}: {name} is no file; a pipe goes on without follow")
    if not found.path.parent.is_dir():
        raise InputError(f"{owner}: no directory {found.path.parent}, where {name} would come")
    return RotatedFile(found.text, found.path)


def is_followed(declaration: Declaration, follow: Any) -> bool:
    """Whether files are read as they grow."""
    known, given = {"true": True, "false": False}, str(revealed(follow)).lower()
    if given not in known:
        raise InputError(f"{declaration.name}: follow is true or false, not {follow!r}")
    return known[given]

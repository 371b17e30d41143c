"""Files that grow, are rotated and come to a directory: what they hold that was not read yet."""

from __future__ import annotations

import os
import stat
from codecs import BOM_UTF8
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from millpond.connectors.file_offsets import (
    PASSED,
    SEAM_BYTES,
    Offset,
    Piece,
    RotatedFile,
    Seen,
    digest,
)
from millpond.connectors.files import COMPRESSIONS, LONGEST_RECORD_BYTES, Block, EndOfRecords
from millpond.connectors.locations import Location
from millpond.errors import InputError

PIECE_BYTES = 2**20
LOOKS_UNTIL_GONE = 10
"""A file is gone when so many looks in a row have not found it: one that is renamed is missing from
a listing, or has another name by the time that it is opened."""


class GrowingFiles:
    """The files of a location and how far each was read; those of one file as it is rotated."""

    def __init__(
        self,
        owner: str,
        location: Location,
        end_of_records: EndOfRecords,
        holds_rows: Callable[[Block], bool] = lambda _: True,
    ) -> None:
        self._owner, self._location, self._end_of_records = owner, location, end_of_records
        self._holds_rows = holds_rows
        self._is_one = isinstance(location, RotatedFile)
        self._offsets: list[Offset] = []
        self._done: dict[int, tuple[int, int, bool]] = {}
        """As which file each was read to its end."""
        self._held: dict[int, int] = {}
        """The descriptors of one file and of the one before it."""
        self._missed: dict[int, int] = {}
        """How many looks in a row have not told what became of a file."""
        self._missing: dict[int, int] = {}
        """The same, of the look that goes on."""
        self._alike: dict[tuple[int, int], int] = {}
        """How many bytes of a file are those that another one begins with."""
        self._waits = False
        """Whether nothing is read in this look, for what comes first is looked for."""

    def begin(self) -> None:
        """Files that one file was rotated to before are left alone."""
        if self._is_one:
            found = [*self._found(), *self._found()]
            main = {each.status.st_ino for each in found if self._is_main(each)}
            rotated = {each.status.st_ino: each for each in found}
            self._offsets = [_passed(each) for ino, each in rotated.items() if ino not in main]

    def go_on(self, offsets: list[Offset]) -> None:
        """Reads on behind offsets."""
        self._offsets = list(offsets)

    @property
    def offsets(self) -> list[Offset]:
        """How far each file was read."""
        return list(self._offsets)

    @property
    def read_bytes(self) -> int:
        """How many bytes were read of the files that are there."""
        return sum(each.end for each in self._offsets if each.lines != PASSED)

    def close(self) -> None:
        """Lets go of what is open."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held = {}

    # -- reading ---------------------------------------------------------------------------

    def pieces(self) -> Iterator[Piece]:
        """What has come since the last look, file by file."""
        found = self._look()
        for at in range(len(self._offsets)):
            offset = self._offsets[at]
            seen = found.get(offset.inode)
            if seen is None:
                continue
            is_final = self._is_final(at, seen)
            state = (*seen.signature, is_final)
            if offset.lines != PASSED and self._done.get(offset.inode) != state:
                is_done = yield from self._pieces_of(at, seen, is_final)
                if is_done:
                    self._done[offset.inode] = state

    def head(self, piece: Piece) -> Block | None:
        """The beginning of the file of a piece; None if it is gone from where it was seen."""
        if not piece.file.end:
            return piece.block
        content = self._whole(piece.seen, 0, b"", False)
        return None if content is None else Block(piece.file.name, _unmarked(content), 0)

    def _is_final(self, at: int, seen: Seen) -> bool:
        """Whether nobody writes to a file any more: it was rotated, and the one after it was."""
        return self._is_one and at < len(self._offsets) - 2 and not self._is_main(seen)

    def _pieces_of(self, at: int, seen: Seen, is_final: bool) -> Generator[Piece, None, bool]:
        """The pieces of a file; whether there are no more, and it was the one that was seen."""
        while True:
            offset = self._offsets[at]
            before = seen.read(offset.end - offset.seam_bytes, offset.seam_bytes)
            if before is None or digest(before) != offset.seam:
                return False
            content = self._whole(seen, offset.end, before, is_final)
            if not content:
                return content is not None
            piece = Piece(tuple(self._offsets), at, before, content, seen)
            yield piece
            self._offsets[at] = piece.behind(None)[at]

    def _whole(self, seen: Seen, start: int, before: bytes, is_final: bool) -> bytes | None:
        """Whole records from an offset on, read together with what comes before; None if it is
        another file by now."""
        size = PIECE_BYTES
        while True:
            data = seen.read(start - len(before), len(before) + size)
            if data is None or not data.startswith(before):
                return None
            content = data[len(before) :]
            is_all = len(content) < size
            end = len(content) if is_final and is_all else self._end_of_records(content)
            if end or is_all:
                return content[:end]
            if size > LONGEST_RECORD_BYTES:
                raise self._fault(
                    f"{seen.path}, byte {start}: longer than {LONGEST_RECORD_BYTES // 2**20} MB; "
                    "is a quote left open?"
                )
            size *= 4

    # -- looking ---------------------------------------------------------------------------

    def _look(self) -> dict[int, Seen]:
        """Looks which files there are, by their inodes; the offsets are then of those, and of
        those that may have been renamed meanwhile."""
        self._let_go()
        self._missing, self._waits = {}, False
        found = {each.status.st_ino: each for each in self._found()}
        left = dict(found)
        again = [self._known_again(offset, found, left) for offset in self._offsets]
        known = [each for each in again if each is not None]
        new = [seen for seen in left.values() if not self._is_copy(seen, known, found)]
        self._missed = self._missing
        if self._waits:
            return {}
        self._offsets = known + [_begun(each) for each in self._in_order(new)]
        self._done = {inode: state for inode, state in self._done.items() if inode in found}
        self._hold(found)
        return found

    def _known_again(
        self, offset: Offset, found: dict[int, Seen], left: dict[int, Seen]
    ) -> Offset | None:
        """The offset of a file that is there, or looked for; None if it is gone."""
        seen = found.get(offset.inode)
        is_same = None if seen is None else self._is_same(offset, seen)
        if seen is None or is_same is None:  # it is not listed, or was renamed since it was
            left.pop(offset.inode, None)
            return self._looked_for(offset, self._gone(offset))
        if is_same and self._is_begun_anew(offset, seen):
            return None  # it is left, and gets its place among those that are new
        if is_same:
            left.pop(offset.inode, None)
            return replace(offset, name=str(seen.path), size=seen.status.st_size)
        if offset.name == str(seen.path) and self._is_read(offset):
            return self._in_copy(offset, left)
        fault = self._gone(offset)
        if fault is None:
            return None  # another file has its inode
        left.pop(offset.inode, None)
        return self._looked_for(offset, fault)

    def _looked_for(self, offset: Offset, fault: InputError | None) -> Offset | None:
        return offset if self._is_awaited(offset.inode, fault) else None

    def _is_awaited(self, inode: int, fault: InputError | None) -> bool:
        """Whether the next look may tell what became of a file; if none has, the fault is raised.

        Of one file nothing is read meanwhile where rows may be at stake: they come in order.
        """
        self._missing[inode] = self._missed.get(inode, 0) + 1
        if self._missing[inode] >= LOOKS_UNTIL_GONE:
            if fault is not None:
                raise fault
            return False
        self._waits = self._waits or (self._is_one and fault is not None)
        return True

    def _found(self) -> list[Seen]:
        """The files there are now, and those that are held."""
        try:
            paths = self._location.files()
        except OSError as error:
            raise self._fault(f"{self._location.text}: {error.strerror or error}") from None
        found = []
        for path in paths:
            with suppress(FileNotFoundError):
                found.append(Seen(path, path.stat()))
        packed = [each.path for each in found if each.path.suffix in COMPRESSIONS]
        if packed:
            raise self._fault(
                f"{packed[0]} is compressed, and what is compressed is not followed: move it away, "
                "or uncompress it under a name beginning with . and rename it"
            )
        regular = [each for each in found if stat.S_ISREG(each.status.st_mode)]
        if len({each.status.st_dev for each in regular}) > 1:
            raise self._fault(
                f"{self._location.text} is on several file systems, of which each numbers its "
                "files by itself: declare a stream for each"
            )
        inodes = {each.status.st_ino for each in regular}
        for inode, descriptor in self._held.items():
            if inode not in inodes:
                regular.append(Seen(self._location.path, os.fstat(descriptor), is_gone=True))
        return [replace(each, held=self._held.get(each.status.st_ino)) for each in regular]

    def _hold(self, found: dict[int, Seen]) -> None:
        """Holds one file open, and the one before it: so they are read wherever they go."""
        if not self._is_one:
            return
        for inode in self._last_two() & found.keys() - self._held.keys():
            self._hold_one(found[inode])

    def _let_go(self) -> None:
        """Closes files that two have followed since; they were read to their ends."""
        for inode in self._held.keys() - self._last_two():
            os.close(self._held.pop(inode))

    def _last_two(self) -> set[int]:
        return {each.inode for each in [o for o in self._offsets if o.lines != PASSED][-2:]}

    def _hold_one(self, seen: Seen) -> None:
        with suppress(FileNotFoundError):
            descriptor = os.open(seen.path, os.O_RDONLY)
            if os.fstat(descriptor).st_ino == seen.status.st_ino:
                self._held[seen.status.st_ino] = descriptor
            else:
                os.close(descriptor)

    def _is_same(self, offset: Offset, seen: Seen) -> bool | None:
        """Whether a file is the one that was read; None if it was renamed since it was listed."""
        state = self._done.get(offset.inode)
        return True if state and state[:2] == seen.signature else seen.follows(offset)

    def _is_begun_anew(self, offset: Offset, seen: Seen) -> bool:
        """Whether an inode of which nothing was read may be another file's by now."""
        if not self._is_one or offset.end:
            return False
        is_changed = seen.status.st_size != offset.size
        return self._is_main(seen) or (is_changed and offset.inode not in self._last_two())

    def _is_read(self, offset: Offset) -> bool:
        """Whether a file is one that is read, and not one that it was rotated to."""
        return not self._is_one or offset.name == str(self._location.path)

    def _in_copy(self, offset: Offset, left: dict[int, Seen]) -> Offset | None:
        """The offset in the copy of a file that was made before it was truncated."""
        for inode, seen in left.items():
            if not self._is_another(seen) and inode != offset.inode and seen.follows(offset):
                del left[inode]
                return replace(offset, name=str(seen.path), inode=inode)
        left.pop(offset.inode, None)
        fault = self._fault(
            f"{offset.name}: {offset.end} bytes were read, and it was truncated or written anew "
            "since: what came behind them may be lost; rotate it by renaming, or have its copy "
            f"beside it (as {Path(offset.name).name}.1); to read it from its beginning DROP "
            f"{self._owner} and declare it again"
        )
        return self._looked_for(offset, fault)

    def _is_another(self, seen: Seen) -> bool:
        """Whether a file is one that is read by itself."""
        inode = seen.status.st_ino
        return any(
            each.inode == inode
            and self._is_same(each, seen)
            and not self._is_begun_anew(each, seen)
            for each in self._offsets
        )

    def _gone(self, offset: Offset) -> InputError | None:
        """The error if a file is gone of which not all was read, or may not have been."""
        last = [each.inode for each in self._offsets if each.lines != PASSED][-1:]
        is_current = self._is_one and offset.inode in last and offset.end > 0
        if offset.lines == PASSED or not (is_current or offset.end < offset.size):
            return None
        return self._fault(
            f"{offset.name} was read up to byte {offset.end}, and the file is not there any "
            "more (renamed, compressed or deleted): what came behind may be lost; put it back "
            "beside the others, uncompressed and not copied, or DROP "
            f"{self._owner} and declare it again"
        )

    def _is_copy(self, seen: Seen, known: list[Offset], found: dict[int, Seen]) -> bool:
        """Whether a rotated file is left for now: it is the copy of the one that is read, which is
        about to be truncated, or may be a copy, which is an error if it stays so; or it holds no
        rows yet."""
        if not self._is_one or self._is_main(seen):
            return False
        if self._is_without_rows(seen):
            return True
        begun = {each.inode: each for each in known if each.lines != PASSED}
        alike = [
            other
            for inode, other in found.items()
            if other is not seen and (self._is_main(other) or inode in begun)
            if self._is_beginning(seen, other, begun.get(inode))
        ]
        mains = [begun.get(each.status.st_ino) for each in alike if self._is_main(each)]
        if any(offset is not None and offset.end for offset in mains):
            return True
        return bool(alike) and self._is_awaited(seen.status.st_ino, self._ambiguous(seen, alike[0]))

    def _is_without_rows(self, seen: Seen) -> bool:
        if seen.status.st_size > PIECE_BYTES:
            return False
        content = seen.read(0, PIECE_BYTES)
        return not content or not self._holds_rows(Block(str(seen.path), _unmarked(content), 0))

    def _ambiguous(self, seen: Seen, other: Seen) -> InputError:
        return self._fault(
            f"{seen.path} holds what {other.path} begins with, so it may be a copy of it, or have "
            "been rotated before it was read; if it is a copy, move it away; if not, append an "
            "empty line to it, and it is read"
        )

    def _is_beginning(self, seen: Seen, other: Seen, offset: Offset | None) -> bool:
        """Whether another file begins with all bytes of one; also if the next look will tell.

        What was compared at the last look is not compared again.
        """
        size, pair = seen.status.st_size, (seen.status.st_ino, other.status.st_ino)
        start = max(0, self._alike.pop(pair, 0) - SEAM_BYTES)
        if size > other.status.st_size or start > size:
            return False
        while start < size:
            part = seen.read(start, min(PIECE_BYTES, size - start))
            beside = other.read(start, len(part)) if part else None
            if not part or beside is None:
                return True  # renamed, or truncated, since they were listed
            if part != beside:
                return offset is not None and not other.follows(offset)
            start += len(part)
        self._alike[pair] = size
        return True

    def _is_main(self, seen: Seen) -> bool:
        return seen.path == self._location.path and not seen.is_gone

    def _in_order(self, new: list[Seen]) -> list[Seen]:
        """The rotated ones as they were written last, then the file; else by their names."""
        if not self._is_one:
            return new

        def place(seen: Seen) -> tuple[bool, int, int]:
            return self._is_main(seen), seen.status.st_mtime_ns, -new.index(seen)

        return sorted(new, key=place)

    def _fault(self, said: str) -> InputError:
        return InputError(f"{self._owner}: {said}")


def _begun(seen: Seen) -> Offset:
    """A file of which nothing was read."""
    return Offset(str(seen.path), seen.status.st_ino, seam=digest(b""), size=seen.status.st_size)


def _passed(seen: Seen) -> Offset:
    """A file that is left alone."""
    size = seen.status.st_size
    seam = seen.read(max(0, size - SEAM_BYTES), min(size, SEAM_BYTES))
    return Offset(str(seen.path), seen.status.st_ino, size, PASSED, digest(seam or b""), size)


def _unmarked(content: bytes) -> bytes:
    return content.removeprefix(BOM_UTF8)

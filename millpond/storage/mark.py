"""The mark of a store: a file that says that a directory is ours, and by which number.

A directory that holds anything and has no mark is somebody else's: it is refused as it is. The
mark is there before anything else, and says once the log has begun that it has: a log that is gone
afterwards was lost.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millpond.connectors.forcing import force, force_names
from millpond.errors import DamageError

NAME = "millpond.store"
LOG = "commits.log"
_FIRST = "Millpond store; do not change\n"
_NEW = NAME + ".new"
NOT_THE_USERS = frozenset({"lost+found", _NEW})
"""What may lie in a directory that is to become a store: of the file system, or half a mark."""


def way_out(directory: Path) -> str:
    """What to do about damage."""
    return (
        f'nothing was changed: "millpond store check {directory}" says what is sound, '
        f'"millpond store repair {directory}" sets aside what is not; or restore a copy'
    )


@dataclass(frozen=True)
class Mark:
    """What makes a directory a store of ours."""

    directory: Path
    identity: str
    """Part of the names of all its files, and the first thing its log says."""
    has_log: bool

    @staticmethod
    def made(directory: Path, forces: bool = False) -> Mark:
        """Marks a directory; its log is still to begin."""
        mark = Mark(directory, secrets.token_hex(4), has_log=False)
        mark.write(forces)
        return mark

    @staticmethod
    def found_or_made(directory: Path, forces: bool = False) -> Mark:
        """The mark of a directory; what is empty gets one."""
        found = Mark.found(directory)
        if found is not None:
            return found
        there = {entry.name for entry in os.scandir(directory)} - NOT_THE_USERS
        if there:
            raise DamageError(_foreign(directory, there))
        return Mark.made(directory, forces)

    @staticmethod
    def found(directory: Path) -> Mark | None:
        """The mark of a directory, None if it has none; one that is damaged is refused."""
        try:
            text = (directory / NAME).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamageError(f"store {directory}: {NAME}: {error.strerror}") from None
        facts = _facts(text)
        if facts is None:
            raise DamageError(
                f"store {directory}: its mark {NAME} ({len(text)} bytes) is damaged; "
                f"{way_out(directory)}"
            )
        return Mark(directory, facts["identity"], facts["has_log"])

    def with_log(self, forces: bool) -> Mark:
        """The same, with the log begun."""
        mark = replace(self, has_log=True)
        mark.write(forces)
        return mark

    def write(self, forces: bool = False) -> None:
        """Puts the mark there, at once or not at all; ``forces``: onto the disk."""
        facts = json.dumps({"identity": self.identity, "has_log": self.has_log})
        text = f"{_FIRST}{facts}\n"
        new = self.directory / _NEW
        new.write_text(f"{text}{zlib.crc32(text.encode()):08x}\n")
        if forces:
            force(new)
        new.replace(self.directory / NAME)
        if forces:
            force_names(self.directory / NAME)


def _facts(text: bytes) -> dict[str, Any] | None:
    """What a mark says, if it is whole."""
    end = len(text) - 9
    if end < 0 or text[end:] != b"%08x\n" % zlib.crc32(text[:end]):
        return None
    facts: dict[str, Any] = json.loads(text[len(_FIRST) : end])
    return facts


def _foreign(directory: Path, there: set[str]) -> str:
    some = ", ".join(sorted(there)[:3]) + (", …" if len(there) > 3 else "")
    if LOG in there and (directory / LOG).is_file():
        return (
            f"store {directory}: there is a {LOG} and no mark {NAME}: it was written by an earlier "
            "version of Millpond, or the mark is lost. Open it with the version that wrote it; "
            f"{way_out(directory)}"
        )
    return (
        f"store {directory}: the directory is not empty ({some}) and no store of Millpond, so it "
        "is left as it is; name an empty or a new directory"
    )

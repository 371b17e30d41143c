"""What the system says of a store's files, in words that name the file and the way out."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from millpond.errors import StoreError, UnforcedError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""There is no room where a file is to be written."""

_WAYS_OUT = {
    errno.ENOSPC: "free some space there, and go on",
    errno.EDQUOT: "free some space there, and go on",
    errno.EROFS: "make it writable, and go on",
    errno.EACCES: "give this user the right to it, and go on",
    errno.EPERM: "give this user the right to it, and go on",
    errno.EMFILE: "raise the limit of open files (ulimit -n), or close some, and go on",
    errno.ENFILE: "close files that other programs have open, and go on",
    errno.ENOENT: "somebody has removed or unmounted it: put it back, or open another store",
    errno.ENOTDIR: "somebody has put a file where a directory was: put it back",
    errno.EISDIR: "somebody has put a directory where a file was: move it away",
}

_ELSE = "look at the disk, then open the store again"


def store_fault(path: Path | str, error: OSError) -> StoreError:
    """What to say of a file that cannot be written or read."""
    number = error.errno or (errno.ENOENT if isinstance(error, FileNotFoundError) else None)
    reason = os.strerror(number) if number else str(error).strip().partition("\n")[0]
    way_out = _WAYS_OUT.get(number or 0, _ELSE)
    return StoreError(f"store: {path}: {reason}; {way_out}", number)


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Has what goes wrong with a file inside name it."""
    try:
        yield
    except OSError as error:
        raise store_fault(path, error) from error


@contextlib.contextmanager
def forcing(path: Path | str) -> Iterator[None]:
    """The same of files that are forced onto the disk inside: what could not be is in doubt."""
    try:
        yield
    except OSError as error:
        raise UnforcedError(
            f"store: {error.filename or path}: {error.strerror}: what was written may not be on "
            "the disk; stop here, look at the disk, and open the store again: it goes on with all "
            "that is there",
            error.errno,
        ) from error


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """The same of a file that is written inside: half of one does not stay."""
    try:
        with naming(path):
            yield
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise

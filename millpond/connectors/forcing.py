"""What is written is forced onto the disk, where it has to outlive a loss of power.

A write that has returned is with the system: it survives the process, and not the machine. The
content of a file is forced by itself, its name by forcing the folder that it stands in.
"""

import os
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

AT_ONCE = 4
"""So many files are forced at once: the system writes them together."""


def force_open(descriptor: int) -> None:
    """Forces a file or folder that is open; what is no such thing, as a pipe, is left alone."""
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        os.fsync(descriptor)


def force(path: Path) -> None:
    """Forces the content of a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        force_open(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)


def force_names(path: Path) -> None:
    """Forces the names of all folders on the way to a file or folder, and its own."""
    for folder in path.absolute().parents:
        with suppress(PermissionError):  # what nobody may read we have not made
            force(folder)


def force_files(paths: Iterable[Path]) -> None:
    """Forces files, and then their names."""
    files = sorted(paths)
    _force_each(files)
    _force_each(sorted({file.parent for file in files}))


def _force_each(paths: list[Path]) -> None:
    if len(paths) < 2:
        for path in paths:
            force(path)
        return
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for _ in threads.map(force, paths):
            pass

"""A disk that fails: the k-th change of a file below a directory does, and perhaps all after it."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from millpond.storage import deltas, store

BY_PATH = ("fsync", "replace", "rename", "mkdir", "symlink", "link")
"""Calls of the system that change something and do not write."""


class FailingDisk:
    """Counts what changes files below a directory, and has some of it fail, half done.

    ``first``: the first of those that fail, counted from one; ``stays``: so do all behind it, as
    on a full disk, else it was the only one.
    """

    by_path = BY_PATH

    def __init__(self, directory: Path, number: int, first: int, stays: bool) -> None:
        self._below, self._number = f"{directory}{os.sep}", number
        self._first, self._stays = first, stays
        self.count = 0
        self.is_over = False
        self._lock = threading.Lock()

    @property
    def was_reached(self) -> bool:
        """Whether anything has failed."""
        return self.count >= self._first

    def fails(self, path: object) -> bool:
        """Whether a change of a file fails that is about to be made."""
        if self.is_over or not os.fspath(path).startswith(self._below):
            return False
        with self._lock:
            self.count += 1
            return self.count >= self._first if self._stays else self.count == self._first

    def forced(self, path: Path) -> None:
        """A file or folder was forced onto the disk."""

    def error(self, path: object) -> OSError:
        """What the system says."""
        return OSError(self._number, os.strerror(self._number), os.fspath(path))


def _path_of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def failing_disk(directory: Path, number: int, first: int, stays: bool):
    """Has a disk fail inside."""
    return used(FailingDisk(directory, number, first, stays))


@contextmanager
def used(disk: FailingDisk):
    """Has a disk hear of all changes of its files inside."""
    with pytest.MonkeyPatch.context() as patch:
        _fail_to_write(patch, disk)
        for name in disk.by_path:
            _fail_by_path(patch, disk, name)
        for module, name in ((store, "write_rows"), (deltas, "_write")):
            _fail_to_write_file(patch, disk, module, name)
        try:
            yield disk
        finally:
            disk.is_over = True


def _fail_to_write(patch, disk):
    write, truncate, open_, pwrite = os.write, os.ftruncate, os.open, os.pwrite

    def failing_write(descriptor, data):
        path = _path_of(descriptor)
        if disk.fails(path):
            write(descriptor, data[: len(data) // 2])
            raise disk.error(path)
        return write(descriptor, data)

    def failing_truncate(descriptor, length):
        path = _path_of(descriptor)
        if disk.fails(path):
            raise disk.error(path)
        return truncate(descriptor, length)

    def failing_open(path, flags, *rest, **named):
        if flags & os.O_CREAT and disk.fails(path):
            raise disk.error(path)
        return open_(path, flags, *rest, **named)

    def failing_pwrite(descriptor, data, offset):
        path = _path_of(descriptor)
        if disk.fails(path):
            raise disk.error(path)
        return pwrite(descriptor, data, offset)

    patch.setattr(os, "write", failing_write)
    patch.setattr(os, "pwrite", failing_pwrite)
    patch.setattr(os, "ftruncate", failing_truncate)
    patch.setattr(os, "open", failing_open)


def _fail_by_path(patch, disk, name):
    call = getattr(os, name)

    def failing(path, *rest, **named):
        where = _path_of(path) if isinstance(path, int) else path
        if disk.fails(where):
            raise disk.error(where)
        answer = call(path, *rest, **named)
        if name == "fsync":
            disk.forced(Path(where))
        return answer

    patch.setattr(os, name, failing)


def _fail_to_write_file(patch, disk, module, name):
    write = getattr(module, name)

    def failing(*given):
        path = next(each for each in given if isinstance(each, Path))
        if disk.fails(path):
            path.write_bytes(b"half of a f")
            raise disk.error(path)
        return write(*given)

    patch.setattr(module, name, failing)

"""Where an engine keeps what its steps write: one directory, in memory or on disk.

``memory`` is a directory of the process's own, in shared memory where the machine has it; it goes
with the process. A directory that the user names stays, and has a commit log beside the files. Both
have the same layout, so a step does not know which one it writes to.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import itertools
import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.errors import StateError, StoreError
from millpond.storage.faults import FULL, naming, store_fault, writing

PREFIX = "millpond-pages-"
"""The names of directories in memory begin with this."""

UNLOCKED_SECONDS = 10
"""A directory that changed so recently may be about to be locked."""

ROW_GROUP_ROWS = 100_000
"""Larger pages are written in two parts or more, which two tasks can read at once."""

CACHED_BYTES = 256 * 2**20
"""Tables read back from files are remembered up to this size, all together, unless told less."""

SPILLED = "spilled"
"""The folder for pages that memory has no room for; of a store in memory it lies on disk."""

MEMORY = "memory"

LEAST_FREE_BYTES = 64 * 2**20
"""With less room than this in memory, what is new is written to disk."""

Written = TypeVar("Written")


class Store:
    """The files of one engine; nobody else writes there while it is open."""

    def __init__(self, location: Path | str = MEMORY, parent: Path | None = None) -> None:
        self.is_durable = str(location) != MEMORY
        if self.is_durable:
            self.directory = _made(Path(location))
            self._lock = _locked(self.directory)
            if self._lock is None:
                raise StateError(
                    f"store {location}: another engine has it open; stop that one, or give this "
                    "one a directory of its own"
                )
        else:
            parent = parent or _memory_directory() or Path(tempfile.gettempdir())
            _remove_abandoned(parent)
            self.directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            self._lock = _locked(self.directory)
            atexit.register(self.close)
        self.run = 0
        """How often the store was opened: files of different runs never share a name."""
        self.bytes = 0
        """The bytes of all pages that are not free."""
        self.cached_bytes = CACHED_BYTES
        """How much of what was read back from files is remembered."""
        self.states_to_disk = False
        """Whether there is no room in memory for what operators keep by key."""
        self._is_over = False
        """Whether memory turned out to be full."""
        self._disk: Path | None = None
        self._disk_lock: int | None = None
        self._numbers = itertools.count()
        self._guard = threading.Lock()
        self._tables: OrderedDict[tuple[str, ...], pa.Table] = OrderedDict()
        self._tables_bytes = 0
        self._doomed: list[str] = []
        try:
            self._make_folders()
        except BaseException:
            self.close()
            raise

    def _make_folders(self) -> None:
        shutil.rmtree(self.directory / "slots", ignore_errors=True)
        for name in ("pages", "state", "slots"):
            with naming(self.directory / name):
                (self.directory / name).mkdir(exist_ok=True)

    # -- names nobody else uses ------------------------------------------------------------

    def new_name(self, folder: str, suffix: str = "") -> str:
        """A name within the store that no file had before; on disk where memory is full."""
        if not self.is_durable and folder != SPILLED and self._is_full():
            return self._new_name_on_disk(suffix)
        return f"{folder}/{self.run}-{next(self._numbers)}{suffix}"

    def moves_on(self, trouble: StoreError) -> StoreError | None:
        """What to say of a file that could not be written; nothing if it is memory that is full:
        from now on files are written to disk."""
        if self.is_durable or trouble.errno not in FULL or self._is_over:
            return trouble
        self._is_over = True
        return None

    def _is_full(self) -> bool:
        if self._is_over:
            return True
        room = os.statvfs(self.directory)
        return room.f_bavail * room.f_frsize < LEAST_FREE_BYTES

    def new_state_name(self) -> str:
        """A name for what an operator keeps, on disk if memory has no room for it."""
        if self.is_durable or not self.states_to_disk:
            return self.new_name("state")
        return self._new_name_on_disk()

    def new_spilled_name(self) -> str:
        """A name on disk, for a page that memory has no room for."""
        if self.is_durable:
            return self.new_name("pages", ".parquet")
        return self._new_name_on_disk(".parquet")

    def _new_name_on_disk(self, suffix: str = "") -> str:
        with self._guard:  # several threads may be the first to need it
            if self._disk is None:
                parent = Path(tempfile.gettempdir())
                _remove_abandoned(parent)
                with naming(parent):
                    disk = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
                    self._disk_lock = _locked(disk)
                    (self.directory / SPILLED).symlink_to(disk)
                self._disk = disk
        return self.new_name(SPILLED, suffix)

    def new_slot(self) -> Path:
        """An empty directory for links to pages."""
        directory = self.directory / self.new_name("slots")
        with naming(directory):
            directory.mkdir()
        return directory

    def path(self, name: str) -> Path:
        """Where a file of the store lies."""
        return self.directory / name

    # -- tables ----------------------------------------------------------------------------

    def write(self, table: pa.Table, name: str) -> None:
        """Writes a Parquet file as Spark reads it fastest; whole, or it is not there."""
        with writing(self.directory / name):
            write_parquet(table, self.directory / name)

    def placed(self, name: str, write: Callable[[str], Written]) -> Written:
        """Writes under a name; on disk under another one, if memory turns out to be full."""
        try:
            return write(name)
        except StoreError as error:
            if self.is_durable or error.errno not in FULL or name.startswith(SPILLED):
                raise
        return write(self._new_name_on_disk(Path(name).suffix))

    def write_page(self, table: pa.Table) -> str:
        """Writes a page; the name of its file."""

        def write(name: str) -> str:
            self.write(table, name)
            return name

        return self.placed(self.new_name("pages", ".parquet"), write)

    def read(self, names: tuple[str, ...]) -> pa.Table:
        """The rows of some Parquet files; the latest that were read are remembered."""
        with self._guard:
            if names in self._tables:
                self._tables.move_to_end(names)
                return self._tables[names]
        table = pa.concat_tables([self._read(name) for name in names])
        with self._guard:
            if names not in self._tables:
                self._tables[names] = table
                self._tables_bytes += table.nbytes
            while self._tables_bytes > self.cached_bytes and self._tables:
                self._tables_bytes -= self._tables.popitem(last=False)[1].nbytes
        return table

    def _read(self, name: str) -> pa.Table:
        with naming(self.directory / name):
            return pq.read_table(self.directory / name, memory_map=False)

    def remove(self, names: tuple[str, ...]) -> None:
        """Gives files up; a step under way reads them through links of its own."""
        with self._guard:
            forgotten = self._tables.pop(names, None)
            self._tables_bytes -= 0 if forgotten is None else forgotten.nbytes
            self._doomed += names
        if not self.is_durable:
            self.sweep()

    def sweep(self) -> None:
        """Deletes the files that were given up: the log no longer names them.

        One that cannot be deleted now is left for the next time: what has happened has happened.
        """
        with self._guard:
            doomed, self._doomed = self._doomed, []
        left = [name for name in doomed if not _unlinked(self.directory / name)]
        with self._guard:
            self._doomed += left

    def account(self, change: int) -> None:
        """Counts bytes in or out; from any thread."""
        with self._guard:
            self.bytes += change

    def remove_garbage(self, named: set[str]) -> None:
        """Deletes every page and state that nothing names: leftovers of steps never committed."""
        for folder in ("pages", "state"):
            for file in (self.directory / folder).iterdir():
                if f"{folder}/{file.name}" not in named and not file.is_dir():
                    _unlinked(file)  # what stays costs room, and nothing else

    def close(self) -> None:
        """Removes what is in memory, and lets go of the directory; may be called again."""
        if self._lock is None and not self.directory.exists():
            return
        if self.is_durable:
            shutil.rmtree(self.directory / "slots", ignore_errors=True)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
            if self._disk is not None:
                shutil.rmtree(self._disk, ignore_errors=True)
            atexit.unregister(self.close)
        for lock in (self._lock, self._disk_lock):
            if lock is not None:
                os.close(lock)
        self._lock = self._disk_lock = None


def write_parquet(table: pa.Table, path: Path | str) -> None:
    """Writes a Parquet file as Spark reads it fastest."""
    groups = max(ROW_GROUP_ROWS, -(-table.num_rows // 2))
    pq.write_table(
        table,
        path,
        row_group_size=groups,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )


def _unlinked(file: Path) -> bool:
    """Deletes a file; whether it is gone."""
    try:
        file.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _made(directory: Path) -> Path:
    directory = directory.expanduser().absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTDIR):
            raise store_fault(directory, error) from None
        raise StateError(f"store {directory}: {error.strerror}; name a directory") from None
    return directory


def _locked(directory: Path) -> int | None:
    """The descriptor of a directory that is now ours until we close it or die; None if it is not.

    The system gives such a lock up with the process that held it, however that ended.
    """
    with naming(directory):
        descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_abandoned(parent: Path) -> None:
    """Removes the directories of engines that were killed."""
    for directory in parent.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):  # another engine may be quicker, or another user's
            if time.time() - directory.stat().st_mtime < UNLOCKED_SECONDS:
                continue
            lock = _locked(directory)
            if lock is not None:
                shutil.rmtree(directory, ignore_errors=True)
                os.close(lock)


def _memory_directory() -> Path | None:
    """A directory in memory, if the machine has one with room; else the usual one."""
    shared = Path("/dev/shm")  # noqa: S108 (memory, for files with names of their own)
    if not os.access(shared, os.W_OK):
        return None
    room = shutil.disk_usage(shared)
    return shared if room.free > 2**30 else None

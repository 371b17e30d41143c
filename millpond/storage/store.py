"""Where an engine keeps what its steps write: one directory, in memory or on disk.

``memory`` is a directory of the process's own, in shared memory where the machine has it; it goes
with the process. A directory that the user names stays, and has a commit log beside the files. Both
have the same layout, so a step does not know which one it writes to.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import itertools
import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.errors import StateError

PREFIX = "millpond-pages-"
"""The names of directories in memory begin with this."""

UNLOCKED_SECONDS = 10
"""A directory that changed so recently may be about to be locked."""

ROW_GROUP_ROWS = 100_000
"""Larger pages are written in two parts or more, which two tasks can read at once."""

WORKER_STATE_BYTES = 256 * 2**20
"""What a worker remembers of states unless it is told."""

CACHED_BYTES = 256 * 2**20
"""Tables read back from files are remembered up to this size, all together, unless told less."""

SPILLED = "spilled"
"""The folder for pages that memory has no room for; of a store in memory it lies on disk."""

MEMORY = "memory"


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
        self.worker_state_bytes = WORKER_STATE_BYTES
        """How much each worker remembers of what operators keep by key."""
        self.states_to_disk = False
        """Whether there is no room in memory for what operators keep by key."""
        self._disk: Path | None = None
        self._disk_lock: int | None = None
        self._numbers = itertools.count()
        self._guard = threading.Lock()
        self._tables: OrderedDict[tuple[str, ...], pa.Table] = OrderedDict()
        self._tables_bytes = 0
        self._doomed: list[str] = []
        for name in ("pages", "state"):
            (self.directory / name).mkdir(exist_ok=True)
        shutil.rmtree(self.directory / "slots", ignore_errors=True)
        (self.directory / "slots").mkdir()

    # -- names nobody else uses ------------------------------------------------------------

    def new_name(self, folder: str, suffix: str = "") -> str:
        """A name within the store that no file had before."""
        return f"{folder}/{self.run}-{next(self._numbers)}{suffix}"

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
                self._disk = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
                self._disk_lock = _locked(self._disk)
                (self.directory / SPILLED).symlink_to(self._disk)
        return self.new_name(SPILLED, suffix)

    def new_slot(self) -> Path:
        """An empty directory for links to pages."""
        directory = self.directory / self.new_name("slots")
        directory.mkdir()
        return directory

    def path(self, name: str) -> Path:
        """Where a file of the store lies."""
        return self.directory / name

    # -- tables ----------------------------------------------------------------------------

    def write(self, table: pa.Table, name: str) -> None:
        """Writes a Parquet file as Spark reads it fastest."""
        write_parquet(table, self.directory / name)

    def read(self, names: tuple[str, ...]) -> pa.Table:
        """The rows of some Parquet files; the latest that were read are remembered."""
        with self._guard:
            if names in self._tables:
                self._tables.move_to_end(names)
                return self._tables[names]
        table = pa.concat_tables(
            [pq.read_table(self.directory / name, memory_map=False) for name in names]
        )
        with self._guard:
            if names not in self._tables:
                self._tables[names] = table
                self._tables_bytes += table.nbytes
            while self._tables_bytes > self.cached_bytes and self._tables:
                self._tables_bytes -= self._tables.popitem(last=False)[1].nbytes
        return table

    @property
    def read_again_bytes(self) -> int:
        """What is remembered of what was read back."""
        return self._tables_bytes

    def remove(self, names: tuple[str, ...]) -> None:
        """Gives files up; a step under way reads them through links of its own."""
        with self._guard:
            forgotten = self._tables.pop(names, None)
            self._tables_bytes -= 0 if forgotten is None else forgotten.nbytes
            self._doomed += names
        if not self.is_durable:
            self.sweep()

    def sweep(self) -> None:
        """Deletes the files that were given up: the log no longer names them."""
        with self._guard:
            doomed, self._doomed = self._doomed, []
        for name in doomed:
            (self.directory / name).unlink(missing_ok=True)

    def account(self, change: int) -> None:
        """Counts bytes in or out; from any thread."""
        with self._guard:
            self.bytes += change

    def remove_garbage(self, named: set[str]) -> None:
        """Deletes every page and state that nothing names: leftovers of steps never committed."""
        for folder in ("pages", "state"):
            for file in (self.directory / folder).iterdir():
                if f"{folder}/{file.name}" not in named:
                    file.unlink(missing_ok=True)

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


def _made(directory: Path) -> Path:
    directory = directory.expanduser().absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateError(f"store {directory}: {error.strerror}; name a directory") from None
    return directory


def _locked(directory: Path) -> int | None:
    """The descriptor of a directory that is now ours until we close it or die; None if it is not.

    The system gives such a lock up with the process that held it, however that ended.
    """
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

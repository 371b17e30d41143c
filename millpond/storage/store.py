"""Where an engine keeps what its steps write: one directory, in memory or on disk.

``memory`` is a directory of the process's own, in shared memory where the machine has it; it goes
with the process. A directory that the user names stays, and has a commit log beside the files. Of a
store at an address (`millpond.storage.objects`) the directory has copies to work on, and goes with
the process too. All have the same layout, so a step does not know which one it writes to.
"""

import atexit
import contextlib
import errno
import itertools
import os
import re
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from millpond.connectors.forcing import force_files
from millpond.errors import DamageError, StateError, StoreError
from millpond.storage.faults import FULL, forcing, naming, store_fault, writing
from millpond.storage.files import ARROW, PARQUET, read_rows, write_rows
from millpond.storage.lease import Lease, locked, refuse_driven
from millpond.storage.mark import Mark, way_out
from millpond.storage.objects.objects import RESTORE, is_address
from millpond.storage.objects.remote import Remote
from millpond.storage.sums import Sum, difference, length_difference, sum_of

PREFIX = "millpond-pages-"
"""The names of directories in memory begin with this."""

UNLOCKED_SECONDS = 10
"""A directory that changed so recently may be about to be locked."""


WORKER_STATE_BYTES = 256 * 2**20
"""What a worker remembers of states unless it is told."""

CACHED_BYTES = 256 * 2**20
"""Tables read back from files are remembered up to this size, all together, unless told less."""

SPILLED = "spilled"
"""The folder for pages that memory has no room for; of a store in memory it lies on disk."""

MEMORY = "memory"

LEAST_FREE_BYTES = 64 * 2**20
"""With less room than this in memory, what is new is written to disk."""

END = "commits.end"
"""The file that says where the log ends."""

FOLDERS = ("pages", "state", "slots")

OWN_END = r"(-[a-z]+)?(-\d+){0,2}(\.late|\.constants)?(\.parquet|\.arrow)?"
"""How the names of our files end, behind the numbers of store, run and file."""

VERIFYING_THREADS = 4
"""So many files are held against their checksums at once."""

MOST_NAMED = 5
"""So many damaged files are named in one error."""

Written = TypeVar("Written")


@dataclass(frozen=True)
class News:
    """What the log is to say of files."""

    made: dict[str, Sum]
    gone: list[str]
    given_up: int
    """How many of those given up can go once it is said."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """As the log says it, if there is anything."""
        if not self.made and not self.gone:
            return []
        made = [[name, *sum_] for name, sum_ in self.made.items()]
        return [{"kind": "files", "made": made, "gone": self.gone}]


class Store:
    """The files of one engine; nobody else writes there while it is open."""

    def __init__(
        self, location: Path | str = MEMORY, parent: Path | None = None, forces: bool = False
    ) -> None:
        """``parent``: where the directory of a store is that has none of its own."""
        self.forces = forces
        """Whether what is acknowledged is forced onto the disk, to outlive a loss of power."""
        self.is_durable = str(location) != MEMORY
        self.directory: Path
        self._disk_lock: int | None = None
        self.lease: Lease | None = None
        """The right to write, of a directory that stays."""
        self.remote = Remote.opened(str(location)) if is_address(str(location)) else None
        """Of a store at an address: what is there."""
        if self.remote is not None:
            prefix = f"{PREFIX}{self.remote.identity}-"
            self._make_own(parent or Path(tempfile.gettempdir()), prefix)
            self.mark = self.remote.mark(self.directory)
        elif self.is_durable:
            self.directory = _made(Path(location))
            self._lock = locked(self.directory)
            self.mark = self._marked()
            lock, self._lock = self._lock, None
            self.lease = Lease.taken(self.directory, lock)
        else:
            self._make_own(parent or _memory_directory() or Path(tempfile.gettempdir()))
        self.place = str(self.directory if self.remote is None else self.remote.objects.address)
        """What users call it."""
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
        self._is_over = False
        """Whether memory turned out to be full."""
        self._disk: Path | None = None
        self._numbers = itertools.count()
        self._guard = threading.Lock()
        self._tables: OrderedDict[tuple[str, ...], pa.Table] = OrderedDict()
        self._tables_bytes = 0
        self._doomed: list[str] = []
        self._sums: dict[str, Sum] = {}
        """The files of a store that stays, as they were written."""
        self._unnoted: dict[str, Sum] = {}
        """Those of them that the log does not know yet."""
        self._loose: set[str] = set()
        """Those that may be with the system and not on the disk."""
        self._unread: set[str] = set()
        """Those that an earlier run wrote and nobody has read since."""
        if not self.is_durable:
            self.prepare()

    def _make_own(self, parent: Path, prefix: str = PREFIX) -> None:
        """Makes a directory that goes with the process."""
        _remove_abandoned(parent, prefix)
        with naming(parent):
            self.directory = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._lock = locked(self.directory)
        atexit.register(self.close)

    def refuse_lost(self) -> None:
        """Refuses to go on with a store that another engine has taken."""
        lease = self.lease if self.remote is None else self.remote.lease
        if lease is not None:
            lease.check()

    def _marked(self) -> Mark:
        try:
            refuse_driven(self.directory, self._lock)
            with naming(self.directory):
                return Mark.found_or_made(self.directory, self.forces)
        except BaseException:
            self._unlock()
            raise

    def prepare(self) -> None:
        """Makes the folders, once it is sure that this is a store."""
        try:
            for name in FOLDERS:
                with naming(self.directory / name):
                    (self.directory / name).mkdir(exist_ok=True)
        except BaseException:
            self.close()
            raise
        if self._stays:
            self._empty_slots()

    # -- names nobody else uses ------------------------------------------------------------

    def new_name(self, folder: str, suffix: str = "") -> str:
        """A name within the store that no file had before; on disk where memory is full.

        In a store that stays it carries the store's own number: nobody else makes such names.
        """
        if not self.is_durable and folder != SPILLED and self._is_full():
            return self._new_name_on_disk(suffix)
        own = f"{self.mark.identity}-" if self.is_durable else ""
        return f"{folder}/{own}{self.run}-{next(self._numbers)}{suffix}"

    def is_own(self, name: str) -> bool:
        """Whether a file has a name that only this store gives."""
        return is_own(self.mark.identity, name)

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
                    self._disk_lock = locked(disk)
                    (self.directory / SPILLED).symlink_to(disk)
                self._disk = disk
        return self.new_name(SPILLED, suffix)

    def new_slot(self) -> Path:
        """An empty directory for links to pages."""
        directory = self.directory / self.new_name("slots")
        with naming(directory):
            directory.mkdir()
        return directory

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty directory on disk, for as long as it is needed."""
        folder = self.directory / (
            self.new_name("slots") if self.is_durable else self._new_name_on_disk()
        )
        try:
            with naming(folder):
                folder.mkdir()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def path(self, name: str) -> Path:
        """Where a file of the store lies."""
        return self.directory / name

    @property
    def page_suffix(self) -> str:
        """What pages are written as: in memory as it lies there, else as everybody reads it."""
        return PARQUET if self.is_durable else ARROW

    # -- tables ----------------------------------------------------------------------------

    def write(self, table: pa.Table, name: str) -> None:
        """Writes a file of rows; whole, or it is not there."""
        path = self.directory / name
        with writing(path):
            if self.is_durable and not name.startswith("slots/"):
                self.note_file(name, write_summed(table, path))
            else:
                write_rows(table, path)

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

        return self.placed(self.new_name("pages", self.page_suffix), write)

    def read(self, names: tuple[str, ...]) -> pa.Table:
        """The rows of some files; the latest that were read are remembered."""
        with self._guard:
            if names in self._tables:
                self._tables.move_to_end(names)
                return self._tables[names]
        self.verify(names)
        table = pa.concat_tables([self._read(name) for name in names])
        with self._guard:
            if names not in self._tables:
                self._tables[names] = table
                self._tables_bytes += table.nbytes
            while self._tables_bytes > self.cached_bytes and self._tables:
                self._tables_bytes -= self._tables.popitem(last=False)[1].nbytes
        return table

    def read_one_by_one(self, names: Iterable[str]) -> Iterator[pa.Table]:
        """The rows of some Parquet files, one file after another; nothing of it is remembered."""
        for name in names:
            self.verify((name,))
            yield self._read(name)

    def _read(self, name: str) -> pa.Table:
        with naming(self.directory / name):
            return read_rows(self.directory / name)

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

    def sweep(self, count: int | None = None) -> None:
        """Deletes the first so many files that were given up, all if it is not said: the log no
        longer names them.

        One that cannot be deleted now is left for the next time: what has happened has happened.
        """
        with self._guard:
            doomed, self._doomed = self._doomed[:count], self._doomed[len(self._doomed[:count]) :]
            for name in doomed:
                for known in (self._sums, self._unnoted):
                    known.pop(name, None)
                self._unread.discard(name)
                self._loose.discard(name)
        left = [name for name in doomed if not _unlinked(self.directory / name)]
        with self._guard:
            self._doomed += left

    # -- what the log knows of files -------------------------------------------------------

    def note_file(self, name: str, sum_: Sum) -> None:
        """A file was written that the log is to know."""
        with self._guard:
            self._sums[name] = self._unnoted[name] = sum_
            self._loose.add(name)

    def force(self) -> None:
        """Forces the files written since the last time, and all that an earlier run has left."""
        if self.remote is not None:
            return  # they are only copies
        loose = self.loose()
        with forcing(self.directory):
            force_files(map(self.path, loose))
        self.are_put(loose)

    def loose(self) -> set[str]:
        """The files that are needed and not yet where they stay."""
        with self._guard:
            return self._loose.difference(self._doomed)

    def are_put(self, names: set[str]) -> None:
        """Some files are where they stay."""
        with self._guard:
            self._loose -= names

    def note_line(self, line: Mapping[str, Any], name: str, key: str) -> None:
        """The same of what a task has answered, if it has written such a file."""
        if key in line:
            self.note_file(line[name], Sum(*line[key]))

    def news(self) -> News:
        """What the log is to say of files: those made since, and those that go when it says so."""
        with self._guard:
            doomed = set(self._doomed)
            made = {name: sum_ for name, sum_ in self._unnoted.items() if name not in doomed}
            gone = [n for n in self._doomed if n in self._sums and n not in self._unnoted]
            return News(made, gone, len(self._doomed))

    def noted(self, news: News) -> None:
        """The log has said it: what is gone is deleted."""
        with self._guard:
            for name in news.made:
                self._unnoted.pop(name, None)
        self.sweep(news.given_up)

    def everything(self) -> News:
        """What a log that begins anew says of files."""
        with self._guard:
            doomed = set(self._doomed)
            known = {name: sum_ for name, sum_ in self._sums.items() if name not in doomed}
            return News(known, [], len(self._doomed))

    # -- after a restart -------------------------------------------------------------------

    def replay(self, made: Iterable[Sequence[Any]], gone: Iterable[str]) -> None:
        """Takes what the log says of files."""
        self._sums |= {name: Sum(*sum_) for name, *sum_ in made}
        for name in gone:
            self._sums.pop(name, None)

    def replayed(self) -> None:
        """The log is read: what it says of files is to be held against them before they count."""
        self._unread = set(self._sums)
        self._loose = set(self._sums) if self.remote is None else set()
        self._doomed = [name for name in self._doomed if name in self._sums]

    @property
    def file_names(self) -> set[str]:
        """The files that the log knows."""
        return set(self._sums)

    def faults(self, names: Iterable[str], is_whole: bool = True) -> dict[str, str]:
        """What is wrong with which of some files; of their lengths only, if not ``is_whole``."""
        asked = sorted(names)
        look = self._fault if is_whole else self._length_fault
        with ThreadPoolExecutor(VERIFYING_THREADS) as threads:
            found = dict(zip(asked, threads.map(look, asked), strict=True))
        return {name: fault for name, fault in found.items() if fault is not None}

    def _fault(self, name: str) -> str | None:
        if name not in self._sums:
            return "is gone, as the log says itself"
        fault = difference(self.directory / name, self._sums[name])
        if fault is None:
            self._unread.discard(name)
        return fault

    def _length_fault(self, name: str) -> str | None:
        try:
            length = (self.directory / name).stat().st_size
        except OSError:
            return self._fault(name)
        return length_difference(length, self._sums.get(name, Sum(length, 0)))

    def verify(self, names: Iterable[str]) -> None:
        """Refuses files of an earlier run that are not as they were written."""
        if self._unread and not self._unread.isdisjoint(names):
            self.refuse(self.faults(self._unread.intersection(names)))

    def refuse(self, faults: Mapping[str, str]) -> None:
        """Says what is wrong with files, if something is."""
        if faults:
            said = [f"{name} {fault}" for name, fault in list(faults.items())[:MOST_NAMED]]
            more = len(faults) - len(said)
            said += [f"and {more} more"] if more else []
            way = way_out(self.directory) if self.remote is None else RESTORE
            raise DamageError(f"store {self.place}: {'; '.join(said)}; {way}")

    def account(self, change: int) -> None:
        """Counts bytes in or out; from any thread."""
        with self._guard:
            self.bytes += change

    def remove_garbage(self, named: set[str]) -> None:
        """Deletes what nothing names of our own files: leftovers of steps never committed.

        Whatever else lies there is not ours.
        """
        with self._guard:
            self._doomed += [name for name in self._sums if name not in named]
        for folder in ("pages", "state"):
            for file in self._own_files(folder):
                if f"{folder}/{file.name}" not in named | self._sums.keys():
                    _unlinked(file)  # what stays costs room, and nothing else

    def _own_files(self, folder: str) -> list[Path]:
        files = (self.directory / folder).iterdir()
        return [file for file in files if self.is_own(file.name) and not file.is_dir()]

    def _empty_slots(self) -> None:
        """Removes our links; a folder goes with the last of them."""
        slots = self.directory / "slots"
        for file in slots.iterdir() if slots.is_dir() else ():
            if self.is_own(file.name):
                _remove_links(file)

    def close(self) -> None:
        """Removes what is in memory, and lets go of the directory; may be called again."""
        if self._lock is None and not self.directory.exists():
            self._unlock()
            return
        if self._stays and self.lease is None:
            return  # it was closed before; what lies there may be another engine's by now
        if self.lease is not None and not self.lease.is_held:
            self._unlock()  # what lies there is another engine's
            return
        if self._stays:
            self._empty_slots()
            with contextlib.suppress(OSError):  # something is there that is not ours
                (self.directory / "slots").rmdir()
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
            if self._disk is not None:
                shutil.rmtree(self._disk, ignore_errors=True)
            atexit.unregister(self.close)
        self._unlock()

    @property
    def _stays(self) -> bool:
        """Whether the directory is the store, and does not go with the process."""
        return self.is_durable and self.remote is None

    def _unlock(self) -> None:
        for lock in (self._lock, self._disk_lock):
            if lock is not None:
                os.close(lock)
        self._lock = self._disk_lock = None
        if self.lease is not None:
            self.lease.close()
        if self.remote is not None:
            self.remote.lease.close()
        self.lease = None


def is_own(identity: str, name: str) -> bool:
    """Whether a file has a name that only the store of a number gives."""
    return bool(re.fullmatch(rf"{identity}-\d+-\d+{OWN_END}", name))


def _remove_links(place: Path) -> None:
    """Removes a slot, with the links and pieces that we have put there and nothing else."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        return
    for folder, _, names in os.walk(place, topdown=False):
        for name in names:
            if re.fullmatch(r"\d+\.(parquet|arrow)", name):
                (Path(folder) / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


def write_summed(table: pa.Table, path: Path | str) -> Sum:
    """Writes a file of rows; its length and checksum."""
    write_rows(table, path)
    return sum_of(Path(path))


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


def _remove_abandoned(parent: Path, prefix: str = PREFIX) -> None:
    """Removes the directories of engines that were killed."""
    for directory in parent.glob(prefix + "*"):
        with contextlib.suppress(OSError):  # another engine may be quicker, or another user's
            if time.time() - directory.stat().st_mtime < UNLOCKED_SECONDS:
                continue
            lock = locked(directory)
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

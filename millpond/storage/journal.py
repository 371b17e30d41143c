"""The journal of an engine: notes of what happened, written to the store's log in groups.

Nothing is deleted from a store before the notes that make it garbage are in the log. A store in
memory has no log: its notes go nowhere, and files are deleted at once.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from millpond.connectors.forcing import force, force_names
from millpond.errors import DamageError, StoreError, UnforcedError
from millpond.storage.faults import forcing, naming
from millpond.storage.formats import Record
from millpond.storage.log import CommitLog, LogEnd
from millpond.storage.mark import LOG, NAME, way_out
from millpond.storage.objects.log import ObjectLog
from millpond.storage.objects.remote import Remote
from millpond.storage.store import END, Store
from millpond.storage.transitions import Transition

LOG_BYTES = 4 * 2**20
"""A shorter log is never begun anew."""

GROWTH = 4
"""Nor is one before it is so many times as long as when it began."""

logger = logging.getLogger("millpond")


class Journal:
    """Takes notes, and sees to it that they are in the log before anybody relies on them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log: CommitLog | ObjectLog | None = None
        self._end: LogEnd | None = None
        self._records: list[Record] = []
        self._most_bytes = LOG_BYTES
        self._notes: list[Record] = []
        self._is_forced = False
        """Whether the log, the mark and all names are on the disk."""
        self._doubt: UnforcedError | None = None
        """What could not be forced: what follows would stand on something that may not be there."""
        self.on_written: Callable[[], None] = lambda: None
        """Called when all notes are in the log; without one, when they would be."""
        if store.is_durable:
            try:
                with naming(store.directory):
                    if store.remote is None:
                        self._open()
                    else:
                        self._open_remote(store.remote)
            except BaseException:
                store.close()
                raise

    def _open(self) -> None:
        """Opens the log of a store, or begins it; what is not sound is refused as it is."""
        store, path = self._store, self._store.path(LOG)
        identity = store.mark.identity
        if not store.mark.has_log:
            self._log = CommitLog(path, begins=True, identity=identity)
            self._log.lease = store.lease
            self._end = LogEnd(store.path(END))
            self._has_grown()
            store.prepare()
            with self._forcing(self._log):
                store.mark = store.mark.with_log(store.forces)
        else:
            self._read(path, identity)
            store.prepare()

    def _open_remote(self, remote: Remote) -> None:
        """Takes a store at an address, and makes copies of the files that its log knows."""
        self._store.prepare()
        self._log, self._records = remote.log(self._store)

    def _read(self, path: Path, identity: str) -> None:
        if not path.is_file():
            raise DamageError(
                f"store {path.parent}: its log {path.name} is missing; {way_out(path.parent)}"
            )
        end = LogEnd.read(self._store.path(END))
        if path.stat().st_size == 0:
            raise DamageError(f"{path}: the log is empty (0 bytes); {way_out(path.parent)}")
        log = CommitLog(path, identity=identity)
        log.lease = self._store.lease
        try:
            if log.lease is not None and log.lease.took_over:
                log.take_over(log.lease)
            self._records = list(log.read(end))
        except BaseException:
            log.close()
            raise
        self._log, self._end = log, LogEnd(self._store.path(END))

    def _has_grown(self) -> None:
        """Says where the log ends now; if that cannot be said it is found when the log is read."""
        if self._log is not None and self._end is not None:
            with suppress(OSError):
                self._end.write(self._log.last_number)

    @property
    def is_durable(self) -> bool:
        """Whether notes survive the process."""
        return self._log is not None

    @property
    def forces(self) -> bool:
        """Whether what is acknowledged outlives a loss of power."""
        return self._store.forces and self.is_durable

    @forces.setter
    def forces(self, forces: bool) -> None:
        """From the next ``flush`` on, which also forces what there is already."""
        self._store.forces = forces
        self._is_forced &= forces

    def note(self, transition: Transition) -> None:
        """Adds what is about to happen, with its pages written; it counts from the next ``flush``
        on."""
        if self._log is not None:
            self._notes.append(transition.record())

    @property
    def length(self) -> int:
        """How many notes wait to be written."""
        return len(self._notes)

    def take_back(self, length: int) -> None:
        """Drops the notes taken since there were so many: what they speak of did not happen."""
        del self._notes[length:]

    @contextmanager
    def ahead(self, flushes: bool = True) -> Iterator[None]:
        """The notes taken inside are in the log at the end; else they are taken back.

        So what they say is done behind it. Without ``flushes`` they wait for those that follow.
        """
        before = self.length
        try:
            yield
            if flushes:
                self.flush()
        except BaseException:
            self.take_back(before)
            raise

    def flush(self) -> None:
        """Writes the notes taken since, as one; then deletes what they have made garbage.

        If that fails they wait for the next time, in order: the log is behind, never wrong.
        """
        if self._log is None:
            self.on_written()
            return
        news = self._store.news()
        records = news.records + self._notes
        with self._forcing(self._log):
            if records:
                self._log.append(records)
            self._notes = []
            self._has_grown()
        self._store.noted(news)
        self.on_written()

    @contextmanager
    def _forcing(self, log: CommitLog | ObjectLog) -> Iterator[None]:
        """Has files be on the disk before the log speaks of them.

        What could not be forced is in doubt, and stays so until the store is opened again: the
        system may have given up what it still shows.
        """
        if self._doubt is not None:
            raise UnforcedError(str(self._doubt), self._doubt.errno)
        try:
            log.forces = self._store.forces
            if log.forces and isinstance(log, CommitLog):
                self._store.force()
                self._force_beginning(log)
            yield
        except UnforcedError as error:
            self._doubt = error
            raise

    def _force_beginning(self, log: CommitLog) -> None:
        """Forces the log as it was found or made, the mark and all names, once."""
        if self._is_forced or self._end is None:
            return
        directory = self._store.directory
        log.force()
        self._end.force()
        with forcing(directory):
            force(directory / NAME)
            force_names(directory / NAME)
        self._is_forced = True

    def try_to_flush(self) -> None:
        """Writes the notes taken since if that can be done now; nobody depends on it."""
        try:
            self.flush()
        except StoreError as error:
            logger.warning("what was noted waits: %s", error)

    @property
    def is_long(self) -> bool:
        """Whether the log has grown so much that it should begin anew."""
        return self._log is not None and self._log.bytes > self._most_bytes

    def begin_anew(self, whole: Iterable[Transition]) -> None:
        """Replaces the log by what makes the same of nothing."""
        if self._log is None:
            return
        records = [each.record() for each in whole]
        news = self._store.everything()
        with self._forcing(self._log):
            self._log.rewrite(news.records + records)
        self._has_grown()
        self._store.noted(news)
        self._most_bytes = max(LOG_BYTES, GROWTH * self._log.bytes)

    def goes_on(self) -> None:
        """The log could not begin anew: it is some time until that is tried again."""
        if self._log is not None:
            self._most_bytes = self._log.bytes + LOG_BYTES

    def records(self) -> Iterator[Record]:
        """What earlier runs have noted."""
        records, self._records = self._records, []
        yield from records

    def make_copies(self) -> None:
        """Has the files be here that the log knows, of a store that is elsewhere."""
        if isinstance(self._log, ObjectLog):
            self._log.fetch(self._store.file_names)
            self._log.remove_garbage()

    def abandon(self) -> None:
        """Writes nothing more: the store is to stay as it was found."""
        self._notes = []
        self.on_written = lambda: None
        log, self._log = self._log, None
        end, self._end = self._end, None
        for file in (log, end):
            if file is not None:
                file.close()

    def close(self) -> None:
        """Writes what is left."""
        try:
            self.try_to_flush()
        finally:
            self.abandon()

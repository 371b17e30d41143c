"""Who drives a store: one engine at a time, also where one that was paused goes on.

The system locks the directory for a process that lives, paused or not. So whoever has a store says
every few seconds that it is at work, by the time of a file; one that has not said so for long may
be replaced, by a file in its place. What it appends to the log from then on does not count: before
and behind each append it looks whether the file is still its own. A log is put in the place of
another under a lock that is held for that moment only.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from millpond.errors import StateError
from millpond.storage.faults import naming

NAME, GUARD = "millpond.lease", "millpond.guard"

LEASE_SECONDS = 30.0
"""One that has not said for so long that it is at work may be replaced."""

RENEW_SECONDS = 5.0
"""So often it is said."""

_LOCKED, _REPLACED = b"locked\n", b"in place of one that was paused\n"


class Lease:
    """The right to write to a store, until another engine takes it."""

    def __init__(self, directory: Path, lock: int | None) -> None:
        self._directory, self._path = directory, directory / NAME
        self._lock = lock
        """The directory's; None while a paused process has it."""
        self.took_over = lock is None or _said(directory / NAME) == _REPLACED
        """Whether another engine may yet go on that had the store before."""
        self._file = self._put()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="millpond-lease", daemon=True)
        self._thread.start()

    @staticmethod
    def taken(directory: Path, lock: int | None) -> Lease:
        """The lease of a store, if nobody else has it who is at work; ``lock``: the directory's,
        if that was to be had."""
        try:
            with naming(directory), _guarded(directory):
                refuse_driven(directory, lock)
                return Lease(directory, lock)
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise

    @property
    def is_held(self) -> bool:
        """Whether no other engine has taken it."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            return True  # whoever takes it puts a file there

    def check(self) -> None:
        """Refuses to go on where another engine has taken the store."""
        if not self.is_held:
            raise StateError(
                f"store {self._directory}: another engine has taken it, since this one was not "
                f"heard of for {LEASE_SECONDS:g} seconds (was it paused?); what was acknowledged "
                "is there, and nothing more is written by this one: close it"
            )

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Nobody takes it meanwhile; refused if somebody has."""
        with _guarded(self._directory):
            self.check()
            yield

    def close(self) -> None:
        """Gives it up."""
        self._stop()
        with suppress(OSError, StateError), self.guarded():
            if self._lock is None:
                self._lock = locked(self._directory)
            if self._lock is not None:
                self._path.unlink()
            else:  # the paused one, which has the directory, is to find that it was replaced
                os.utime(self._file, (0, 0))
        self._release()

    def let_go(self) -> None:
        """Lets it lie, as the death of the process does."""
        self._stop()
        self._release()

    def _stop(self) -> None:
        self._has_ended.set()
        self._thread.join()

    def _release(self) -> None:
        os.close(self._file)
        if self._lock is not None:
            os.close(self._lock)

    def _put(self) -> int:
        """Puts a file of ours in the place of the one there is."""
        beside = self._path.with_suffix(".new")
        file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(file, _LOCKED if self._lock is not None else _REPLACED)
        beside.replace(self._path)
        return file

    def _renew(self) -> None:
        while not self._has_ended.wait(RENEW_SECONDS):
            with suppress(OSError):
                os.utime(self._file)
                if self._lock is None and self.is_held:
                    self._lock_if_free()

    def _lock_if_free(self) -> None:
        """The paused process may have ended."""
        self._lock = locked(self._directory)
        if self._lock is not None:
            os.pwrite(self._file, _LOCKED, 0)
            os.ftruncate(self._file, len(_LOCKED))


def locked(directory: Path) -> int | None:
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


def refuse_driven(directory: Path, lock: int | None) -> None:
    """Refuses a store that another engine has, if that is at work."""
    age = _age_seconds(directory / NAME)
    is_at_work = age is None or age < LEASE_SECONDS
    if lock is not None:
        is_at_work &= _said(directory / NAME) == _REPLACED
    if is_at_work:
        raise _in_use(directory)


def _age_seconds(file: Path) -> float | None:
    """How long ago somebody said to be at work; None: nobody ever did."""
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return None


def _said(file: Path) -> bytes | None:
    """What a lease says of how it was taken."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _in_use(directory: Path) -> StateError:
    return StateError(
        f"store {directory}: another engine has it open; stop that one, or give this one a "
        "directory of its own"
    )


@contextmanager
def alone(directory: Path, lock: int) -> Iterator[None]:
    """Nobody takes a store meanwhile; refused if somebody drives it. ``lock``: the directory's."""
    with _guarded(directory):
        refuse_driven(directory, lock)
        yield


@contextmanager
def _guarded(directory: Path) -> Iterator[None]:
    """Nobody else takes the store, or puts a log in the place of another, meanwhile."""
    guard = os.open(directory / GUARD, os.O_RDWR | os.O_CREAT, 0o644)
    until = time.monotonic() + RENEW_SECONDS
    try:
        while True:
            try:
                fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > until:
                    raise _in_use(directory) from None
                time.sleep(0.01)
            else:
                break
        yield
    finally:
        os.close(guard)

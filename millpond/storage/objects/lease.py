"""Who works on a store at an address: one engine at a time, and nobody by mistake.

What is exact rests on the log, where nobody can put an object under a number that is taken. The
lease spares others the attempt: an object by which an engine says every few seconds that it is at
work. Whoever finds it unchanged for long takes the store, and at once if its process is one of this
machine that has ended.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from millpond.errors import DamageError, MillpondError, StateError
from millpond.storage.objects.objects import Objects

NAME = "millpond.lease"

LEASE_SECONDS = 30.0
"""One that has not said for so long that it is at work may be replaced."""

RENEW_SECONDS = 5.0
"""So often it is said."""

LOOK_SECONDS = 0.5
"""So often somebody who waits looks."""

_BEGAN = 19
"""The place of its beginning among what stands behind the name in a process's `stat`."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SPACE = Path("/proc/self/ns/pid")


@dataclass(frozen=True)
class Holder:
    """What the lease says of who has it."""

    writer: str
    fence: int
    """The number in the log at which it took the store."""
    number: int
    """Of the last object that it has put into the log."""
    beat: int
    host: str
    process: tuple[str, int, float]
    """The machine, as it was started, with the space of process ids; the id; when it began."""
    has_closed: bool = False

    @staticmethod
    def read(content: bytes | None) -> Holder | None:
        """Who has it; None if nobody ever had."""
        if content is None:
            return None
        try:
            facts = json.loads(content)
            return Holder(**{**facts, "process": tuple(facts["process"])})
        except (ValueError, KeyError, TypeError):
            raise DamageError(
                f"store: {NAME} is damaged, which says whether an engine is at work; see that none "
                "is, and delete that object: nothing else depends on it"
            ) from None

    def written(self) -> bytes:
        """As an object holds it."""
        return json.dumps(asdict(self)).encode()

    @property
    def has_ended(self) -> bool:
        """Whether it has closed the store, or its process was of this machine and is no more."""
        if self.has_closed:
            return True
        machine, process, began = self.process
        if machine != _machine():
            return False
        return _began(process) != began


def this_process() -> tuple[str, int, float]:
    """By what others of this machine know whether this process lives."""
    return _machine(), os.getpid(), _began(os.getpid()) or 0.0


def _began(process: int) -> float | None:
    """When a process began, in ticks of this machine, or 0 where no machine tells; None if there is
    no such process."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return float(text.rpartition(")")[2].split()[_BEGAN])
    except OSError:
        return 0.0 if _is_there(process) else None


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


def _machine() -> str:
    try:
        return f"{_BOOT.read_text().strip()} {_SPACE.readlink()}"
    except OSError:
        return socket.gethostname()


class ObjectLease:
    """The right to write to a store at an address, until another engine takes it."""

    def __init__(self, objects: Objects, writer: str) -> None:
        self._objects, self.writer = objects, writer
        self._holder: Holder | None = None
        self._number = 0
        self._renewed = 0.0
        self._is_lost = False
        self._has_ended = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._renew, name="millpond-lease", daemon=True)

    def wait(self) -> Holder | None:
        """Waits for whoever had the store to be silent for long; who is at work keeps it."""
        first = found = self._found()
        until = time.monotonic() + LEASE_SECONDS
        while found is not None and not found.has_ended and time.monotonic() < until:
            if found != first:
                raise StateError(
                    f"store {self._objects.address}: another engine has it open, on "
                    f"{found.host} (process {found.process[1]}); stop that one, or give this one "
                    "an address of its own"
                )
            time.sleep(LOOK_SECONDS)
            found = self._found()
        return found

    def begin(self, fence: int) -> None:
        """Says that this engine has the store since a number of the log."""
        self._number = fence
        self._holder = Holder(self.writer, fence, fence, 0, socket.gethostname(), this_process())
        self._say(self._holder)
        self._thread.start()

    def has_put(self, number: int) -> None:
        """The log has an object more; it is said when the lease is renewed."""
        self._number = number

    @property
    def is_held(self) -> bool:
        """Whether no other engine is known to have taken it."""
        return not self._is_lost

    def lose(self) -> None:
        """Another engine has the store."""
        self._is_lost = True

    def check(self) -> None:
        """Refuses to go on where another engine has taken the store, or may have."""
        if time.monotonic() - self._renewed > LEASE_SECONDS / 2 and self._holder is not None:
            self._renew_once()
        if self._is_lost:
            raise StateError(
                f"store {self._objects.address}: another engine has taken it, since this one was "
                f"not heard of for {LEASE_SECONDS:g} seconds (was it paused?); what was "
                "acknowledged is there, and nothing more is written by this one: close it"
            )

    def close(self) -> None:
        """Gives it up."""
        self.let_go()
        if self._holder is not None and not self._is_lost:
            with suppress(MillpondError):
                if not self._is_another(self._found()):
                    self._say(replace(self._holder, has_closed=True))
        self._holder = None

    def let_go(self) -> None:
        """Lets it lie, as the death of the process does."""
        self._has_ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _renew(self) -> None:
        while not self._has_ended.wait(RENEW_SECONDS):
            with suppress(MillpondError):
                self._renew_once()

    def _renew_once(self) -> None:
        with self._guard:
            if self._holder is None:
                return
            if self._is_another(self._found()):
                self._is_lost = True
                return
            self._holder = replace(self._holder, beat=self._holder.beat + 1)
            self._say(self._holder)

    def _is_another(self, found: Holder | None) -> bool:
        """Whether somebody has taken the store behind us; who had it before may yet say so."""
        ours = self._holder
        return (
            found is not None
            and ours is not None
            and found.writer != ours.writer
            and found.fence > ours.fence
        )

    def _found(self) -> Holder | None:
        return Holder.read(self._objects.get(NAME))

    def _say(self, holder: Holder) -> None:
        said = time.monotonic()
        self._objects.put(NAME, replace(holder, number=self._number).written())
        self._renewed = said

"""The engine at work: the scheduling loop, in the caller's thread or in one of its own.

One thread at a time runs the loop. A callback runs in that thread, between two steps: what it asks
for is done at once, but it can not wait for the loop that waits for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from millpond.errors import StateError
from millpond.interruption import WholeLock

IDLE_SECONDS = 0.05
"""How long a loop in the background rests before it looks at the clock again."""

logger = logging.getLogger("millpond")


class Operation:
    """Runs rounds of work until there is nothing left to do.

    ``work`` does everything that can be done now. ``read`` reads a page of a source; False means
    that no source has anything.
    """

    def __init__(self, lock: WholeLock, work: Callable[[], None], read: Callable[[], bool]) -> None:
        self._work = work
        self._read = read
        self._changed = lock.condition()
        self._lock = lock
        self._owner: int | None = None
        self._background: threading.Thread | None = None
        self._is_stopping = False
        self._drains = False
        self._wanted = self._done = 0
        self._error: BaseException | None = None

    # -- in the caller's thread ------------------------------------------------------------

    def run(self, work: Callable[[], None]) -> None:
        """Works in this thread, or has the loop in the background do it and waits."""
        with self._lock:
            if self._owner == threading.get_ident():
                raise StateError(
                    "the loop is running and waits for this callback; what you push or execute "
                    "here is worked on when the callback returns"
                )
            if self._background is not None:
                self._wait_for_background()
                return
            while self._owner is not None:
                self._changed.wait()
            self._owner = threading.get_ident()
        try:
            work()
        finally:
            with self._lock:
                self._owner = None
                self._changed.notify_all()

    def _wait_for_background(self) -> None:
        self._wanted += 1
        wanted = self._wanted
        self._changed.notify_all()
        while self._done < wanted and self._background is not None:
            self._changed.wait()

    @property
    def is_inside(self) -> bool:
        """Whether this thread is the one that runs the loop."""
        return self._owner == threading.get_ident()

    # -- in the background -----------------------------------------------------------------

    def start(self) -> None:
        """Runs the loop in a thread of its own from now on."""
        with self._lock:
            if self._background is not None:
                raise StateError("the engine runs already; stop() ends that")
            while self._owner is not None:
                self._changed.wait()
            self._is_stopping = False
            self._error = None
            self._background = threading.Thread(target=self._loop, name="millpond", daemon=True)
            self._background.start()

    def stop(self, drain: bool) -> None:
        """Ends the loop in the background; ``drain``: once everything that waits is done."""
        with self._lock:
            background = self._background
            if background is None:
                return
            self._is_stopping, self._drains = True, drain
            self._changed.notify_all()
        if background is not threading.current_thread():
            background.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    @property
    def is_stopping(self) -> bool:
        """Whether the loop in the background should end at once."""
        return self._is_stopping and not self._drains

    def wake(self) -> None:
        """Something has arrived; called with the lock held."""
        self._changed.notify_all()

    def _loop(self) -> None:
        with self._lock:
            self._owner = threading.get_ident()
        try:
            while self._round():
                pass
        except BaseException as error:
            logger.exception("the loop in the background ends")
            self._error = error
        finally:
            with self._lock:
                self._owner = self._background = None
                self._changed.notify_all()

    def _round(self) -> bool:
        with self._lock:
            wanted = self._wanted
        has_read = not self.is_stopping and self._read()
        if not self.is_stopping:
            self._work()
        with self._lock:
            if not has_read:
                self._done = max(self._done, wanted)
                self._changed.notify_all()
                if self._is_stopping:
                    return False
                self._changed.wait(IDLE_SECONDS)
            return not self.is_stopping

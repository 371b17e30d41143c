"""The engine at work: the scheduling loop, in the caller's thread or in one of its own.

One thread at a time runs the loop. While one does so in the background, what others have to do is
handed to it and done there, before it goes on by itself. A callback runs in that thread, between
two steps: what it asks for is done at once, but it can not wait for the loop that waits for it.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from millpond.errors import StateError, StoreError
from millpond.intake.arrivals import Arrivals, Intake, endless
from millpond.interruption import WholeLock, uninterrupted

IDLE_SECONDS = 0.05
"""How long a loop that has nothing to do rests before it looks at the clock again."""

STORE_SECONDS = 1.0
"""How long it rests when the store cannot be written."""

logger = logging.getLogger("millpond")


class _CutShortError(Exception):
    """The loop in the background is to end at once; what it was handed is not done."""


@dataclass(eq=False)
class _Handed:
    """What another thread has the loop in the background do, and waits for."""

    work: Callable[[], None]
    reads_on: bool
    is_done: bool = False
    error: BaseException | None = None

    def do(self) -> None:
        """Does it; what it raises is raised where it is waited for."""
        try:
            self.work()
            self.is_done = True
        except _CutShortError:
            pass  # the one who waits does the rest
        except BaseException as error:  # noqa: BLE001
            self.error, self.is_done = error, True


class Operation:
    """Takes turns until there is nothing left to do, in one thread at a time.

    ``turn`` takes what has come, and has the loop observe, decide and perform once. It answers
    whether there was anything to do, and is told whether there was not the last time: then it is
    time for what the clock promises. ``would_idle``: whether that brings nothing, so that no turn
    is needed for it. ``is_all_written``: whether all put out is where it goes.
    """

    def __init__(
        self,
        lock: WholeLock,
        turn: Callable[[Intake, bool], bool],
        would_idle: Callable[[Intake], bool],
        arrivals: Arrivals,
        is_all_written: Callable[[], bool],
    ) -> None:
        self._turn, self._would_idle = turn, would_idle
        self._is_all_written = is_all_written
        self.arrivals = arrivals
        self._changed = lock.condition()
        self._lock = lock
        self._owner: int | None = None
        self._background: threading.Thread | None = None
        self._is_stopping = False
        self._drains = False
        self._is_resting = False
        self._wanted = self._done = 0
        self._handed: deque[_Handed] = deque()
        self._own_intake = endless()
        """What the loop in the background takes by itself."""
        self._error: BaseException | None = None
        self.store_error: StoreError | None = None
        """Why the loop in the background rests, if the store could not be written."""

    def work(self, intake: Intake) -> None:
        """Takes turns until nothing is left to do and nothing more will come."""
        self._work(intake, lambda: self.arrivals.is_over(intake))
        if self.is_stopping:
            raise _CutShortError
        self.arrivals.raise_error()

    def _work(
        self, intake: Intake, is_over: Callable[[], bool], waits_for: deque[_Handed] | None = None
    ) -> None:
        """``waits_for``: what goes before it as soon as there is any."""
        is_idle = True
        while not self.is_stopping and not waits_for:
            if self._turn(intake, is_idle):
                is_idle = False
            elif not is_idle and not self._would_idle(intake):
                is_idle = True  # once more, with what the clock promises
            else:
                is_idle = True
                with self._lock:
                    if not self.arrivals.has_news:
                        if self._is_all_written() and is_over():
                            return
                        self._is_resting = True
                        self._changed.notify_all()
                        self._changed.wait(IDLE_SECONDS)
                        self._is_resting = False

    # -- in the caller's thread ------------------------------------------------------------

    def run(self, work: Callable[[], None], reads_on: bool = True) -> None:
        """Works in this thread, or has the loop in the background do it and waits.

        ``reads_on``: that loop goes on to read all that sources deliver when it is done.
        """
        with uninterrupted:  # whoever takes the loop gives it back
            if self._take(_Handed(work, reads_on)):
                try:
                    uninterrupted.call(work)
                finally:
                    self._give_back()

    def _take(self, handed: _Handed) -> bool:
        """Makes the loop this thread's, unless the one in the background has done its work."""
        with self._lock:
            self._refuse_inside()
            if self._background is not None and self._hand_over(handed):
                return False
            while self._owner is not None:
                self._changed.wait()
            self._owner = threading.get_ident()
            return True

    def _give_back(self) -> None:
        with self._lock:
            self._owner = None
            self._changed.notify_all()

    def _refuse_inside(self) -> None:
        if self._owner == threading.get_ident():
            raise StateError(
                "the loop is running and waits for this callback; what you push or execute "
                "here is worked on when the callback returns"
            )

    def _hand_over(self, handed: _Handed) -> bool:
        """Has the loop in the background do something; whether it did before it ended."""
        self._handed.append(handed)
        self._changed.notify_all()
        try:
            while not handed.is_done and self._background is not None:
                self._changed.wait()
        finally:
            if handed in self._handed:
                self._handed.remove(handed)
        if handed.error is not None:
            raise handed.error
        return handed.is_done

    def run_until_idle(self) -> None:
        """Works until nothing is left to do, or waits until the loop in the background rests."""
        if self._background is not None:
            with self._lock:
                self._refuse_inside()
                if self._background is not None:
                    self._wait_for_background()
                    return
        self.run(lambda: self.work(Intake()))

    def carry_through(self) -> None:
        """Has this thread work on what it has brought, unless somebody is at work who will."""
        with self._lock:
            is_inside = self._owner == threading.get_ident()
            if is_inside or self._background is not None:
                return
        self.run(lambda: self.work(Intake()))

    def _wait_for_background(self) -> None:
        self._wanted += 1
        wanted = self._wanted
        self._changed.notify_all()
        while self._done < wanted and self._background is not None:
            if self.store_error is not None:
                raise self.store_error
            self._changed.wait()
        self._raise_untold()

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        """Waits until something is so, or the loop has nothing more to do.

        If nobody runs the loop, this thread does, and promises nothing: when it runs is its affair.
        """
        with self._lock:
            while self._owner is not None or self._background is not None:
                if is_so() or (self._is_resting and not self.arrivals.has_news):
                    return
                self._changed.wait(IDLE_SECONDS)
            if is_so():
                return
        self.run(lambda: self.work(Intake(promises=False)))

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
            if self.is_inside:
                raise StateError(
                    "the loop is running and waits for this callback; start() when the call that "
                    "runs it has returned"
                )
            while self._owner is not None:
                self._changed.wait()
            self._is_stopping = False
            self._error = None
            self._own_intake = endless()
            self._background = threading.Thread(target=self._loop, name="millpond", daemon=True)
            self._background.start()

    def stop(self, drain: bool, seconds: float | None = None) -> bool:
        """Ends the loop in the background; ``drain``: once everything that waits is done.

        Whether it has ended, if it is waited for so many seconds only.
        """
        with self._lock:
            background = self._background
            if background is not None:
                self._is_stopping, self._drains = True, drain
                self._changed.notify_all()
        if background not in (None, threading.current_thread()):
            background.join(seconds)
            if background.is_alive():
                return False
        self._raise_untold()
        return True

    def _raise_untold(self) -> None:
        error = self.take_error()
        if error is not None:
            raise error

    @property
    def is_started(self) -> bool:
        """Whether the loop runs in a thread of its own."""
        return self._background is not None

    def take_error(self) -> BaseException | None:
        """Why the loop in the background has ended by itself, if it has; told once."""
        error, self._error = self._error, None
        return error

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
            while not self._works_to_the_end():
                pass
            self.arrivals.raise_error()
        except BaseException as error:
            logger.exception("the loop in the background ends")
            self._error = error
        finally:
            with self._lock:
                self._owner = self._background = None
                self._is_stopping = False
                self._changed.notify_all()

    def _works_to_the_end(self) -> bool:
        """Works; if it is only that the store cannot be written, that is said, and tried again."""
        try:
            self._work_by_itself()
            while self._do_handed():
                self._work_by_itself()
        except StoreError as error:
            if self._is_stopping:
                raise
            with self._lock:
                if str(error) != str(self.store_error):
                    logger.warning("the engine waits for its store: %s", error)
                self.store_error = error
                self._changed.notify_all()
                self._changed.wait(STORE_SECONDS)
            return False
        self.store_error = None
        return True

    def _work_by_itself(self) -> None:
        intake = self._own_intake
        self._work(intake, lambda: self._rests(intake), waits_for=self._handed)

    def _do_handed(self) -> bool:
        """Does what was handed over first; whether there was anything."""
        with self._lock:
            if self.is_stopping or not self._handed:
                return False
            handed = self._handed.popleft()
        handed.do()
        with self._lock:
            self._own_intake = endless() if handed.reads_on else Intake(waits=True)
            self._changed.notify_all()
        return True

    def _rests(self, intake: Intake) -> bool:
        """There is nothing to do now: whoever waits for that is told; whether that is the end."""
        if not self.arrivals.is_quiet(intake):
            return False
        self.store_error = None
        self._done = self._wanted
        self._changed.notify_all()
        return self._is_stopping or self.arrivals.error is not None

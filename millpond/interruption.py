"""What Ctrl-C may not cut in two.

Python raises KeyboardInterrupt in the main thread between any two instructions. Where half of
something would be worse than all or nothing of it, the interruption waits for the end.
"""

import threading
from _signal import (  # type: ignore[import-not-found]  # `signal` makes an enum at each call
    SIGINT,
    getsignal,
    signal,
)
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Handler = Callable[[int, FrameType | None], Any]


class Uninterrupted:
    """Whoever is inside is interrupted on leaving; sections may lie in one another.

    Only the main thread is ever interrupted, so one object serves all sections of a process. A
    handler that is not Python's, or that ignores or kills, is left alone.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._handler: Handler | None = None
        self._was_asked = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            if self._depth == 0:
                self._defer()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth = max(0, self._depth - 1)
            if self._depth == 0:
                self._allow()

    @property
    def was_asked(self) -> bool:
        """Whether an interruption waits for the end of what this thread does."""
        is_main = threading.current_thread() is threading.main_thread()
        return is_main and self._was_asked and self._depth > 0

    def suspend(self) -> int:
        """Lets interruptions through again, and one that has come; how deep inside this was."""
        if threading.current_thread() is not threading.main_thread():
            return 0
        depth, self._depth = self._depth, 0
        try:
            self._allow()
        except BaseException:
            self.resume(depth)
            raise
        return depth

    def resume(self, depth: int) -> None:
        """As deep inside again as before ``suspend``."""
        if depth:
            self._defer()
            self._depth = depth

    def call(self, function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        """Calls a function that can be interrupted after all, from inside.

        It either raises the interruption itself or has run to its end: one that comes before it
        begins is raised without a call, one that comes when it has ended waits like others.
        """
        if threading.current_thread() is not threading.main_thread() or self._handler is None:
            return function(*arguments, **named)
        handler, depth = self._handler, self._depth
        if self._was_asked:
            self._was_asked = False
            handler(SIGINT, None)
        late = False

        def hear(number: int, frame: FrameType | None) -> None:
            nonlocal late
            if frame is not None and frame.f_code is _CALL:
                late = True
            else:
                handler(number, frame)

        self._depth, self._handler = 0, None
        signal(SIGINT, hear)
        try:
            return function(*arguments, **named)
        finally:
            signal(SIGINT, self._note)
            self._depth, self._handler, self._was_asked = depth, handler, late

    def _defer(self) -> None:
        handler = getsignal(SIGINT)
        if callable(handler):
            self._was_asked, self._handler = False, handler
            signal(SIGINT, self._note)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self._was_asked = True

    def _allow(self) -> None:
        handler, self._handler = self._handler, None
        if handler is not None:
            signal(SIGINT, handler)
            if self._was_asked:
                self._was_asked = False
                handler(SIGINT, None)


_CALL = Uninterrupted.call.__code__

uninterrupted = Uninterrupted()
"""The one of this process."""


class WholeLock:
    """A lock to be entered repeatedly, whose holder is not interrupted; waits on it can be."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As the lock of `threading`."""
        uninterrupted.__enter__()
        if self._lock.acquire(blocking, timeout):
            return True
        uninterrupted.__exit__()
        return False

    def release(self) -> None:
        """As the lock of `threading`; an interruption that has waited is raised."""
        self._lock.release()
        uninterrupted.__exit__()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def condition(self) -> threading.Condition:
        """Something to wait for, and to be woken by, with this lock."""
        return threading.Condition(self)  # type: ignore[arg-type]

    # -- for `threading.Condition` ---------------------------------------------------------

    def _is_owned(self) -> bool:
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def _release_save(self) -> tuple[Any, int]:
        saved, depth = self._lock._release_save(), 0  # type: ignore[attr-defined]
        try:
            depth = uninterrupted.suspend()
        except BaseException:  # it is raised instead of waiting, with the lock held
            self._lock._acquire_restore(saved)  # type: ignore[attr-defined]
            raise
        return saved, depth

    def _acquire_restore(self, saved: tuple[Any, int]) -> None:
        self._lock._acquire_restore(saved[0])  # type: ignore[attr-defined]
        uninterrupted.resume(saved[1])

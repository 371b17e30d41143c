"""What Ctrl-C may not cut in two.

Python raises KeyboardInterrupt in the main thread between any two instructions. Where half of
something would be worse than all or nothing of it, the interruption waits for the end.
"""

import os
import threading
from _signal import (  # type: ignore[import-not-found]  # `signal` makes an enum at each call
    SIGINT,
    getsignal,
    signal,
)
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Handler = Callable[[int, FrameType | None], Any]
Inside = tuple[int, bool]
"""How deep inside, and whether what is at no depth can be interrupted."""


class Uninterrupted:
    """Whoever is inside is interrupted on leaving; sections may lie in one another.

    Only the main thread is ever interrupted, so one object serves all sections of a process. A
    handler that is not Python's, or that ignores or kills, is left alone. Ours stands in the place
    of another one from the outermost section's beginning to its end; who is inside, and whether
    interruptions are let through for the moment, it knows by two numbers: a section within a
    function that can be interrupted costs no call of the system.
    """

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        """The thread that is interrupted."""
        self._depth = 0
        self._handler: Handler | None = None
        """Who is interrupted, while our handler stands in the place of this one."""
        self._is_open = False
        """Whether what is at no depth can be interrupted though our handler stands."""
        self._was_asked = False
        self._replaced: list[tuple[Handler | None, bool]] = []
        """For each time our handler was put somewhere: what was so before."""
        self._ours: Handler = self._hear

    def __enter__(self) -> None:
        if get_ident() == self._main:
            if self._depth == 0 and getsignal(SIGINT) is not self._ours:
                self._defer()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        if get_ident() == self._main and self._depth:
            self._depth -= 1
            if self._depth == 0 and (self._was_asked or not self._is_open):
                self._leave()

    def forked(self) -> None:
        """This is a copy of the process, whose main thread is the one that has made it."""
        self._main = get_ident()

    @property
    def was_asked(self) -> bool:
        """Whether an interruption waits for the end of what this thread does."""
        return get_ident() == self._main and self._was_asked and self._depth > 0

    def suspend(self) -> Inside | None:
        """Lets interruptions through, and one that has come; how it was inside."""
        if get_ident() != self._main or self._handler is None:
            return None
        inside = self._depth, self._is_open
        self._depth, self._is_open = 0, True
        try:
            self._raise_if_asked()
        except BaseException:
            self.resume(inside)
            raise
        return inside

    def resume(self, inside: Inside | None) -> None:
        """As it was inside before ``suspend``."""
        if inside is not None:
            self._depth, self._is_open = inside
            if getsignal(SIGINT) is not self._ours:
                signal(SIGINT, self._ours)

    def call(self, function: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        """Calls a function that can be interrupted after all, from inside.

        It either raises the interruption itself or has run to its end: one that comes before it
        begins is raised without a call, one that comes when it has ended waits like others.
        """
        if get_ident() != self._main or self._handler is None:
            return function(*arguments, **named)
        inside = self._depth, self._is_open
        if self._was_asked:
            self._was_asked = False
            self._handler(SIGINT, None)
        self._depth, self._is_open = 0, True
        try:
            return function(*arguments, **named)
        finally:
            self._depth, self._is_open = inside
            if getsignal(SIGINT) is not self._ours:  # the function has put another one there
                signal(SIGINT, self._ours)

    def _defer(self) -> None:
        handler = getsignal(SIGINT)
        if callable(handler):
            self._was_asked = False
            signal(SIGINT, self._ours)  # who is interrupted before it has not begun to defer
            before = self._handler, self._is_open
            self._handler, self._is_open = handler, False
            self._replaced.append(before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        is_outside = self._depth == 0 and self._is_open
        if not is_outside or self._handler is None or _is_at_an_edge(frame):
            self._was_asked = True
        else:
            self._handler(number, frame)

    def _leave(self) -> None:
        """The outermost section is over, or the outermost one of what can be interrupted."""
        if self._is_open:
            self._raise_if_asked()
        elif self._handler is not None:
            handler = self._handler
            self._handler, self._is_open = self._replaced.pop()
            signal(SIGINT, handler)
            if self._was_asked:
                self._was_asked = False
                handler(SIGINT, None)

    def _raise_if_asked(self) -> None:
        if self._was_asked and self._handler is not None:
            self._was_asked = False
            self._handler(SIGINT, None)


def _is_at_an_edge(frame: FrameType | None) -> bool:
    """Whether what can be interrupted has not begun yet, or has ended: a function that is called
    from inside, or a wait whose lock is yet to be taken again."""
    return frame is not None and frame.f_code in _EDGES


uninterrupted = Uninterrupted()
"""The one of this process."""

os.register_at_fork(after_in_child=uninterrupted.forked)


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
        uninterrupted.__enter__()
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        uninterrupted.__exit__()

    def condition(self) -> threading.Condition:
        """Something to wait for, and to be woken by, with this lock."""
        return threading.Condition(self)  # type: ignore[arg-type]

    # -- for `threading.Condition` ---------------------------------------------------------

    def _is_owned(self) -> bool:
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def _release_save(self) -> tuple[Any, Inside | None]:
        saved = self._lock._release_save()  # type: ignore[attr-defined]
        try:
            inside = uninterrupted.suspend()
        except BaseException:  # it is raised instead of waiting, with the lock held
            self._lock._acquire_restore(saved)  # type: ignore[attr-defined]
            raise
        return saved, inside

    def _acquire_restore(self, saved: tuple[Any, Inside | None]) -> None:
        self._lock._acquire_restore(saved[0])  # type: ignore[attr-defined]
        uninterrupted.resume(saved[1])


_EDGES = frozenset(
    function.__code__
    for function in (Uninterrupted.call, Uninterrupted.resume, WholeLock._acquire_restore)
)

"""How long a test waits for what must come.

Nothing is judged by it: a busy machine may take its time, and so may a JVM that starts on one. Only
what never comes fails a test.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SECONDS = 600.0
T = TypeVar("T")


def wait_until(holds: Callable[[], T]) -> T:
    """Waits for something to become true, and hands it on."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE_SECONDS:g} seconds")
        time.sleep(0.02)
    return found


def wait_until_inside(thread: threading.Thread, function: str) -> None:
    """Waits for a thread to be in a function of this name, where somebody lets it wait."""
    wait_until(lambda: function in _functions(thread))


def _functions(thread: threading.Thread) -> set[str]:
    """The names of the functions that a thread is in."""
    frame = sys._current_frames().get(thread.ident or 0)
    return {each.name for each in traceback.extract_stack(frame)} if frame else set()

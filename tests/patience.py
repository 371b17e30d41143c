"""How long a test waits for what must come.

Nothing is judged by it: a busy machine may take its time, and so may a JVM that starts on one. Only
what never comes fails a test.
"""

from __future__ import annotations

import time
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

"""A copy of the process in which a test may break what other tests need whole."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def complaint_of_copy(work: Callable[[], None]) -> str:
    """Has a copy of this process do something: what it raises there, as text; here nothing changes.

    The copy has this thread and no other, so what it does must not wait for others.
    """
    reading, writing = os.pipe()
    copy = os.fork()
    if not copy:
        _do(work, writing)
    os.close(writing)
    with os.fdopen(reading) as said:
        complaint = said.read()
    assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
    return complaint


def _do(work: Callable[[], None], writing: int) -> None:
    """Does it and ends the process, without what Python does at its end."""
    try:
        work()
    except BaseException:  # noqa: BLE001 (the test is told)
        os.write(writing, traceback.format_exc()[-10_000:].encode())
    finally:
        os._exit(0)

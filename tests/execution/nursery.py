"""Processes that become residents: copies of one that has read the code once, as Spark's are."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from millpond.execution.residents.wire import Invitation

CODE = """
import os, pickle, signal, sys
from millpond.execution.residents.resident import reside

signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # copies that end are no zombies
while True:
    try:
        invitation = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    pid = os.fork()
    if not pid:
        try:
            reside(invitation, lambda: os._exit(0))
        except (OSError, EOFError):
            pass
        finally:
            os._exit(0)
    print(pid, flush=True)
"""


@dataclass(frozen=True)
class Begun:
    """A process that was begun."""

    pid: int

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def wait(self) -> None:
        """Waits for its end."""
        while not self.has_ended:
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends it, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """Begins residents; it ends with this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def begin(self, invitation: Invitation) -> Begun:
        """Begins a process that takes an invitation."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with self._guard:
            pickle.dump(invitation, process.stdin)
            process.stdin.flush()
            return Begun(int(process.stdout.readline()))


_one: list[Nursery] = []
_guard = threading.Lock()


def begin(invitation: Invitation) -> Begun:
    """Begins a process that takes an invitation, in the nursery of this process."""
    with _guard:
        if not _one:
            _one.append(Nursery())
    return _one[0].begin(invitation)

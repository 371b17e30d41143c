"""What a Python worker of Spark's does once for itself, so that small tasks are quick in it.

PySpark answers Spark in several small writes. TCP holds a small one back until the one before is
acknowledged, and the receiver waits 40 ms for something to send the acknowledgement with. And after
every task PySpark has Python look for garbage among all that a worker has imported, 40 ms again.
"""

import gc
import os
import socket
import sys
from functools import cache
from pathlib import Path

from millpond.spark.internals import leave_quietly

OPEN_FILES = Path("/dev/fd")


@cache
def make_ready() -> None:
    """To be called when a task begins; done once."""
    send_at_once()
    leave_quietly()


class FrozenModules:
    """What has been imported is there to stay: who looks for garbage need not look there."""

    def __init__(self) -> None:
        self._modules = 0

    def __call__(self) -> None:
        """To be called when a task ends; done when there are new modules."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            gc.collect()
            gc.freeze()


freeze = FrozenModules()


def send_at_once() -> None:
    """Has the sockets of this process send what is written to them at once."""
    for each in list(OPEN_FILES.iterdir()) if OPEN_FILES.is_dir() else ():
        try:
            _send_at_once(os.dup(int(each.name)))
        except OSError:
            continue  # closed meanwhile, or not a socket


def _send_at_once(descriptor: int) -> None:
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        return
    with connection:
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

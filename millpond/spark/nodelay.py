"""Answers that leave a Python worker at once.

A worker answers Spark in several small writes. TCP holds a small one back until the one before is
acknowledged, and the receiver waits 40 ms for something to send the acknowledgement with: most of
the time of a small job. PySpark does not turn that off, so a worker does it for its own sockets.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

OPEN_FILES = Path("/dev/fd")


@cache
def send_at_once() -> None:
    """Has the sockets of this process send what is written to them at once; done once."""
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

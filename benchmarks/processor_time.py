"""Processor seconds of this process and of all that it has started."""

from __future__ import annotations

import contextlib

import psutil


def tree_seconds() -> float:
    """User and system time so far, of processes that still live and of children that have ended."""
    here, seconds = psutil.Process(), 0.0
    for process in (here, *here.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            spent = process.cpu_times()
            seconds += spent.user + spent.system + spent.children_user + spent.children_system
    return float(seconds)

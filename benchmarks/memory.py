"""How much memory the driver, the JVM below it and its Python workers use."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from pyspark.sql import SparkSession

MEBIBYTE = 2**20


class Peak:
    """The largest resident set of this process and all below it while it is watched."""

    def __init__(self) -> None:
        self.mebibytes = resident_mebibytes()

    def sample(self) -> None:
        """Looks now."""
        self.mebibytes = max(self.mebibytes, resident_mebibytes())


@contextmanager
def watched(every_seconds: float = 0.1) -> Iterator[Peak]:
    """Watches the memory of the block from another thread."""
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(every_seconds):
            peak.sample()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()
        peak.sample()


def resident_mebibytes() -> float:
    """The resident sets of this process and all below it, together."""
    here = psutil.Process()
    return sum(map(_resident, [here, *here.children(recursive=True)])) / MEBIBYTE


def driver_mebibytes() -> float:
    """The resident set of this Python process alone."""
    return _resident(psutil.Process()) / MEBIBYTE


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0


def heap_mebibytes(spark: SparkSession) -> float:
    """The JVM's heap in use after a collection; what waits to be cleaned gets a second one."""
    jvm: Any = spark._jvm
    for _ in range(2):
        jvm.java.lang.System.gc()
        time.sleep(0.2)
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
    return float(heap.getUsed()) / MEBIBYTE

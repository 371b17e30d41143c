"""What the running operators of an engine share."""

from __future__ import annotations

from dataclasses import dataclass

from millpond.spark.frames import Frames
from millpond.storage.queues import Queue


@dataclass(frozen=True)
class Limits:
    """How steps are cut, where kernels run, and the seed of samples."""

    step_rows: int = 500_000
    driver_rows: int = 2_000_000
    partitions: int = 2
    seed: int = 0


@dataclass(frozen=True)
class Surroundings:
    """The queues, Spark, and the settings."""

    queues: dict[str, Queue]
    frames: Frames
    since: dict[str, int]
    """Streams are read after these times: a query sees what comes after its registration."""
    limits: Limits

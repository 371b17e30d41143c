"""The backlog: what waits in queues, apart from what windows retain.

A row waits until every reader that works on it is past it, steps under way included, and counts
once however many readers there are. Only queues that changed are counted again, and none of their
pages are walked but those that a reader has read in part.
"""

import time
from typing import NamedTuple

from millpond.identities import QueueId
from millpond.storage.queues import Queue


class Amount(NamedTuple):
    """So much waits in a queue, and so much it holds in memory, windows included."""

    rows: int = 0
    bytes: int = 0
    memory_bytes: int = 0


class Backlog:
    """What waits in all queues, and in each."""

    def __init__(self) -> None:
        self.rows = self.bytes = 0
        self.memory_bytes = 0
        """What the queues hold in memory: what waits, and what windows retain."""
        self.peak_bytes = 0
        self._amounts: dict[QueueId, Amount] = {}
        self._began = self._changed = time.monotonic()
        self._byte_seconds = 0.0

    def mean_bytes(self) -> float:
        """How many bytes have waited, on the average over time."""
        byte_seconds = self.byte_seconds()
        seconds = self._changed - self._began
        return byte_seconds / seconds if seconds > 0 else float(self.bytes)

    def byte_seconds(self) -> float:
        """What has waited so far, times how long."""
        self._pass()
        return self._byte_seconds

    def of(self, queue: QueueId) -> Amount:
        """What waits in one queue."""
        return self._amounts.get(queue, Amount())

    def count(self, queue: Queue) -> None:
        """A queue has changed: what waits there now."""
        self._set(queue.name, Amount(*queue.backlog(), queue.bytes - queue.spilled_bytes))

    def forget(self, queue: QueueId) -> None:
        """A queue is gone."""
        self._set(queue, Amount())
        self._amounts.pop(queue, None)

    def _set(self, queue: QueueId, now: Amount) -> None:
        self._pass()
        before = self.of(queue)
        self._amounts[queue] = now
        self.rows += now.rows - before.rows
        self.bytes += now.bytes - before.bytes
        self.memory_bytes += now.memory_bytes - before.memory_bytes
        self.peak_bytes = max(self.peak_bytes, self.bytes)

    def most_retaining(self) -> QueueId:
        """The queue of which windows retain the most in memory."""
        amounts = self._amounts
        return max(amounts, key=lambda name: amounts[name].memory_bytes - amounts[name].bytes)

    def largest(self) -> list[QueueId]:
        """The queues, those first that hold the most in memory."""
        return sorted(self._amounts, key=lambda name: -self._amounts[name].memory_bytes)

    def _pass(self) -> None:
        now = time.monotonic()
        self._byte_seconds += self.bytes * (now - self._changed)
        self._changed = now

"""How much comes: a rate that follows the last seconds, and the course of a whole run."""

from __future__ import annotations

import math
import time
from array import array
from itertools import repeat

WINDOW_SECONDS = 10.0
"""What is so long ago counts a third of what is new."""

MOST_SLOTS = 512
"""So many slots a course has; when it is longer, two become one."""


class Rate:
    """Events a second, of which old ones fade."""

    def __init__(self, now: float | None = None) -> None:
        self._began = self._last = time.monotonic() if now is None else now
        self._sum = 0.0

    def add(self, count: float, now: float | None = None) -> None:
        """So many have come."""
        self._fade(time.monotonic() if now is None else now)
        self._sum += count

    def per_second(self, now: float | None = None) -> float:
        """How many come in a second, of late."""
        now = time.monotonic() if now is None else now
        self._fade(now)
        # As much as a steady stream of one a second would have left by now.
        steady = WINDOW_SECONDS * -math.expm1((self._began - now) / WINDOW_SECONDS)
        return self._sum / steady if steady > 0 else 0.0

    def _fade(self, now: float) -> None:
        if now > self._last:
            self._sum *= math.exp((self._last - now) / WINDOW_SECONDS)
            self._last = now


class Course:
    """How many came in each slot of time since the beginning, and how often some did; slots grow
    with the run."""

    def __init__(self, slot_seconds: float = 0.01, now: float | None = None) -> None:
        self.slot_seconds = slot_seconds
        self.counts = array("d")
        self.times = array("d")
        self.total = 0.0
        self._began = time.monotonic() if now is None else now

    def add(self, count: float, now: float | None = None) -> None:
        """So many have come."""
        seconds = (time.monotonic() if now is None else now) - self._began
        slot = int(seconds / self.slot_seconds)
        while slot >= MOST_SLOTS:
            self.slot_seconds *= 2
            slot //= 2
            self.counts, self.times = _halved(self.counts), _halved(self.times)
        for slots, more in ((self.counts, count), (self.times, 1.0)):
            slots.extend(repeat(0.0, slot + 1 - len(slots)))
            slots[slot] += more
        self.total += count


def _halved(slots: array[float]) -> array[float]:
    """Two slots as one."""
    pairs = zip(slots[::2], [*slots[1::2], 0.0], strict=False)
    return array("d", (first + second for first, second in pairs))

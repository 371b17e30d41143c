"""What waits for operators, over time."""

from __future__ import annotations

import time


class Backlog:
    """The bytes that wait, each counted once for every operator that is to read it."""

    def __init__(self, now: float | None = None) -> None:
        self.bytes = 0.0
        self.peak_bytes = 0.0
        self._of: dict[int, float] = {}
        self._began = self._last = time.monotonic() if now is None else now
        self._sum = 0.0

    def note(self, operator: int, waiting: float, now: float | None = None) -> None:
        """So many bytes wait for an operator from now on."""
        self._pass(time.monotonic() if now is None else now)
        self.bytes += waiting - self._of.get(operator, 0.0)
        self._of[operator] = waiting
        self.peak_bytes = max(self.peak_bytes, self.bytes)

    def forget(self, operator: int) -> None:
        """An operator has gone."""
        self.note(operator, 0.0)
        del self._of[operator]

    def mean_bytes(self, now: float | None = None) -> float:
        """How many bytes have waited, on the average over time."""
        self._pass(time.monotonic() if now is None else now)
        seconds = self._last - self._began
        return self._sum / seconds if seconds > 0 else self.bytes

    def _pass(self, now: float) -> None:
        if now > self._last:
            self._sum += self.bytes * (now - self._last)
            self._last = now

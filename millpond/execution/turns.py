"""What a step costs beside its execution: observing, deciding, preparing, committing."""

import time

WEIGHT = 0.05
"""How much the last turn counts, of what is known of all."""


class Turns:
    """The seconds of a turn of the loop beside the step in it, where one follows another."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: float | None = None
        self._count, self._sum = 0, 0.0

    def over(self, step_seconds: float, now: float | None = None) -> None:
        """A turn is over, in which a step took so long."""
        now = time.monotonic() if now is None else now
        if self._last is not None:
            beside = max(0.0, now - self._last - step_seconds)
            self.seconds += WEIGHT * (beside - self.seconds) if self.seconds else beside
            self._count += 1
            self._sum += beside
        self._last = now

    @property
    def mean_seconds(self) -> float:
        """The mean of all."""
        return self._sum / self._count if self._count else 0.0

    def interrupted(self) -> None:
        """What follows is not the next turn."""
        self._last = None

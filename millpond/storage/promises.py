"""When the heartbeat of a queue came to which time, so that waiting for time is told from work."""

import math
from bisect import bisect_left

MOST_MOMENTS = 256
"""So many are remembered; of more, every other one of the older half is forgotten."""


class Promises:
    """The moments at which a heartbeat rose, by the process's monotonic clock.

    >>> promises = Promises()
    >>> promises.note(0, 10, 1.0); promises.note(10, 20, 5.0)
    >>> promises.reached(10), promises.reached(11), promises.reached(0), promises.reached(21)
    (1.0, 5.0, -inf, inf)
    """

    def __init__(self) -> None:
        self._heartbeats: list[int] = []
        self._moments: list[float] = []
        self._before = 0

    def note(self, before: int, heartbeat: int, now: float) -> None:
        """The heartbeat rises from one time to another."""
        if not self._heartbeats:
            self._before = before
        self._heartbeats.append(heartbeat)
        self._moments.append(now)
        if len(self._heartbeats) > MOST_MOMENTS:
            del self._heartbeats[: MOST_MOMENTS // 2 : 2]
            del self._moments[: MOST_MOMENTS // 2 : 2]

    def reached(self, ticks: int) -> float:
        """When the heartbeat came to a time; where moments are forgotten, a little later."""
        if ticks <= self._before:
            return -math.inf
        place = bisect_left(self._heartbeats, ticks)
        return self._moments[place] if place < len(self._moments) else math.inf

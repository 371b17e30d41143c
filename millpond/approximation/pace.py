"""How much of the work that is counted gets done in a second: the rest is not work on tuples.

A load says what tuples cost by what steps have taken; what lies between steps, or grows with the
number of steps, it does not know. While work waits, nobody is idle: so what was done by then shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)

SLOWEST = 0.5
"""Nobody believes that less gets done."""


@dataclass
class Pace:
    """Seconds of counted work in a second, by the last so many seconds in which work waited."""

    span_seconds: float
    value: float = 1.0
    _done: float = 0.0
    _tuples: dict[Hashable, int] = field(default_factory=dict)
    _looks: deque[tuple[float, float]] = field(default_factory=deque)

    def look(self, now: float, done: Mapping[Name, tuple[int, float]], is_busy: bool) -> float:
        """The pace by now; ``done``: how many tuples each operator has done, and what one costs.

        >>> pace = Pace(1.0)
        >>> [pace.look(at, {"op1": (tuples, 0.01)}, True) for at, tuples in ((0, 0), (1, 50))]
        [1.0, 0.5]
        """
        for name, (tuples, cost_seconds) in done.items():
            self._done += (tuples - self._tuples.get(name, tuples)) * cost_seconds
            self._tuples[name] = tuples
        if not is_busy:
            self._looks.clear()
        elif not self._looks or self._looks[-1][1] != self._done:
            self._looks.append((now, self._done))
            self._measure(now)
        return self.value

    def _measure(self, now: float) -> None:
        while len(self._looks) > 2 and now - self._looks[1][0] >= self.span_seconds:
            self._looks.popleft()
        (first, before), (last, done) = self._looks[0], self._looks[-1]
        if last - first >= self.span_seconds / 2:
            self.value = min(1.0, max(SLOWEST, (done - before) / (last - first)))

"""When a tuple enters and leaves a Range window: arithmetic, known when it arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from millpond.cql.algebra import RangeWindow
from millpond.schema import FOREVER

Time = TypeVar("Time", int, npt.NDArray[np.int64])


@dataclass(frozen=True)
class WindowTimes:
    """The times of ``[RANGE length SLIDE slide]``; a length of None is unbounded.

    >>> WindowTimes(5, None).leave(10), WindowTimes(5, 10).enter(3), WindowTimes(5, 10).leave(3)
    (16, 10, 10)
    """

    length: int | None
    slide: int | None

    @staticmethod
    def of(window: RangeWindow) -> WindowTimes:
        """The times of a window of a plan."""
        return WindowTimes(window.length_ticks, window.slide_ticks)

    def enter(self, time: Time) -> Time:
        """When a tuple of this time enters; for an array, when each does."""
        return time if self.slide is None else -(-time // self.slide) * self.slide

    def leave(self, time: Time) -> Time:
        """When a tuple of this time leaves; for an array, when each does."""
        if self.length is None:
            return time * 0 + FOREVER
        if self.slide is None:
            return time + self.length + 1
        return (time + self.length) // self.slide * self.slide + self.slide

    def latest_entered(self, at: int) -> int:
        """The largest tuple time that has entered by then."""
        return at if self.slide is None else at // self.slide * self.slide

    def latest_left(self, at: int) -> int:
        """The largest tuple time that has left by then."""
        if self.length is None:
            return -FOREVER * 2
        return self.latest_entered(at) - self.length - 1

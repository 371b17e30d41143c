"""When a tuple enters and leaves a Range window: arithmetic, known when it arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from millpond.cql.algebra import HopWindow, RangeWindow
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
    def of(window: RangeWindow | HopWindow) -> WindowTimes:
        """The times of a window of a plan; of windows that hop, of the last that a tuple enters."""
        if isinstance(window, HopWindow):
            return HopTimes.of_each(window)[0]
        return WindowTimes(window.length_ticks, window.slide_ticks)

    @property
    def is_partial(self) -> bool:
        """Whether some tuples are never in it."""
        return self.slide is not None

    @property
    def enters_later(self) -> bool:
        """Whether a tuple may enter after its time."""
        return self.slide is not None

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


@dataclass(frozen=True)
class HopTimes(WindowTimes):
    """The times of one of the windows that a tuple of ``[HOP length SLIDE slide OFFSET offset]`` is
    in: of the one that begins ``number`` slides before the last that does.

    >>> HopTimes(10, 5, 0, 0).leave(7), HopTimes(10, 5, 0, 1).leave(7)
    (15, 10)
    """

    length: int
    slide: int
    offset: int
    number: int

    @staticmethod
    def of_each(window: HopWindow) -> list[HopTimes]:
        """The times of all windows that a tuple may be in at once."""
        every, offset = window.slide_ticks, window.offset_ticks
        return [HopTimes(window.length_ticks, every, offset, k) for k in range(window.at_once)]

    @property
    def is_partial(self) -> bool:
        return self.length < (self.number + 1) * self.slide

    @property
    def enters_later(self) -> bool:
        return False

    @property
    def shift(self) -> int:
        """From the last begin of a window to the end of this one."""
        return self.length - self.number * self.slide

    def enter(self, time: Time) -> Time:
        """When a tuple of this time enters: at once."""
        return time

    def leave(self, time: Time) -> Time:
        """When the window ends; a tuple that comes too late for it leaves at once."""
        too_late = (time - self.offset) % self.slide - self.shift
        return time - too_late * (too_late < 0)

    def latest_entered(self, at: int) -> int:
        """The largest tuple time that has entered by then."""
        return at

    def latest_left(self, at: int) -> int:
        """The largest tuple time that has left by then."""
        ended = (at - self.shift - self.offset) // self.slide
        return min(at, (ended + 1) * self.slide + self.offset - 1)

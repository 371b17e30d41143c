"""What a simulated window join keeps of its inputs, and how much of it each new tuple meets."""

import numpy as np

from millpond.scheduling.snapshot import FloatArray
from millpond.simulator.buffers import TupleBuffer
from millpond.simulator.plan import Window
from millpond.simulator.steps import IntArray


class Batch:
    """The tuples of one step in the order they are served."""

    def __init__(self, arrival: FloatArray, of_side: IntArray, mass: FloatArray | None) -> None:
        self.arrival, self.of_side, self.mass = arrival, of_side, mass
        self.partners: FloatArray = np.zeros(0)
        self.ends: FloatArray = np.zeros(0)


class KeptWindows:
    """The tuples in the windows of a join, one window for each input."""

    def __init__(self, window: Window, inputs: int) -> None:
        self.window = window
        self._windows = [TupleBuffer(1, fluid=False) for _ in range(inputs)]

    def partners(self, batch: Batch) -> FloatArray:
        """How many tuples of the other inputs' windows each tuple meets."""
        partners = np.zeros(len(batch.arrival))
        for number, window in enumerate(self._windows):
            others = batch.of_side != number
            mine_before = np.cumsum(~others) - ~others
            kept = window.arrivals(window.cursors[0], window.tail)
            known = np.concatenate([kept, batch.arrival[~others]])
            present = (len(kept) + mine_before)[others]
            partners[others] += self._window_size(known, present, batch.arrival[others])
        return partners

    def _window_size(self, known: FloatArray, present: IntArray, now: FloatArray) -> IntArray:
        if self.window.rows is not None:
            return np.minimum(present, self.window.rows)
        gone = np.searchsorted(known, now - (self.window.seconds or 0.0), side="left")
        left: IntArray = np.maximum(present - gone, 0)
        return left

    def remember(self, number: int, arrival: FloatArray) -> None:
        """Keep what the window holds; the other inputs may lag behind, so theirs counts too."""
        kept = self._windows[number]
        kept.append(arrival, None)
        if self.window.rows is not None:
            kept.cursors[0] = max(kept.cursors[0], kept.tail - self.window.rows)
            return
        passed = min(each.last_arrival for each in self._windows)
        known = kept.arrivals(kept.cursors[0], kept.tail)
        gone = np.searchsorted(known, passed - (self.window.seconds or 0.0), side="left")
        kept.cursors[0] += int(gone)

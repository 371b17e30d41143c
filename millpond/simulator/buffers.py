"""Queues of the simulator: one growing array of tuples, one cursor a reader.

A tuple is its arrival time and, in the fluid model, its mass: how much of the original is left.
"""

from __future__ import annotations

import numpy as np

from millpond.scheduling.snapshot import FloatArray

_SMALLEST = 64


class TupleBuffer:
    """The output of a stream or operator, read by several operators at their own pace.

    Positions count tuples from the beginning of time; `tail` is the next to be written. `view` is
    `arrival` again, several times faster for single values.
    """

    __slots__ = ("_capacity", "arrival", "cursors", "first", "last_arrival", "mass", "tail", "view")

    def __init__(self, readers: int, fluid: bool) -> None:
        self._capacity = _SMALLEST
        self.arrival: FloatArray = np.empty(_SMALLEST)
        self.view = memoryview(self.arrival)  # type: ignore[arg-type]
        self.mass: FloatArray | None = np.empty(_SMALLEST) if fluid else None
        self.first = 0
        self.tail = 0
        self.cursors = [0] * readers
        self.last_arrival = -np.inf

    @classmethod
    def of_arrivals(cls, arrival: FloatArray, mass: FloatArray | None, readers: int) -> TupleBuffer:
        """A buffer that holds all arrivals of a stream; `tail` shows how many have come."""
        buffer = cls(readers, mass is not None)
        buffer.arrival, buffer.mass = arrival, mass
        buffer.view = memoryview(arrival)  # type: ignore[arg-type]
        buffer._capacity = len(arrival)
        return buffer

    def append(self, arrival: FloatArray, mass: FloatArray | None) -> None:
        """Add tuples in order of time."""
        count = len(arrival)
        start = self.tail - self.first
        if start + count > self._capacity:
            self._make_room(count)
            start = self.tail - self.first
        self.arrival[start : start + count] = arrival
        if self.mass is not None and mass is not None:
            self.mass[start : start + count] = mass
        self.tail += count
        self.last_arrival = arrival[-1]

    def append_one(self, arrival: float) -> None:
        """Add one whole tuple."""
        start = self.tail - self.first
        if start >= self._capacity:
            self._make_room(1)
            start = self.tail - self.first
        self.view[start] = arrival  # type: ignore[call-overload]
        self.tail += 1
        self.last_arrival = arrival

    def arrivals(self, start: int, stop: int) -> FloatArray:
        """The arrival times of the tuples at these positions."""
        return self.arrival[start - self.first : stop - self.first]

    def masses(self, start: int, stop: int) -> FloatArray | None:
        """The masses of the tuples at these positions, or None when all are whole."""
        return None if self.mass is None else self.mass[start - self.first : stop - self.first]

    def amount(self, start: int, stop: int) -> float:
        """How many tuples are at these positions, by mass."""
        if self.mass is None:
            return float(stop - start)
        return float(self.mass[start - self.first : stop - self.first].sum())

    def release(self, reader: int, count: int) -> float:
        """Move one reader on; returns how much no reader needs any more."""
        cursors = self.cursors
        before = min(cursors)
        cursors[reader] += count
        after = min(cursors)
        return self.amount(before, after) if after > before else 0.0

    def take_over(self, pipe: TupleBuffer) -> None:
        """Hold what waits in a pipe of the same producer.

        All unread tuples of one producer end with the one it made last, so the longest row of them
        has room for every reader.
        """
        self.last_arrival = max(self.last_arrival, pipe.last_arrival)
        waits = pipe.tail - pipe.cursors[0]
        if waits > max(0, self.tail - min(self.cursors)):
            self.arrival = pipe.arrivals(pipe.cursors[0], pipe.tail).copy()
            self.view = memoryview(self.arrival)  # type: ignore[arg-type]
            mass = pipe.masses(pipe.cursors[0], pipe.tail)
            self.mass = None if mass is None else mass.copy()
            self._capacity, self.first = waits, self.tail - waits

    def _make_room(self, count: int) -> None:
        keep = min(self.cursors, default=self.tail)
        kept = self.tail - keep
        low = keep - self.first
        self._capacity = max(_SMALLEST, 2 * (kept + count))
        self.arrival = _moved(self.arrival, low, low + kept, self._capacity)
        self.view = memoryview(self.arrival)  # type: ignore[arg-type]
        if self.mass is not None:
            self.mass = _moved(self.mass, low, low + kept, self._capacity)
        self.first = keep


def _moved(values: FloatArray, start: int, stop: int, capacity: int) -> FloatArray:
    fresh = np.empty(capacity)
    fresh[: stop - start] = values[start:stop]
    return fresh

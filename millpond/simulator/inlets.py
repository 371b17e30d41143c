"""The inputs of simulated operators: readers of queues, or pipes where there is no queue."""

from __future__ import annotations

import math
from typing import NamedTuple

from millpond.scheduling.snapshot import Producer
from millpond.simulator.buffers import TupleBuffer


class Inlet:
    """One input of an operator: a reader of a queue, or a pipe of its own."""

    __slots__ = ("_place", "buffer", "is_pipe", "reader", "source", "tuple_bytes")

    def __init__(
        self, source: Producer, buffer: TupleBuffer, reader: int, tuple_bytes: float
    ) -> None:
        self.source, self.buffer, self.reader = source, buffer, reader
        self.tuple_bytes = tuple_bytes
        self.is_pipe = False
        self._place = reader

    def open_pipe(self, parked: int) -> None:
        """Read from a pipe of its own, which starts with what still waits in the queue."""
        shared, cursor = self.buffer, self.buffer.cursors[self.reader]
        pipe = TupleBuffer(1, shared.mass is not None)
        if cursor < shared.tail:
            pipe.append(shared.arrivals(cursor, shared.tail), shared.masses(cursor, shared.tail))
        pipe.last_arrival = shared.last_arrival
        shared.cursors[self._place] = parked
        self.buffer, self.reader, self.is_pipe = pipe, 0, True

    def close_pipe(self, shared: TupleBuffer) -> None:
        """Read from the shared queue again, beginning with what still waits in the pipe."""
        pipe = self.buffer
        shared.take_over(pipe)
        shared.cursors[self._place] = shared.tail - (pipe.tail - pipe.cursors[0])
        self.buffer, self.reader, self.is_pipe = shared, self._place, False

    def oldest(self) -> float:
        """The arrival time of the first waiting tuple; infinite when none waits."""
        buffer, cursor = self.buffer, self.buffer.cursors[self.reader]
        return buffer.view[cursor - buffer.first] if cursor < buffer.tail else math.inf

    def second_oldest(self) -> float:
        """The arrival time of the tuple behind the first; infinite when there is none."""
        buffer, cursor = self.buffer, self.buffer.cursors[self.reader] + 1
        return buffer.view[cursor - buffer.first] if cursor < buffer.tail else math.inf

    def take_one(self) -> float:
        """Move on by one tuple; returns its arrival time."""
        buffer, cursors = self.buffer, self.buffer.cursors
        cursor = cursors[self.reader]
        cursors[self.reader] = cursor + 1
        return buffer.view[cursor - buffer.first]

    def release(self, count: int) -> Release:
        """Move on by so many tuples."""
        buffer, cursor = self.buffer, self.buffer.cursors[self.reader]
        taken = buffer.amount(cursor, cursor + count)
        if len(buffer.cursors) == 1:
            buffer.cursors[0] = cursor + count
            return Release(self, taken, taken)
        return Release(self, taken, buffer.release(self.reader, count))


class Release(NamedTuple):
    """Tuples a step took from one input, by mass, of which `freed` nobody else still needs."""

    inlet: Inlet
    taken: float
    freed: float

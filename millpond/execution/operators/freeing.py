"""Operators that free rows of their state which nothing can reach any more.

A bound of a stream is known when a step is prepared; how much of it holds depends on how far the
step comes.
"""

from __future__ import annotations

from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.identities import StreamId
from millpond.planning.bounded import Freeing
from millpond.storage.forms import Frees


class FreeingOperator(RunningOperator):
    """Knows which rows of its state can go after a step."""

    freeing: tuple[Freeing, ...] = ()
    """By which columns of streams they can."""

    @property
    def freed_rows(self) -> int:
        """How many rows were freed so far."""
        raise NotImplementedError

    def prepare(self, until: int) -> OperatorStep:
        """Looks by what rows can be freed in the step."""
        self.freeing = tuple(self.around.freeing(self.identity))
        return super().prepare(until)

    def frees(self, side: int, until: int) -> Frees:
        """The least keys that are still to be kept, after a step, on a side of its state."""
        found = []
        for each in (each for each in self.freeing if each.side == side):
            bounds = [self._bound(stream, column, until) for stream, column in each.sources]
            known = [bound for bound in bounds if bound is not None]
            if known and len(known) == len(bounds):
                found.append((each.column, min(known)))
        return tuple(found)

    def _bound(self, stream: StreamId, column: int, until: int) -> int | None:
        queue = self.around.queues.get(stream.queue)
        bounds = None if queue is None else queue.bounds.get(column)
        return None if bounds is None else bounds.at(until)

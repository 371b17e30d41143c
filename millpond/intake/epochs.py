"""Epochs: from when on queries see the streams.

Queries that are registered while nothing comes belong to one epoch. What was there before is in
no stream for them; a relation has for them, from the beginning on, what it had by then.
"""

from collections.abc import Callable

from millpond.identities import QueueId

Times = dict[QueueId, int]
"""After which times something is seen, by queues."""


class Epochs:
    """The epochs to which operators belong."""

    def __init__(self, reached: Callable[[], Times]) -> None:
        self._reached = reached
        """How far the streams are now."""
        self.since: dict[int, Times] = {}
        """For each epoch the times after which its queries read the streams, and see relations
        change."""
        self.last = 0
        self.has_moved = False
        """Whether something has come or was read since the last one began."""

    @property
    def next(self) -> int:
        """The epoch a query registered now would belong to."""
        return self.last + self.has_moved

    def moved(self) -> None:
        """Something has come or was read: who registers from now on belongs to another epoch."""
        self.has_moved = True

    def begin(self, number: int, since: Times, is_of_now: bool) -> None:
        """An epoch begins; one that is not of now is one query's own."""
        self.last, self.since[number] = number, since
        self.has_moved = not is_of_now

    def since_of(self, epoch: int) -> Times:
        """After which times the queries of an epoch read the streams, of one to come too."""
        if epoch == 0 or epoch in self.since:
            return self.since.get(epoch, {})
        return self._reached()

    def forget(self, in_use: set[int]) -> set[int]:
        """Forgets past epochs to which no operator belongs any more; which these are."""
        over = self.since.keys() - in_use - {self.last}
        for epoch in over:
            del self.since[epoch]
        return over

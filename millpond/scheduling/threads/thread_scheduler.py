"""The thread scheduler, level 3 of the HMTS paper's architecture (section 4.2.2).

The paper asks for preemptive scheduling by priorities that can change at run time and starve
nobody. Here a priority is a share: each thread has a virtual time that grows by the seconds it ran
divided by its priority, and the one that is furthest behind goes next (stride scheduling). So
processor time is divided in the ratio of priorities, and a thread of the lowest priority still
gets its turn.
"""

from collections.abc import Sequence

from millpond.scheduling.ready_queue import ReadyQueue
from millpond.scheduling.threads.configuration import check_priority

LEAST_SECONDS = 1e-9
"""What a turn costs at least, so that turns too short to measure do not repeat for ever."""


class ThreadScheduler:
    """Says which thread runs next.

    >>> threads = ThreadScheduler([2.0, 1.0])
    >>> threads.wake(0); threads.wake(1)
    >>> def turn():
    ...     thread = threads.next()
    ...     threads.start(thread); threads.charge(thread, 1.0); threads.resume(thread)
    ...     return thread
    >>> [turn() for _ in range(6)]
    [0, 1, 0, 0, 1, 0]
    """

    def __init__(self, priorities: Sequence[float]) -> None:
        self._priority = list(priorities)
        self._virtual_seconds = [0.0] * len(self._priority)
        self._last_turn = [0] * len(self._priority)
        self._turns = 0
        self._clock = 0.0
        self._ready = ReadyQueue()

    def priority(self, thread: int) -> float:
        """The present priority of a thread."""
        return self._priority[thread]

    def set_priority(self, thread: int, priority: float) -> None:
        """Change a thread's share from now on."""
        check_priority(priority)
        self._priority[thread] = priority
        self._requeue(thread)

    def wake(self, thread: int) -> None:
        """A thread got work: it joins those that wait, with no claim on the time it was idle."""
        if thread not in self._ready:
            self._virtual_seconds[thread] = max(self._virtual_seconds[thread], self._clock)
            self.resume(thread)

    def resume(self, thread: int) -> None:
        """A thread that had its turn has more to do."""
        self._ready.put(thread, self._key(thread))

    def suspend(self, thread: int) -> None:
        """A thread has nothing to do."""
        self._ready.discard(thread)

    def start(self, thread: int) -> None:
        """A thread begins its turn."""
        self._ready.discard(thread)
        self._clock = max(self._clock, self._virtual_seconds[thread])

    def next(self) -> int | None:
        """The waiting thread that is furthest behind, the higher priority first among equals."""
        return self._ready.best()

    def charge(self, thread: int, seconds: float) -> None:
        """Note how long a thread ran."""
        self._virtual_seconds[thread] += max(seconds, LEAST_SECONDS) / self._priority[thread]
        self._turns += 1
        self._last_turn[thread] = self._turns
        self._requeue(thread)

    def _requeue(self, thread: int) -> None:
        if thread in self._ready:
            self._ready.put(thread, self._key(thread))

    def _key(self, thread: int) -> tuple[float, ...]:
        return self._virtual_seconds[thread], -self._priority[thread], self._last_turn[thread]

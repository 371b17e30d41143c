"""The thread scheduler, level 3 of the HMTS paper's architecture (section 4.2.2).

The paper asks for preemptive scheduling by priorities that can change at run time and starve
nobody. Here a priority is a share: each thread has a virtual time that grows by the seconds it ran
divided by its priority, and the one that is furthest behind goes next (stride scheduling). So
processor time is divided in the ratio of priorities, and a thread of the lowest priority still
gets its turn. And a thread that waits grows old: once it has been passed over often enough it goes
next, whatever its priority, so that it waits for a number of turns that nobody can stretch.
"""

from __future__ import annotations

from collections.abc import Sequence

from millpond.scheduling.ready_queue import ReadyQueue
from millpond.scheduling.threads.configuration import check_priority

LEAST_SECONDS = 1e-9
"""What a turn costs at least, so that turns too short to measure do not repeat for ever."""


AGING = 100
"""So many turns for each thread there is a thread that has work is passed over at most."""


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
        self._charges = self._turns = 0
        self._clock = 0.0
        self._ready = ReadyQueue()
        self._since: dict[int, int] = {}
        """The turn since which each of those waits that do, who waits for longest first."""

    def succeeded(
        self, priorities: Sequence[float], before: Sequence[int | None]
    ) -> ThreadScheduler:
        """Another with these threads, of which some were there before, with their time and age;
        nobody is ready yet, and who has nothing to do any more is to be suspended."""
        other = ThreadScheduler(priorities)
        other._charges, other._clock, other._turns = self._charges, self._clock, self._turns
        now = {was: thread for thread, was in enumerate(before) if was is not None}
        other._since = {now[was]: since for was, since in self._since.items() if was in now}
        for thread, was in enumerate(before):
            if was is not None:
                other._virtual_seconds[thread] = self._virtual_seconds[was]
                other._last_turn[thread] = self._last_turn[was]
        return other

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
        self._since.setdefault(thread, self._turns)
        self._ready.put(thread, self._key(thread))

    def suspend(self, thread: int) -> None:
        """A thread has nothing to do."""
        self._since.pop(thread, None)
        self._ready.discard(thread)

    def start(self, thread: int) -> None:
        """A thread begins its turn."""
        self.suspend(thread)
        self._turns += 1
        self._clock = max(self._clock, self._virtual_seconds[thread])

    def next(self) -> int | None:
        """The waiting thread that is furthest behind, the higher priority first among equals; or
        one that has waited for too long."""
        for oldest, since in self._since.items():
            if self._turns - since >= AGING * len(self._priority):
                return oldest
            break
        return self._ready.best()

    def charge(self, thread: int, seconds: float) -> None:
        """Note how long a thread ran."""
        self._virtual_seconds[thread] += max(seconds, LEAST_SECONDS) / self._priority[thread]
        self._charges += 1
        self._last_turn[thread] = self._charges
        self._requeue(thread)

    def _requeue(self, thread: int) -> None:
        if thread in self._ready:
            self._ready.put(thread, self._key(thread))

    def _key(self, thread: int) -> tuple[float, ...]:
        return self._virtual_seconds[thread], -self._priority[thread], self._last_turn[thread]

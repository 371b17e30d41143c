"""The budget: memory for all that an engine holds of its data, in the driver and its workers.

That is what waits in queues and what windows retain, kept results, late and left-out rows, what is
remembered of states and of pages that were read again, and what steps under way put out. The caches
and the steps have shares that they keep to; what they leave is for pages.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

from millpond.errors import StoreError
from millpond.identities import QueueId
from millpond.settings import format_bytes
from millpond.storage.allocators import Residue
from millpond.storage.backlog import Backlog
from millpond.storage.kept_pages import KeptPages
from millpond.storage.pages import Page
from millpond.storage.queues import Queue

SPILLED_TO = 0.8
"""What spilling leaves of the budget in memory, so that it is not done for every page."""

LEAST_CACHED_BYTES = 2**20
"""So much of what is read again is remembered, however small the budget is."""

STATE_SHARES, CACHE_SHARES = 2, 8
"""States, and pages that were read again, may have such a part of the budget."""

PAGE_SHARES = 4
"""Such a part is left for pages in any case."""

STEP_SHARES = 8
"""What steps under way put out may take such a part of the budget, all together."""

WORK_SHARES = 4
"""Steps under way need such a part for all they have in memory: what they read, work with and put
out."""

LEAST_STEP_BYTES = 2**20
"""But each so much, however small the budget is."""

GIVE_BACK_SHARES = 8
"""Freed memory is given back whenever the process has grown by such a part of the budget."""

LIVE_BUDGETS = 4
"""The backlog of live sources may be so many times the budget, most of it on disk."""


def cached_bytes(limit_bytes: int) -> int:
    """How much of what was spilled and read again is remembered."""
    return max(LEAST_CACHED_BYTES, limit_bytes // CACHE_SHARES)


def state_bytes(limit_bytes: int, processes: int = 1) -> int:
    """How much one of some processes remembers of what operators keep by key."""
    return max(LEAST_CACHED_BYTES, limit_bytes // (STATE_SHARES * processes))


def step_bytes(limit_bytes: int, processors: int) -> int:
    """How much the output of one step may take, of as many as are under way at once."""
    return max(LEAST_STEP_BYTES, limit_bytes // (STEP_SHARES * processors))


class Budget:
    """Says what may come in, and makes room.

    What does not fit is spilled to disk: what is kept first, then windows, as they are needed last.
    Sources that can wait, and pushes, are held back once the backlog alone has reached the budget;
    those that cannot (a pipe, the wall clock) once it is several times that. A source is not held
    back while nobody has anything of it to work on: whoever waits for it would wait for ever.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.cached_bytes = 0
        """What caches hold of it."""
        self.fault: StoreError | OSError | None = None
        """Why nothing can be spilled, if so."""
        self._residue = Residue()

    def __str__(self) -> str:
        return f"budget of {format_bytes(self.limit_bytes)}"

    @property
    def page_bytes(self) -> int:
        """How much pages may have beside what caches hold and steps under way need."""
        left = self.limit_bytes - self.limit_bytes // WORK_SHARES - self.cached_bytes
        return max(self.limit_bytes // PAGE_SHARES, left)

    def has_room(self, backlog: Backlog, queues: Iterable[Queue], is_live: bool) -> bool:
        """Whether an input with these queues may have more."""
        limit = self.limit_bytes * (LIVE_BUDGETS if is_live else 1)
        is_full = backlog.bytes >= limit
        if self.fault is not None:
            is_full = is_full or backlog.memory_bytes >= self.limit_bytes
        return not is_full or all(queue.is_caught_up() for queue in queues)

    def keep(
        self,
        backlog: Backlog,
        queues: Mapping[QueueId, Queue],
        lock: AbstractContextManager[object],
        kept: KeptPages,
    ) -> QueueId | None:
        """Has pages leave memory that there is no room for; they are written without the lock.

        If that fails, the name of the queue whose windows alone leave no room for anything else.
        """
        self._residue.give_back(self.limit_bytes // GIVE_BACK_SHARES)
        with lock:
            excess = self._excess(backlog, kept)
            if excess <= 0:
                self.fault = None
                return None
            excess += int((1 - SPILLED_TO) * self.page_bytes)
            read_again = kept.to_spill(excess)
            excess -= sum(page.bytes for page in read_again)
            chosen = self._chosen(backlog, queues, excess)
        self.fault = _spilled([*read_again, *(page for pages in chosen.values() for page in pages)])
        with lock:
            kept.count_spilled(read_again)
            for name in chosen.keys() & queues.keys():
                queues[name].count_spilled()
                backlog.count(queues[name])
            is_crowded = backlog.memory_bytes - backlog.bytes > self.limit_bytes
            return backlog.most_retaining() if self.fault and is_crowded else None

    @property
    def is_time_to_give_back(self) -> bool:
        """Whether it is time to look whether the process has grown."""
        return self._residue.is_time_to_look

    def is_exceeded(self, backlog: Backlog, kept: KeptPages) -> bool:
        """Whether pages are to leave memory, or could not when there was no room for them."""
        return self.fault is not None or self._excess(backlog, kept) > 0

    def _excess(self, backlog: Backlog, kept: KeptPages) -> int:
        return backlog.memory_bytes + kept.memory_bytes - self.page_bytes

    def _chosen(
        self, backlog: Backlog, queues: Mapping[QueueId, Queue], excess: int
    ) -> dict[QueueId, list[Page]]:
        """The pages of so many bytes that are to leave memory, by queue."""
        chosen: dict[QueueId, list[Page]] = {}
        for name in backlog.largest():
            if excess <= 0:
                break
            chosen[name] = queues[name].to_spill(excess)
            excess -= sum(page.bytes for page in chosen[name])
        return chosen


def _spilled(pages: Iterable[Page]) -> StoreError | OSError | None:
    """Has pages leave memory; why one could not."""
    try:
        for page in pages:
            page.spill()
    except (StoreError, OSError) as error:
        return error
    return None

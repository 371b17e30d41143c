"""Room for more input: who waits for it, and how it is made."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from millpond.errors import StateError
from millpond.facade.operation import Operation
from millpond.failures import Failure
from millpond.identities import OperatorId, QueryName, QueueId
from millpond.interruption import WholeLock
from millpond.sharing.queries import Queries

if TYPE_CHECKING:
    from millpond.execution.runtime import EngineRuntime

LOOK_SECONDS = 2.0
"""How often is counted what operators keep."""


class Room:
    """Keeps what an engine holds within its budget."""

    def __init__(self, queries: Queries, loop: Callable[[], Operation]) -> None:
        self._queries, self._ground = queries, queries.ground
        self._loop = loop
        self._look_again = 0.0
        self._is_made = WholeLock()
        """Held by the thread that makes room."""

    def is_there(self, name: str, is_live: bool = False) -> bool:
        """Whether an input may have more."""
        ground, queries = self._ground, self._queries
        if not queries.has_runtime:
            return ground.store.bytes < ground.budget.limit_bytes or not queries.outputs
        queues = ground.inputs.queues_of(name)
        return ground.budget.has_room(queries.runtime.backlog, queues, is_live)

    @property
    def is_being_made(self) -> bool:
        """Whether another thread makes room just now."""
        is_free = self._is_made.acquire(blocking=False)
        if is_free:
            self._is_made.release()
        return not is_free

    def wait_for(self, name: str) -> None:
        """Waits while there is no room, and work that makes some; the lock is not held.

        When there is none, this may be what is waited for: it is let in, and others are spilled.
        """
        with self._ground.lock:
            self._ground.check_open()
            if not self.is_wanted() and self.is_there(name):
                return
        loop = self._loop()
        is_inside = loop.is_inside
        if not is_inside:
            self.make()
        with self._ground.lock:
            self._ground.check_open()
            if self.is_there(name):
                return
        if is_inside:
            raise StateError(
                f"push to {name}: as much waits as the {self._ground.budget} allows, and the loop "
                "that could work on it waits for this callback; push from another thread, or SET "
                "budget"
            )
        loop.wait_for(lambda: self._ground.is_closed or self.is_there(name))

    def is_wanted(self) -> bool:
        """Whether more is held than there is room for, or it is time to look; the lock is held."""
        if not self._queries.has_runtime:
            return False
        budget, runtime = self._ground.budget, self._queries.runtime
        self._count_caches(runtime)
        if time.monotonic() >= self._look_again or budget.is_time_to_give_back:
            return True
        return budget.is_exceeded(runtime.backlog, self._ground.deliveries.keeper.books)

    def _count_caches(self, runtime: EngineRuntime) -> None:
        ground = self._ground
        ground.budget.cached_bytes = runtime.cached_bytes + ground.store.read_again_bytes

    def make(self) -> None:
        """Spills what memory has no room for, or fails the queries that need too much of it.

        The lock is not held while pages are written. One thread does it at a time; the others, who
        would find nothing left to do, go on.
        """
        if self._queries.has_runtime and self._is_made.acquire(blocking=False):
            try:
                self._make()
            finally:
                self._is_made.release()

    def _make(self) -> None:
        ground, runtime = self._ground, self._queries.runtime
        self._place_states(runtime)
        self._count_caches(runtime)
        kept = ground.deliveries.keeper.books
        crowded = ground.budget.keep(runtime.backlog, runtime.queues, ground.lock, kept)
        if crowded is not None:
            with ground.lock:
                self._fail(runtime, crowded)

    def _place_states(self, runtime: EngineRuntime) -> None:
        """Has what operators keep by key written to disk while there is no room for it."""
        ground, now = self._ground, time.monotonic()
        if now < self._look_again:
            return
        self._look_again = now + LOOK_SECONDS
        with ground.lock:
            needed = runtime.backlog.memory_bytes + runtime.state_bytes()
            ground.store.states_to_disk = needed > ground.budget.limit_bytes

    def _fail(self, runtime: EngineRuntime, crowded: QueueId) -> None:
        """Fails the queries whose windows leave no room."""
        ground = self._ground
        if crowded not in runtime.queues:
            return
        retaining = self._queries.groups.expanded(runtime.retaining(crowded))
        queries = dict.fromkeys(QueryName(query).asked_by for query in retaining)
        operators = self._queries.graph.operators
        operator = operators.get(crowded) if isinstance(crowded, OperatorId) else None
        error = StateError(
            f"{'query' if len(queries) == 1 else 'queries'} {', '.join(queries)}: what windows "
            f"retain of {operator.label() if operator else crowded.replace(':', ' ')} is more than "
            f"the {ground.budget} allows, and it cannot be spilled: {ground.budget.fault}; "
            "SET budget, or ask for shorter windows"
        )
        now = runtime.queues[crowded].heartbeat
        found = [Failure(query, "windows", str(error), now, now, ()) for query in queries]
        self._queries.fail(found, error)

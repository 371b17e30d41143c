"""Room for more input: who waits for it, and how it is made."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from millpond.catalog import ASIDE
from millpond.errors import StateError
from millpond.failures import Failure
from millpond.interruption import WholeLock

if TYPE_CHECKING:
    from millpond.facade.engine import Engine
    from millpond.spark.runtime import SparkRuntime

LOOK_SECONDS = 2.0
"""How often is counted what operators keep."""


class Room:
    """Keeps what an engine holds within its budget."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._look_again = 0.0
        self._is_made = WholeLock()
        """Held by the thread that makes room."""

    def is_there(self, name: str, is_live: bool = False) -> bool:
        """Whether an input may have more."""
        engine = self._engine
        if not engine.has_runtime:
            return engine.store.bytes < engine.budget.limit_bytes or not engine.queries.outputs
        queues = engine.inputs.queues_of(name)
        return engine.budget.has_room(engine.runtime.backlog, queues, is_live)

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
        engine = self._engine
        with engine.lock:
            engine.check_open()
        is_inside = engine.operation.is_inside
        if not is_inside:
            self.make()
        with engine.lock:
            engine.check_open()
            if self.is_there(name):
                return
        if is_inside:
            raise StateError(
                f"push to {name}: as much waits as the {engine.budget} allows, and the loop that "
                "could work on it waits for this callback; push from another thread, or SET budget"
            )
        engine.operation.wait_for(lambda: engine.is_closed or self.is_there(name))

    def make(self) -> None:
        """Spills what memory has no room for, or fails the queries that need too much of it.

        The lock is not held while pages are written. One thread does it at a time; the others, who
        would find nothing left to do, go on.
        """
        if self._engine.has_runtime and self._is_made.acquire(blocking=False):
            try:
                self._make()
            finally:
                self._is_made.release()

    def _make(self) -> None:
        engine, runtime = self._engine, self._engine.runtime
        self._place_states(runtime)
        engine.budget.cached_bytes = runtime.cached_bytes + engine.store.read_again_bytes
        kept = engine.deliveries.keeper.books
        crowded = engine.budget.keep(runtime.backlog, runtime.queues, engine.lock, kept)
        if crowded is not None:
            with engine.lock:
                self._fail(runtime, crowded)

    def _place_states(self, runtime: SparkRuntime) -> None:
        """Has what operators keep by key written to disk while there is no room for it."""
        engine, now = self._engine, time.monotonic()
        if now < self._look_again:
            return
        self._look_again = now + LOOK_SECONDS
        with engine.lock:
            needed = runtime.backlog.memory_bytes + runtime.state_bytes()
            engine.store.states_to_disk = needed > engine.budget.limit_bytes

    def _fail(self, runtime: SparkRuntime, crowded: str) -> None:
        """Fails the queries whose windows leave no room."""
        engine = self._engine
        if crowded not in runtime.queues:
            return
        retaining = engine.queries.groups.expanded(runtime.retaining(crowded))
        queries = dict.fromkeys(query.removesuffix(ASIDE) for query in retaining)
        operator = engine.graph.operators.get(crowded)
        error = StateError(
            f"{'query' if len(queries) == 1 else 'queries'} {', '.join(queries)}: what windows "
            f"retain of {operator.label() if operator else crowded.replace(':', ' ')} is more than "
            f"the {engine.budget} allows, and it cannot be spilled: {engine.budget.fault}; "
            "SET budget, or ask for shorter windows"
        )
        now = runtime.queues[crowded].heartbeat
        found = [Failure(query, "windows", str(error), now, now, ()) for query in queries]
        engine.queries.fail(found, error)

"""Room for more input: who waits for it, and how it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millpond.catalog import ASIDE
from millpond.errors import StateError
from millpond.failures import Failure

if TYPE_CHECKING:
    from millpond.engine import Engine


class Room:
    """Keeps what an engine holds within its budget."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def is_there(self, name: str, is_live: bool = False) -> bool:
        """Whether an input may have more."""
        engine = self._engine
        if not engine.has_runtime:
            return engine.store.bytes < engine.budget.limit_bytes or not engine.queries.outputs
        queues = engine.inputs.queues_of(name)
        return engine.budget.has_room(engine.runtime.backlog, queues, is_live)

    def wait_for(self, name: str) -> None:
        """Waits while there is no room, and work that makes some; the lock is not held.

        When there is none, this may be what is waited for: it is let in, and others are spilled.
        """
        engine = self._engine
        with engine.lock:
            engine.check_open()
            if self.is_there(name):
                return
        if engine.operation.is_inside:
            raise StateError(
                f"push to {name}: as much waits as the {engine.budget} allows, and the loop that "
                "could work on it waits for this callback; push from another thread, or SET budget"
            )
        engine.operation.wait_for(lambda: engine.is_closed or self.is_there(name))

    def make(self) -> None:
        """Spills what memory has no room for, or fails the queries that need too much of it."""
        engine = self._engine
        if not engine.has_runtime:
            return
        runtime = engine.runtime
        crowded = engine.budget.keep(runtime.backlog, runtime.queues)
        if crowded is None:
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

"""Direct interoperability without a scheduler (HMTS paper, section 2.4).

Whoever brings tuples carries them through: an element triggers a chain of calls, operators hand on
what they make, and nobody decides anything. There is no queue but those behind inputs, between
partitions, and where users want one; what stands before one goes first.
"""

from millpond.scheduling.decisions import Decision, PlaceQueues, RunOperator
from millpond.scheduling.ready_queue import ReadyQueue
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.threads.virtual_operators import (
    Placement,
    elementary,
    operator_edges,
    stream_edges,
)


class DirectFlow:
    """Carries on all that can be, in the thread that turns the loop: it has nothing to choose."""

    def __init__(self) -> None:
        self._edges: Placement | None = None
        self._wanted: PlaceQueues | None = None
        self._place: dict[int, int] = {}
        self._ready = ReadyQueue()
        self._running: set[int] = set()

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Know the operators upstream first, and want no queue between them."""
        self._place = {operator: place for place, operator in enumerate(plan.upstream_first)}
        self._ready.clear()
        self._running.clear()
        whole = elementary(plan)
        if operator_edges(whole) != self._edges:
            self._edges = operator_edges(whole)
            self._wanted = PlaceQueues(stream_edges(whole))

    def observe(self, observation: Observation) -> None:
        """Know what is ready and what runs."""
        for state in observation.changed:
            if state.ready:
                self._ready.put(state.operator, (self._place[state.operator],))
            else:
                self._ready.discard(state.operator)
            (self._running.add if state.running else self._running.discard)(state.operator)

    def decide(self) -> Decision | None:
        """What comes first upstream; queues go once nothing runs."""
        if self._wanted is None:
            first = self._ready.best()
            return None if first is None else RunOperator(first)
        if self._running:
            return None
        wanted, self._wanted = self._wanted, None
        return wanted

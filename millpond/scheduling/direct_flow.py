"""Direct interoperability without a scheduler (HMTS paper, section 2.4).

Whoever brings tuples carries them through: an element triggers a chain of calls, operators hand on
what they make, and nobody decides anything. There is no queue but those behind inputs, between
partitions, and where users want one; what stands before one goes first.
"""

from millpond.scheduling.decisions import PlaceQueues, RunOperator
from millpond.scheduling.runtime import Runtime
from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.virtual_operators import (
    Placement,
    elementary,
    operator_edges,
    stream_edges,
)


class DirectFlow:
    """Drives a runtime without a strategy, in the thread that calls it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._version: int | None = None
        self._edges: Placement | None = None
        self._wanted: PlaceQueues | None = None
        self._place: dict[int, int] = {}
        self._ready: set[int] = set()
        self._running: set[int] = set()

    def turn(self) -> bool:
        """Carry on all that can be; False when nothing is left to do, ever."""
        runtime = self.runtime
        is_other = runtime.plan_version != self._version
        if is_other:
            self._version = runtime.plan_version
            self._learn(runtime.plan())
        for state in runtime.observe(is_other).changed:
            (self._ready.add if state.ready else self._ready.discard)(state.operator)
            (self._running.add if state.running else self._running.discard)(state.operator)
        if self._wanted is not None:
            return self._have_no_queues(self._wanted)
        begun = [each for each in self._in_order() if self._begin(each)]
        return bool(begun) or runtime.wait()

    def _in_order(self) -> list[int]:
        return sorted(self._ready, key=self._place.__getitem__)

    def _begin(self, operator: int) -> bool:
        if not self.runtime.has_free_processor():
            return False
        self._ready.discard(operator)
        self.runtime.perform(RunOperator(operator))
        return True

    def _have_no_queues(self, wanted: PlaceQueues) -> bool:
        """Have queues go once nothing runs."""
        if self._running:
            return self.runtime.wait()
        self._wanted = None
        self.runtime.perform(wanted)
        return True

    def _learn(self, plan: PlanSnapshot) -> None:
        """Know the operators upstream first, and want no queue between them."""
        self._place = {operator: place for place, operator in enumerate(plan.upstream_first)}
        self._ready.clear()
        self._running.clear()
        whole = elementary(plan)
        if operator_edges(whole) != self._edges:
            self._edges = operator_edges(whole)
            self._wanted = PlaceQueues(stream_edges(whole))

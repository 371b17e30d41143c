"""What strategies share that give each operator one priority: the highest that is ready runs.

A subclass only says the priorities of a plan. Priorities are worked out when the plan or its
statistics change, so a decision costs O(log n).
"""

from collections.abc import Mapping

from millpond.scheduling.decisions import Decision, Service
from millpond.scheduling.ready_queue import Key, ReadyQueue
from millpond.scheduling.snapshot import Observation, OperatorState, PlanSnapshot


class ByPriority:
    """Runs the ready operator of the highest priority; ties go to the oldest waiting tuple.

    With `stay` a tie goes to the operator that ran last, which saves context switches; without it a
    tuple is carried on before a younger one of the same priority is begun.
    """

    def __init__(
        self, max_tuples: int | None = None, slice_seconds: float | None = None, stay: bool = False
    ) -> None:
        self.service = Service(max_tuples, slice_seconds)
        self.stay = stay
        self._priority: Mapping[int, float] = {}
        self._depth: Mapping[int, int] = {}
        self._step: Mapping[int, Decision] = {}
        self._ready = ReadyQueue()
        self._last: int | None = None

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """The priority of every operator of the plan."""
        raise NotImplementedError

    def priority(self, operator: int) -> float:
        """The present priority of one operator."""
        return self._priority[operator]

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Work the priorities out anew."""
        self._priority = self.priorities(plan)
        self._depth = plan.depth
        self._step = {operator: self.service.run(operator) for operator in plan.by_id}
        self._ready.clear()

    def observe(self, observation: Observation) -> None:
        """Keep the ready operators in order."""
        for state in observation.changed:
            if state.ready:
                self._ready.put(state.operator, self._key(state))
            else:
                self._ready.discard(state.operator)

    def decide(self) -> Decision | None:
        """Serve the best ready operator."""
        best = self._ready.best()
        if best is None:
            return None
        if self.stay:
            best = self._last = self._last_unless_lower(best)
        return self._step[best]

    def _last_unless_lower(self, best: int) -> int:
        last = self._last
        if last is None or last not in self._ready:
            return best
        return last if self._priority[last] >= self._priority[best] else best

    def _key(self, state: OperatorState) -> Key:
        operator = state.operator
        return -self._priority[operator], state.oldest_arrival_seconds, -self._depth[operator]

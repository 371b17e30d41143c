"""Per-tuple greedy (Unified paper, sections 5 and 6).

Only the head tuples of the queues are compared: the cheapest is served (latency), or the one that
frees the most bytes in a second (memory). One expensive tuple holds back all that wait behind it.
"""

from millpond.scheduling.charts.component_partition import Objective
from millpond.scheduling.charts.progress_chart import slope
from millpond.scheduling.snapshot import OperatorState, PlanSnapshot
from millpond.scheduling.strategies.maximum_slope_segment import MaximumSlopeSegment


class PerTupleGreedy(MaximumSlopeSegment):
    """Serves the queue whose first tuple alone is the best."""

    def __init__(self, objective: Objective = "latency", max_tuples: int | None = 1) -> None:
        super().__init__(objective, max_tuples)
        self._weight: dict[int, float] = {}

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Note what the queries of each operator weigh, too."""
        super().plan_changed(plan)
        self._weight = {each.id: each.weight for each in plan.operators}

    def rank(self, state: OperatorState) -> float:
        """The first tuple's cost, inverted, or the bytes it frees in a second; by weight."""
        seconds, fall = self._charts[state.operator].steps(state)
        gain = 1.0 if self.objective == "latency" else float(fall[0])
        return self._weight[state.operator] * slope((0.0, gain), (float(seconds[0]), 0.0))

"""Component-based scheduling (Unified paper, sections 3 and 4).

The plan is partitioned for the objective, on averages. The steepest part that has work runs; inside
a part each tuple is carried through, depth first, branches in order of slope, before the next is
begun. "Tuple" means the block that one decision serves: with `max_tuples=1` single tuples.
"""

from collections.abc import Mapping
from itertools import count

from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.charts.chart_parts import ChartPart
from millpond.scheduling.charts.component_partition import Objective, check_objective, parts
from millpond.scheduling.ready_queue import Key
from millpond.scheduling.snapshot import OperatorState, PlanSnapshot


class ComponentBased(ByPriority):
    """Runs the part with the highest output rate ("latency") or memory reduction ("memory")."""

    def __init__(
        self,
        objective: Objective = "latency",
        max_tuples: int | None = None,
        slice_seconds: float | None = None,
        stay: bool = False,
    ) -> None:
        check_objective(objective)
        super().__init__(max_tuples, slice_seconds, stay)
        self.objective: Objective = objective
        self._turn: dict[int, int] = {}

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """The slope of the steepest part an operator belongs to; notes whose turn is when."""
        self._turn.clear()
        found: dict[int, float] = {}
        turns = count()
        for part in parts(plan, self.objective):
            priority = part.slope * self._weight(plan, part)
            for heads in part.depth_first:
                turn = next(turns)
                for operator in heads:
                    found.setdefault(operator, priority)
                    self._turn.setdefault(operator, turn)
        return found

    def _weight(self, plan: PlanSnapshot, part: ChartPart) -> float:
        """Outputs were weighed one by one; memory counts as much as the mean query it serves."""
        if self.objective == "latency":
            return 1.0
        operators = part.operators
        return sum(plan.by_id[each].weight for each in operators) / len(operators)

    def _key(self, state: OperatorState) -> Key:
        """Older tuples first, then those begun, then the reader of a shared tuple that lags."""
        operator = state.operator
        priority, turn = self._priority[operator], self._turn[operator]
        return -priority, state.oldest_arrival_seconds, turn, -state.queued_tuples

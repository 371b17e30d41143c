"""Greedy (Chain paper, "comparison with other strategies").

Each operator by itself has the static priority (1 - s) / t: here the bytes it frees in a second,
with s the `selectivity`, t the `cost_seconds`, and the output of a query's last operator taking no
queue.
"""

from __future__ import annotations

from collections.abc import Mapping

from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.progress_chart import slope
from millpond.snapshot import OperatorSnapshot, PlanSnapshot


class Greedy(ByPriority):
    """Runs the ready operator that frees the most memory in a second."""

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """Bytes freed in a second, times the weight of the queries served."""
        return {each.id: released_per_second(each) * each.weight for each in plan.operators}


def released_per_second(operator: OperatorSnapshot) -> float:
    """The bytes an operator frees in a second of work (the Path Capacity paper's C^M)."""
    left = operator.selectivity * operator.queued_output_bytes
    return slope((0.0, operator.input_bytes), (operator.cost_seconds, left))

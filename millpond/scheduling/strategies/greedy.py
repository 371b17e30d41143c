"""Greedy (Chain paper, "comparison with other strategies").

Each operator by itself has the static priority (1 - s) / t: here the bytes it frees in a second,
with s the `selectivity`, t the `cost_seconds`, and the output of a query's last operator taking no
queue.
"""

from collections.abc import Mapping

from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.charts.capacity import released_per_second
from millpond.scheduling.snapshot import PlanSnapshot


class Greedy(ByPriority):
    """Runs the ready operator that frees the most memory in a second."""

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """Bytes freed in a second, times the weight of the queries served."""
        return {each.id: released_per_second(each) * each.weight for each in plan.operators}

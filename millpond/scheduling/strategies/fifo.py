"""FIFO (Chain paper, "comparison with other strategies"; Path Capacity paper, section 2.2).

Tuples are processed in the order of their arrival, each to completion before the next is begun.
"Tuple" means the block that one decision serves: with `max_tuples=1` single tuples.
"""

from collections.abc import Mapping

from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.snapshot import PlanSnapshot


class Fifo(ByPriority):
    """Runs the operator whose waiting tuple is the oldest, the most advanced first."""

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """All alike, so that age alone decides; weights shift nothing in a strict arrival order."""
        return dict.fromkeys(plan.by_id, 0.0)

"""Chain (Chain paper, sections on single-stream and multi-stream queries).

Every operator path has a progress chart (t_i, s_i): t_i the summed `cost_seconds` and s_i the bytes
left of one stream tuple. An operator's priority is the slope of the segment of the lower envelope
it lies on. Among equal slopes the oldest tuple goes first, so at most one tuple is in the middle of
a segment. Trees with joins are broken up into parallel paths that share the join and what follows;
an operator on several chains takes the steepest. A join's t and s are the rate-weighted means over
its inputs, and a blocked join is not ready. Whenever statistics change, the charts are drawn anew.
"""

from collections.abc import Mapping

from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.charts.steepest_paths import ChainSlopes
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.snapshot import PlanSnapshot


class Chain(ByPriority):
    """Runs the ready operator on the steepest chain.

    With `stay` the operator that runs goes on until its queue is empty or a steeper chain has work:
    fewest context switches, at the price of more tuples in the middle of segments.
    """

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """The steepest slope among the chains an operator lies on."""
        steepest = ChainSlopes(Ways(plan)).found()
        return {each.id: steepest[each.id] * each.weight for each in plan.operators}

"""Chain (Chain paper, sections on single-stream and multi-stream queries).

Every operator path has a progress chart (t_i, s_i): t_i the summed `cost_seconds` and s_i the bytes
left of one stream tuple. An operator's priority is the slope of the segment of the lower envelope
it lies on. Among equal slopes the oldest tuple goes first, so at most one tuple is in the middle of
a segment. Trees with joins are broken up into parallel paths that share the join and what follows;
an operator on several chains takes the steepest. A join's t and s are the rate-weighted means over
its inputs, and a blocked join is not ready. Whenever statistics change, the charts are drawn anew.
"""

from __future__ import annotations

from collections.abc import Mapping

from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.charts.progress_chart import partition, path_chart
from millpond.snapshot import OperatorPath, PlanSnapshot


class Chain(ByPriority):
    """Runs the ready operator on the steepest chain.

    With `stay` the operator that runs goes on until its queue is empty or a steeper chain has work:
    fewest context switches, at the price of more tuples in the middle of segments.
    """

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """The steepest slope among the chains an operator lies on."""
        steepest: dict[int, float] = {}
        for path in plan.paths:
            for operator, slope in chain_slopes(plan, path).items():
                steepest[operator] = max(slope, steepest.get(operator, slope))
        return {each.id: steepest.get(each.id, 0.0) * each.weight for each in plan.operators}


def chain_slopes(plan: PlanSnapshot, path: OperatorPath) -> dict[int, float]:
    """The slope of the chain each operator of one path belongs to."""
    return {
        path.operators[step]: segment.slope
        for segment in partition(path_chart(plan, path))
        for step in range(segment.first, segment.last + 1)
    }

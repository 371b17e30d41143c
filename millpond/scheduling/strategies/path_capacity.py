"""Path Capacity (Path Capacity paper, section 3.1).

The unit is the operator path P_i from a stream to an output. Its static priority is its processing
capacity C^P_{P_i} by (2.2): tuples a second that the path consumes when it carries each to the end.
Work left in the middle of a path (a fork's other branch, a join that was blocked) is work of that
path too.
"""

from collections.abc import Sequence

from millpond.scheduling.by_run import ByRun, RankedRun
from millpond.scheduling.charts.capacity import remaining_seconds, remaining_step_seconds
from millpond.scheduling.charts.swiftest_paths import SwiftestPaths, priority_of
from millpond.scheduling.snapshot import OperatorPath, PlanSnapshot


class PathCapacity(ByRun):
    """Runs the operator path that consumes the most tuples in a second, from its leaf up."""

    def runs(self, plan: PlanSnapshot) -> Sequence[RankedRun]:
        """The best operator path through each operator: its priority is its capacity, weighed."""
        paths = SwiftestPaths(plan).found()
        return [path_run(plan, path, priority_of(plan, path)) for path in paths]


def path_run(plan: PlanSnapshot, path: OperatorPath, priority: float) -> RankedRun:
    """An operator path as a run of this priority."""
    seconds = remaining_seconds(plan, path.operators, path.stream)
    fixed = remaining_step_seconds(plan, path.operators)
    return RankedRun(path.operators, priority, seconds, fixed)

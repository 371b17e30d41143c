"""Segment (Path Capacity paper, section 3.3).

An operator path is cut where the memory release capacity C^M of the next operator is lower; the
segments S_i of all paths are listed without those contained in others. A segment's static priority
is its own memory release capacity C^M_{S_i} by (3.2). When queries come or go, only their segments
change. A query with very many segments (`MOST_SEGMENTS`) has its paths cut where they part and meet
as well.
"""

from collections.abc import Iterator, Mapping, Sequence

from millpond.scheduling.by_run import ByRun, RankedRun
from millpond.scheduling.charts.capacity import (
    memory_release_capacity,
    released_per_second,
    remaining_seconds,
    remaining_step_seconds,
    rounded,
)
from millpond.scheduling.charts.segment_list import Run, SegmentList
from millpond.scheduling.charts.segment_runs import segment_runs
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.snapshot import OperatorSnapshot, PlanSnapshot


class Segment(ByRun):
    """Runs the segment that frees the most memory in a second, from its first operator up."""

    cuts_once = False
    """Whether the rest of a path is one segment once the path was cut."""

    def __init__(self, max_tuples: int | None = None, slice_seconds: float | None = None) -> None:
        super().__init__(max_tuples, slice_seconds)
        self.segments = SegmentList()

    def falls(self, before: float, behind: float) -> bool:
        """Whether a segment ends between two operators, by what each frees in a second."""
        return behind < before

    def runs(self, plan: PlanSnapshot) -> Sequence[RankedRun]:
        """The listed segments, with what they free times the weight of their queries."""
        self.segments.update(self._by_query(plan))
        return [_segment_run(plan, run) for run in self.segments.runs]

    def _by_query(self, plan: PlanSnapshot) -> Mapping[str, set[Run]]:
        released = {each.id: rounded(released_per_second(each)) for each in plan.operators}
        ways, outputs = Ways(plan), _outputs_by_query(plan)

        def falls(before: int, behind: int) -> bool:
            return self.falls(released[before], released[behind])

        return {
            query: segment_runs(ways, outputs[query], falls, self.cuts_once) for query in outputs
        }


def _outputs_by_query(plan: PlanSnapshot) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for operator in plan.operators:
        for query in _queries_answered(plan, operator) if operator.is_output else ():
            found.setdefault(query, []).append(operator.id)
    return found


def _queries_answered(plan: PlanSnapshot, last: OperatorSnapshot) -> Iterator[str]:
    """The queries whose answer leaves at an output; a nameless one where none is named."""
    further = {query.name for reader in last.downstream for query in plan.by_id[reader].queries}
    names = [query.name for query in last.queries if query.name not in further]
    yield from names or [f"behind operator {last.id}"]


def _segment_run(plan: PlanSnapshot, run: Run) -> RankedRun:
    priority = memory_release_capacity(plan, run) * plan.by_id[run[-1]].weight
    seconds, fixed = remaining_seconds(plan, run), remaining_step_seconds(plan, run)
    return RankedRun(run, rounded(priority), seconds, fixed)

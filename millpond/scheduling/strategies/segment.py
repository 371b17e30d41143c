"""Segment (Path Capacity paper, section 3.3).

An operator path is cut where the memory release capacity C^M of the next operator is lower; the
segments S_i of all paths are listed without those contained in others. A segment's static priority
is its own memory release capacity C^M_{S_i} by (3.2). When queries come or go, only their segments
change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from millpond.scheduling.by_unit import ByUnit, Unit
from millpond.scheduling.charts.capacity import (
    memory_release_capacity,
    released_per_second,
    remaining_seconds,
    remaining_step_seconds,
    rounded,
)
from millpond.scheduling.charts.segment_list import Run, SegmentList
from millpond.snapshot import OperatorPath, PlanSnapshot


class Segment(ByUnit):
    """Runs the segment that frees the most memory in a second, from its first operator up."""

    def __init__(self, max_tuples: int | None = None, slice_seconds: float | None = None) -> None:
        super().__init__(max_tuples, slice_seconds)
        self.segments = SegmentList()

    def cut(self, released: Sequence[float]) -> Sequence[int]:
        """Where the segments of a path begin, by what each of its operators frees in a second."""
        falls = (
            place for place in range(1, len(released)) if released[place] < released[place - 1]
        )
        return [0, *falls]

    def units(self, plan: PlanSnapshot) -> Sequence[Unit]:
        """The listed segments, with what they free times the weight of their queries."""
        self.segments.update(self._by_query(plan))
        return [_segment_unit(plan, run) for run in self.segments.runs]

    def _by_query(self, plan: PlanSnapshot) -> Mapping[str, Sequence[Run]]:
        released = {each.id: rounded(released_per_second(each)) for each in plan.operators}
        found: dict[str, list[Run]] = {}
        for path in plan.paths:
            starts = self.cut([released[operator] for operator in path.operators])
            ends = [*starts[1:], len(path.operators)]
            runs = [path.operators[a:b] for a, b in zip(starts, ends, strict=True)]
            for query in _queries_answered(plan, path):
                found.setdefault(query, []).extend(runs)
        return found


def _queries_answered(plan: PlanSnapshot, path: OperatorPath) -> Iterator[str]:
    """The queries whose answer leaves at the end of a path; a nameless one where none is named."""
    last = plan.by_id[path.operators[-1]]
    further = {query.name for reader in last.downstream for query in plan.by_id[reader].queries}
    names = [query.name for query in last.queries if query.name not in further]
    yield from names or [f"behind operator {last.id}"]


def _segment_unit(plan: PlanSnapshot, run: Run) -> Unit:
    priority = memory_release_capacity(plan, run) * plan.by_id[run[-1]].weight
    seconds, fixed = remaining_seconds(plan, run), remaining_step_seconds(plan, run)
    return Unit(run, rounded(priority), seconds, fixed)

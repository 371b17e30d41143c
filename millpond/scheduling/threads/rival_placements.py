"""The two constructions that the HMTS paper's Figure 11 compares with `place_queues`.

One fuses the segments of the Path Capacity paper's simplified segment strategy (its section 3.3,
similarity factor gamma), the other the chains of the Chain paper: an edge loses its queue when both
ends are neighbours in one segment of every operator path that takes it. Neither was made to keep
capacities near zero.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

from millpond.errors import StrategyError
from millpond.scheduling.charts.capacity import released_per_second
from millpond.scheduling.charts.progress_chart import partition, path_chart
from millpond.scheduling.threads.virtual_operators import Edge, Placement, operator_edges
from millpond.snapshot import OperatorPath, PlanSnapshot

Cuts: TypeAlias = Callable[[PlanSnapshot, OperatorPath], set[Edge]]
"""The edges of one path on which a queue stays."""


def place_queues_by_chains(plan: PlanSnapshot) -> Placement:
    """A queue between every two chains: segments of a path's lower envelope."""
    return _cut_on_any_path(plan, chain_cuts)


def place_queues_by_segments(plan: PlanSnapshot, gamma: float = 0.75) -> Placement:
    """A queue between the two segments of each path; the first one ends where C^M drops."""
    if not 0 < gamma <= 1:
        raise StrategyError(f"gamma is {gamma}; give a number above 0, at most 1")

    def cuts(plan: PlanSnapshot, path: OperatorPath) -> set[Edge]:
        return _segment_cut(plan, path, gamma)

    return _cut_on_any_path(plan, cuts)


def chain_cuts(plan: PlanSnapshot, path: OperatorPath) -> set[Edge]:
    """The edges of a path between two chains."""
    borders = partition(path_chart(plan, path))[1:]
    return {(path.operators[each.first - 1], path.operators[each.first]) for each in borders}


def _segment_cut(plan: PlanSnapshot, path: OperatorPath, gamma: float) -> set[Edge]:
    for below, above in pairwise(path.operators):
        released = released_per_second(plan.by_id[below])
        if released_per_second(plan.by_id[above]) < gamma * released:
            return {(below, above)}
    return set()


def _cut_on_any_path(plan: PlanSnapshot, cuts: Cuts) -> Placement:
    found: set[Edge] = set()
    for path in plan.paths:
        found |= cuts(plan, path)
    return operator_edges(plan) & found

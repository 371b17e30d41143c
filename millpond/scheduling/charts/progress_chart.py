"""Progress charts and their lower envelopes (Chain paper, operator scheduling and memory).

A chart has the points (t_i, s_i): after t_i seconds of work a tuple of size s_0 has shrunk to s_i.
The lower envelope joins each point with the one of the steepest descent behind it (SDOP), so its
slopes fall in magnitude. Every strategy that partitions charts uses `partition`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from millpond.errors import StrategyError
from millpond.scheduling.snapshot import OperatorPath, PlanSnapshot

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps `first` to `last` (inclusive) of a chart, which fall by `slope` a second together."""

    first: int
    last: int
    slope: float


def partition(points: Sequence[Point]) -> tuple[Segment, ...]:
    """The segments of the lower envelope; step i leads from point i to point i + 1.

    >>> [(s.first, s.last, s.slope) for s in partition([(0, 1.0), (1, 0.9), (2, 0.2), (3, 0.0)])]
    [(0, 1, 0.4), (2, 2, 0.2)]
    """
    segments: list[Segment] = []
    for step in range(len(points) - 1):
        latest = Segment(step, step, slope(points[step], points[step + 1]))
        while segments and segments[-1].slope < latest.slope:
            first = segments.pop().first
            latest = Segment(first, step, slope(points[first], points[step + 1]))
        segments.append(latest)
    return tuple(segments)


def steepest_descents(points: Sequence[Point]) -> list[float]:
    """For each point but the last the steepest slope towards any later one.

    On a corner of the lower envelope it is the slope of the segment that begins there; inside a
    segment it is steeper still, for what already has its first steps behind it.

    >>> steepest_descents([(0, 1.0), (1, 0.9), (2, 0.2), (3, 0.0)])
    [0.4, 0.7, 0.2]
    """
    found: list[float] = []
    corners: list[Point] = [points[-1]] if points else []
    for point in reversed(points[:-1]):
        while len(corners) > 1 and slope(point, corners[-1]) <= slope(corners[-1], corners[-2]):
            corners.pop()
        found.append(slope(point, corners[-1]))
        corners.append(point)
    return found[::-1]


def slope(point: Point, later: Point) -> float:
    """How much the size falls in a second between two points; infinite when no time passes."""
    seconds, fall = later[0] - point[0], point[1] - later[1]
    if seconds > 0:
        return fall / seconds
    if fall == 0:
        return 0.0
    return float("inf") if fall > 0 else float("-inf")


def check_chart(points: Sequence[Point]) -> None:
    """Refuse a chart that strategies cannot use."""
    if len(points) < 2:
        raise StrategyError(f"a chart needs at least 2 points, not {len(points)}")
    for (before, _), (after, size) in pairwise(points):
        if after < before or size < 0:
            raise StrategyError(f"chart point ({after}, {size}) goes back in time or below zero")


def path_chart(plan: PlanSnapshot, path: OperatorPath) -> list[Point]:
    """The progress chart of one operator path: work against bytes left, for one stream tuple.

    The output of the last operator leaves the system, so the chart ends at size zero.
    """
    seconds, tuples = 0.0, 1.0
    points = [(0.0, plan.by_id[path.operators[0]].bytes_from(path.stream))]
    for place, identity in enumerate(path.operators):
        operator = plan.by_id[identity]
        seconds += tuples * operator.cost_seconds
        tuples *= operator.selectivity
        last = place == len(path.operators) - 1
        points.append((seconds, 0.0 if last else tuples * operator.output_bytes))
    return points

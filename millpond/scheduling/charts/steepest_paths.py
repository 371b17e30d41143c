"""The steepest slope that any path through an operator gives it, without listing the paths.

With s the size of a tuple and t the work behind it, a line from point a of a chart to point b is
steeper than λ when s_a + λ t_a > s_b + λ t_b. The least s + λ t behind an operator follows from
those of its readers, for one tuple of its input, and so does what points before it allow. So in one
pass over the operators around it a path is found on which an operator has a steeper slope than λ,
the one with the most to spare; its slope is the next λ (Newton's method, Dinkelbach's for ratios).
It ends with a slope that no path exceeds, since each one is that of a path and larger than the one
before; a handful of passes is usual.
"""

import math
from collections.abc import Mapping, Sequence

from millpond.scheduling.charts.progress_chart import partition, path_chart
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.snapshot import OperatorPath, PlanSnapshot, Producer


class SteepestPaths:
    """Finds for each operator the steepest slope of the charts of all paths through it.

    Sizes are bytes times `byte_weight`; at the end of a path a tuple falls by `output_weight` times
    the weight of the path's query more, for each output. `passes` counts operators looked at.
    """

    def __init__(self, ways: Ways, byte_weight: float = 1.0, output_weight: float = 0.0) -> None:
        self.plan, self.ways = ways.plan, ways
        self.byte_weight, self.output_weight = byte_weight, output_weight
        self.slopes = dict.fromkeys(ways.plan.by_id, 0.0)
        """Zero where no tuples come: a chart falls to zero in the end."""
        self.passes = 0

    def path_slopes(self, path: OperatorPath) -> Sequence[float]:
        """The slope of each operator on the chart of one path."""
        raise NotImplementedError

    def room(self, operator: int, slope: float) -> tuple[float, Mapping[int, Producer]]:
        """What s + λ t may be behind an operator for its slope to be λ, and by which producers."""
        raise NotImplementedError

    def found(self) -> dict[int, float]:
        """The steepest slope of each operator."""
        covered: set[int] = set()
        for operator in self.plan.by_id:
            if not self.ways.is_on_one_path(operator):
                self._search(operator)
            elif operator not in covered:
                path = self.ways.first_path(operator)
                covered.update(path.operators)
                self._draw(path)
        return self.slopes

    def _search(self, operator: int) -> None:
        before = -1.0
        below = self.ways.below(operator)
        while before < self.slopes[operator] < math.inf:
            before = self.slopes[operator]
            self.passes += len(below)
            least, on = self._least_behind(below, before)
            room, back = self.room(operator, before)
            if room > least:
                self._draw(self.ways.path_by(operator, back, on))

    def _draw(self, path: OperatorPath) -> None:
        for operator, slope in zip(path.operators, self.path_slopes(path), strict=True):
            self.slopes[operator] = max(slope, self.slopes[operator])

    def _least_behind(
        self, below: Sequence[int], slope: float
    ) -> tuple[float, Mapping[int, int | None]]:
        """The least s + λ t at a point behind an operator, and which readers lead there."""
        least: dict[int, float] = {}
        on: dict[int, int | None] = {}
        for identity in below:
            operator = self.plan.by_id[identity]
            at_end = -self.output_weight * operator.weight if operator.is_output else math.inf
            best, reader = at_end, None
            size = self.byte_weight * operator.output_bytes
            for each in operator.downstream:
                value = min(size, least[each])
                if value < best:
                    best, reader = value, each
            least[identity] = slope * operator.cost_seconds + operator.selectivity * best
            on[identity] = reader
        return least[below[-1]], on


class ChainSlopes(SteepestPaths):
    """The slopes of the chains that operators are on: segments of the lower envelopes of paths."""

    def path_slopes(self, path: OperatorPath) -> Sequence[float]:
        """The slope of the chain that each operator of one path belongs to."""
        return chain_slopes(self.plan, path)

    def room(self, operator: int, slope: float) -> tuple[float, Mapping[int, Producer]]:
        """The least s + λ t of the points before an operator, on the path where that is most."""
        above = self.ways.above(operator)
        self.passes += len(above)
        room, back = room_before(self.ways, above, slope)
        return room[operator], back


def chain_slopes(plan: PlanSnapshot, path: OperatorPath) -> list[float]:
    """The slope of the chain that each operator of one path belongs to."""
    return [
        segment.slope
        for segment in partition(path_chart(plan, path))
        for _ in range(segment.first, segment.last + 1)
    ]


def room_before(
    ways: Ways, above: Sequence[int], slope: float
) -> tuple[dict[int, float], dict[int, Producer]]:
    """The least s + λ t of points before operators, each on the path where it is most.

    Minus infinity where no tuples come. For one tuple of each operator's input, upstream first.
    """
    room: dict[int, float] = {}
    back: dict[int, Producer] = {}
    for identity in above:
        operator = ways.plan.by_id[identity]
        room[identity] = -math.inf
        for stream in operator.streams:
            offered = operator.bytes_from(stream)
            if identity not in back or offered > room[identity]:
                room[identity], back[identity] = offered, stream
        for producer in ways.producers[identity]:
            offered = room_behind(ways.plan, producer, room[producer], slope)
            if identity not in back or offered > room[identity]:
                room[identity], back[identity] = offered, producer
    return room, back


def room_behind(plan: PlanSnapshot, producer: int, room: float, slope: float) -> float:
    """What the room before an operator leaves behind it, at most the size of its output."""
    operator = plan.by_id[producer]
    if operator.selectivity <= 0:
        return -math.inf
    left = (room - slope * operator.cost_seconds) / operator.selectivity
    return min(operator.output_bytes, left)

"""The edges between operators that some path has on two chains, without listing the paths.

A point of a chart is a corner of its lower envelope when no line from an earlier point to it is
less steep than one from it to a later point. So the path on which an edge is the most of a corner
comes by the way that is steepest up to it, which Newton's method finds as in `steepest_paths`, and
goes on by the way that is flattest behind it; if it is no corner there, it is none anywhere.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TypeAlias

from millpond.scheduling.charts.progress_chart import partition, path_chart, slope
from millpond.scheduling.charts.steepest_paths import room_before
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.snapshot import OperatorPath, PlanSnapshot, Producer

Edge: TypeAlias = tuple[int, int]


def chain_borders(plan: PlanSnapshot) -> set[Edge]:
    """The edges between two chains on any path."""
    ways = Ways(plan)
    found = _without_tuples(ways)
    drawn: set[Edge] = set()
    for producer in plan.by_id:
        for reader in plan.by_id[producer].downstream:
            edge = producer, reader
            is_only = ways.paths_to[producer] == ways.paths_from[reader] == 1
            if edge not in found and not (is_only and edge in drawn):
                path = _likeliest_path(ways, producer, reader)
                drawn.update(pairwise(path.operators))
                found |= path_borders(plan, path)
    return found


def path_borders(plan: PlanSnapshot, path: OperatorPath) -> set[Edge]:
    """The edges of one path between two chains."""
    borders = partition(path_chart(plan, path))[1:]
    return {(path.operators[each.first - 1], path.operators[each.first]) for each in borders}


def _without_tuples(ways: Ways) -> set[Edge]:
    """The edges that no tuples come to on some path: there each step is a segment of its own."""
    dead: set[int] = set()
    for identity in ways.plan.upstream_first:
        is_dead = ways.plan.by_id[identity].selectivity <= 0
        if is_dead or not dead.isdisjoint(ways.producers[identity]):
            dead.add(identity)
    return {(each, reader) for each in dead for reader in ways.plan.by_id[each].downstream}


def _likeliest_path(ways: Ways, producer: int, reader: int) -> OperatorPath:
    """The path that has a border between two operators if any path has."""
    above = ways.above(producer)
    steepest, best = -math.inf, None
    while best is None or 0 < steepest < math.inf:
        back = room_before(ways, above, max(0.0, steepest))[1]
        found = _slope_before(ways, producer, reader, back)
        if best is not None and found <= steepest:
            break
        steepest, best = found, back
    on = _flattest_behind(ways, reader, steepest if 0 < steepest < math.inf else 0.0)
    return ways.path_by(producer, best, {producer: reader, **on})


def _slope_before(ways: Ways, producer: int, reader: int, back: Mapping[int, Producer]) -> float:
    """The least slope from a point before an edge to it, on the way that leads there."""
    path = ways.path_by(producer, back, {producer: reader})
    points = path_chart(ways.plan, path)
    place = path.operators.index(reader)
    return min(slope(points[each], points[place]) for each in range(place))


def _flattest_behind(ways: Ways, operator: int, steepness: float) -> dict[int, int | None]:
    """The readers by which the least s + λ t behind an operator is most."""
    most: dict[int, float] = {}
    on: dict[int, int | None] = {}
    for identity in ways.below(operator):
        each = ways.plan.by_id[identity]
        best, on[identity] = (0.0, None) if each.is_output else (-math.inf, None)
        for reader in each.downstream:
            value = min(each.output_bytes, most[reader])
            if value > best:
                best, on[identity] = value, reader
        most[identity] = steepness * each.cost_seconds + each.selectivity * best
    return on

"""The plan of the Path Capacity paper's experiment: 16 queries, 116 operators, 5 streams.

The paper names these numbers, the kinds of queries (from selections to four joins over five
streams), and that selectivities lie between 0 and 1 but for few joins. Costs and selectivities are
drawn from ranges that fit its words: leaves are fast and selective, the others much slower.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import numpy as np

from millpond.simulator import SimulatedPlan

RATES = (1.2, 1.6, 2.0, 2.4, 2.8)
"""Mean tuples a second of the five streams at load one."""
SIMPLE_LENGTHS = (3, 3, 4, 4, 5, 5)
JOINS = (1, 1, 1, 1, 1, 2, 2, 2, 3, 4)
TAILS = {1: 2, 2: 2, 3: 1, 4: 1}
"""Operators behind the last join, by the number of joins."""
SEED = 16
Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Ranges:
    """Where costs, in units that are scaled to the load, and selectivities are drawn from.

    Operators cost `deeper` times as much with each that is between them and a leaf's reader.
    """

    leaf_cost: Range = (1.0, 2.0)
    leaf_selectivity: Range = (0.1, 0.3)
    cost: Range = (2.0, 8.0)
    second_selectivity: Range = (0.7, 1.0)
    selectivity: Range = (0.7, 1.0)
    join_cost: Range = (3.0, 9.0)
    join_selectivity: Range = (0.3, 1.0)
    growing_selectivity: Range = (1.0, 1.3)
    growing_share: float = 0.2
    deeper: float = 1.0


def sixteen_queries(ranges: Ranges, cost_scale: float = 1.0, seed: int = SEED) -> SimulatedPlan:
    """The plan: 6 queries without join, 5 with one, 3 with two, one with three, one with four."""
    return _Drawn(ranges, cost_scale, seed).plan


@cache
def full_load_scale(ranges: Ranges) -> float:
    """The scale of costs at which the mean rates keep one processor busy all the time."""
    return 1 / _load(sixteen_queries(ranges))


def _load(plan: SimulatedPlan) -> float:
    rates: dict[int | str, float] = dict(zip(plan.streams, RATES, strict=True))
    busy = 0.0
    for operator in plan.operators:
        made = 0.0
        for each in operator.inputs:
            assert isinstance(each.cost_seconds, float)  # noqa: S101
            assert isinstance(each.selectivity, float)  # noqa: S101
            busy += rates[each.source] * each.cost_seconds
            made += rates[each.source] * each.selectivity
        rates[operator.id] = made
    return busy


class _Drawn:
    """Draws the plan operator by operator; the same draws whatever the ranges."""

    def __init__(self, ranges: Ranges, cost_scale: float, seed: int) -> None:
        self.ranges, self.cost_scale = ranges, cost_scale
        self.generator = np.random.default_rng(seed)
        self.plan = SimulatedPlan()
        self.depths: list[int] = []
        streams = [self.plan.stream(f"s{number}") for number in range(len(RATES))]
        for number, length in enumerate(SIMPLE_LENGTHS):
            source = streams[number % len(streams)]
            self.plan.query(f"simple{number}", self._chain(source, length))
        for number, joins in enumerate(JOINS):
            first = int(self.generator.integers(len(streams)))
            chosen = [streams[(first + each) % len(streams)] for each in range(joins + 1)]
            self.plan.query(f"join{number}", self._joined(chosen, TAILS[joins]))

    def _joined(self, streams: Sequence[str], tail: int) -> int:
        """Selections on each stream, joined one after the other, then `tail` more operators."""
        at = self._chain(streams[0], 2)
        for stream in streams[1:]:
            at = self._join(at, self._chain(stream, 2))
        for _ in range(tail):
            at = self._operator(at, self.ranges.cost, self.ranges.selectivity)
        return at

    def _chain(self, stream: str, length: int) -> int:
        """A fast and selective leaf, then slower operators."""
        ranges = self.ranges
        at = self._operator(stream, ranges.leaf_cost, ranges.leaf_selectivity)
        at = self._operator(at, ranges.cost, ranges.second_selectivity)
        for _ in range(length - 2):
            at = self._operator(at, ranges.cost, ranges.selectivity)
        return at

    def _operator(self, source: int | str, cost: Range, selectivity: Range) -> int:
        scaled = self._scaled(cost, source)
        return self.plan.operator(self._name(), source, scaled, self._between(selectivity))

    def _scaled(self, cost: Range, *sources: int | str) -> float:
        """A cost that rises with the depth at which its operator stands."""
        depth = 1 + max(
            (self.depths[each] for each in sources if isinstance(each, int)), default=-1
        )
        self.depths.append(depth)
        return self.cost_scale * self.ranges.deeper ** max(depth - 1, 0) * self._between(cost)

    def _join(self, left: int, right: int) -> int:
        """A symmetric hash join, which takes tuples as they come; few yield more than one."""
        ranges = self.ranges
        cost = self._scaled(ranges.join_cost, left, right)
        grows = self.generator.random() < ranges.growing_share
        selectivity = self._between(
            ranges.growing_selectivity if grows else ranges.join_selectivity
        )
        join = self.plan.join(self._name(), left, right, cost, selectivity)
        self.plan.operators[join] = replace(self.plan.operators[join], ordered=False)
        return join

    def _between(self, limits: Range) -> float:
        return float(self.generator.uniform(*limits))

    def _name(self) -> str:
        return f"o{len(self.plan.operators)}"

"""Several orders of the same operators, from latency to memory, of which one is in use at a time.

A rung that is not in use only notes who changed; it catches up when it is used again. So a decision
costs O(log n), amortised, and unused rungs cost next to nothing.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from millpond.scheduling.charts.progress_chart import Point, path_chart, steepest_descents
from millpond.scheduling.charts.steepest_paths import SteepestPaths
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.ready_queue import ReadyQueue
from millpond.scheduling.snapshot import OperatorPath, OperatorState, PlanSnapshot, Producer

SHARES = (0.0, 0.4, 0.6, 0.8)
"""The weight λ of memory on each rung; from 0.8 on charts hardly differ from Chain's."""


class Ladder:
    """The ready operators in the order of each rung."""

    def __init__(self) -> None:
        self._priorities: list[Mapping[int, float]] = [{} for _ in SHARES]
        self._queues = [ReadyQueue() for _ in SHARES]
        self._stale: list[set[int]] = [set() for _ in SHARES]
        self._oldest: dict[int, float] = {}
        self._depth: Mapping[int, int] = {}

    @property
    def last(self) -> int:
        """The rung that saves the most memory."""
        return len(SHARES) - 1

    def priority(self, rung: int, operator: int) -> float:
        """The priority of an operator on a rung."""
        return self._priorities[rung][operator]

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Draw the charts of a plan for every rung."""
        self._priorities = list(_by_share(plan, SHARES))
        self._depth = plan.depth
        self._oldest.clear()
        for queue, stale in zip(self._queues, self._stale, strict=True):
            queue.clear()
            stale.clear()

    def observe(self, changed: Sequence[OperatorState], rung: int) -> None:
        """Note the new states, and put them in order on the rung in use."""
        operators = [state.operator for state in changed]
        for state in changed:
            if state.ready:
                self._oldest[state.operator] = state.oldest_arrival_seconds
            else:
                self._oldest.pop(state.operator, None)
            self._place(rung, state.operator)
        for number, stale in enumerate(self._stale):
            if number != rung:
                stale.update(operators)

    def best(self, rung: int) -> int | None:
        """The operator to run first on a rung."""
        stale = self._stale[rung]
        if stale:
            for operator in stale:
                self._place(rung, operator)
            stale.clear()
        return self._queues[rung].best()

    def _place(self, rung: int, operator: int) -> None:
        oldest = self._oldest.get(operator)
        if oldest is None:
            self._queues[rung].discard(operator)
        else:
            key = -self._priorities[rung][operator], oldest, -self._depth[operator]
            self._queues[rung].put(operator, key)


class WeighedDescents(SteepestPaths):
    """The steepest descents before operators on charts that weigh bytes and outputs owed."""

    def __init__(self, ways: Ways, byte_weight: float, output_weight: float) -> None:
        super().__init__(ways, byte_weight, output_weight)
        self._size, self._back = _largest_inputs(ways)

    def path_slopes(self, path: OperatorPath) -> Sequence[float]:
        """The descent before each operator on the chart of one path."""
        owed = self.output_weight * outputs_owed(self.plan, path)
        return steepest_descents(_weighed(path_chart(self.plan, path), self.byte_weight, owed))

    def room(self, operator: int, slope: float) -> tuple[float, Mapping[int, Producer]]:
        """The size of a tuple: what was before does not count."""
        size = self._size.get(operator)
        return -math.inf if size is None else self.byte_weight * size, self._back


def weighed_priorities(plan: PlanSnapshot, memory_share: float) -> dict[int, float]:
    """For each operator the steepest descent before it on the charts that weigh both objectives."""
    return next(_by_share(plan, (memory_share,)))


def _by_share(plan: PlanSnapshot, memory_shares: Iterable[float]) -> Iterator[dict[int, float]]:
    ways = Ways(plan)
    mean_bytes, mean_outputs = _means(ways)
    for share in memory_shares:
        byte_weight, output_weight = (
            share / (mean_bytes or 1.0),
            (1 - share) / (mean_outputs or 1.0),
        )
        yield WeighedDescents(ways, byte_weight, output_weight).found()


def outputs_owed(plan: PlanSnapshot, path: OperatorPath) -> float:
    """The outputs one tuple leads to at the end of a path, times the weight of its queries."""
    owed = plan.by_id[path.operators[-1]].weight
    for operator in path.operators:
        owed *= plan.by_id[operator].selectivity
    return owed


def _weighed(chart: Sequence[Point], byte_weight: float, delay: float) -> list[Point]:
    """The chart's bytes, weighed, and on top what is owed until its end is reached."""
    seconds, size = chart[-1]
    before = [(time, byte_weight * left + delay) for time, left in chart[:-1]]
    return [*before, (seconds, byte_weight * size)]


def _means(ways: Ways) -> tuple[float, float]:
    """The mean size of the tuples that paths begin with, and of the outputs these lead to."""
    plan, count = ways.plan, ways.paths_from
    owed: dict[int, float] = {}
    for identity in reversed(plan.upstream_first):
        operator = plan.by_id[identity]
        here = operator.weight * (1 / count[identity]) if operator.is_output else 0.0
        on = sum(owed[each] * (count[each] / count[identity]) for each in operator.downstream)
        owed[identity] = operator.selectivity * (here + on)
    total = sum(count[leaf] for leaf, _ in ways.leaves)
    shares = [(leaf, stream, count[leaf] / total) for leaf, stream in ways.leaves]
    mean_bytes = sum(plan.by_id[leaf].bytes_from(stream) * share for leaf, stream, share in shares)
    return mean_bytes, sum(owed[leaf] * share for leaf, _, share in shares)


def _largest_inputs(ways: Ways) -> tuple[dict[int, float], dict[int, Producer]]:
    """The size of the largest tuples that come to each operator, and where they come from."""
    size: dict[int, float] = {}
    back: dict[int, Producer] = {}
    for identity in ways.plan.upstream_first:
        operator = ways.plan.by_id[identity]
        above = (ways.plan.by_id[each] for each in ways.producers[identity] if each in size)
        offers: list[tuple[float, Producer]] = [
            *((operator.bytes_from(stream), stream) for stream in operator.streams),
            *((each.output_bytes, each.id) for each in above if each.selectivity > 0),
        ]
        if offers:
            size[identity], back[identity] = max(offers, key=lambda offer: offer[0])
    return size, back

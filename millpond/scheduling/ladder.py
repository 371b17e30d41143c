"""Several orders of the same operators, from latency to memory, of which one is in use at a time.

A rung that is not in use only notes who changed; it catches up when it is used again. So a decision
costs O(log n), amortised, and unused rungs cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millpond.scheduling.charts.progress_chart import Point, path_chart, steepest_descents
from millpond.scheduling.ready_queue import ReadyQueue
from millpond.snapshot import OperatorPath, OperatorState, PlanSnapshot

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
        self._priorities = [weighed_priorities(plan, share) for share in SHARES]
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


def weighed_priorities(plan: PlanSnapshot, memory_share: float) -> dict[int, float]:
    """For each operator the steepest descent before it on the charts that weigh both objectives."""
    charts = [(path, path_chart(plan, path), outputs_owed(plan, path)) for path in plan.paths]
    mean_bytes = sum(chart[0][1] for _, chart, _ in charts) / max(1, len(charts)) or 1.0
    mean_outputs = sum(owed for *_, owed in charts) / max(1, len(charts)) or 1.0
    found = dict.fromkeys(plan.by_id, 0.0)
    for path, chart, owed in charts:
        delay = (1 - memory_share) * owed / mean_outputs
        points = _weighed(chart, memory_share / mean_bytes, delay)
        for operator, descent in zip(path.operators, steepest_descents(points), strict=True):
            found[operator] = max(found[operator], descent)
    return found


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

"""Maximum-Slope-Segment, MSS (Unified paper, section 5, and its memory variant in section 6).

The waiting tuples of each queue are drawn as a chart: τ_i the `cost_seconds` of tuple i, and as its
fall the outputs it makes (latency) or the bytes it frees, M_in - σ_i M_out (memory). The line from
the beginning to the end of some tuple that is steepest bounds the first segment; the queue with the
steepest first segment is served. Optimal for latency when everything waits and each operator is a
component by itself. Behind a tuple the averages of what its step takes in are added to its own.
"""

import numpy as np

from millpond.scheduling.charts.component_partition import Objective, check_objective
from millpond.scheduling.charts.progress_chart import slope
from millpond.scheduling.charts.tuple_charts import TupleChart, tuple_charts
from millpond.scheduling.decisions import Decision, Service
from millpond.scheduling.ready_queue import ReadyQueue
from millpond.scheduling.snapshot import FloatArray, Observation, OperatorState, PlanSnapshot


class MaximumSlopeSegment:
    """Serves the queue whose first segment of tuples is the steepest, one tuple at a time.

    It is optimal where a runtime foretells tuples, as the simulator does; on Spark, where a tuple
    is a batch, the averages stand in for them. Tuples are looked at again after each decision, so a
    segment may be interrupted.
    """

    def __init__(self, objective: Objective = "latency", max_tuples: int | None = 1) -> None:
        check_objective(objective)
        self.objective: Objective = objective
        self.service = Service(max_tuples)
        self._charts: dict[int, TupleChart] = {}
        self._depth: dict[int, int] = {}
        self._ready = ReadyQueue()

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Work out what follows behind each operator."""
        self._charts = tuple_charts(plan, self.objective)
        self._depth = dict(plan.depth)
        self._ready.clear()

    def observe(self, observation: Observation) -> None:
        """Find the first segment of the queues that changed."""
        for state in observation.changed:
            if state.ready:
                age, depth = state.oldest_arrival_seconds, self._depth[state.operator]
                self._ready.put(state.operator, (-self.rank(state), age, -depth))
            else:
                self._ready.discard(state.operator)

    def decide(self) -> Decision | None:
        """Serve the queue of the highest rank."""
        best = self._ready.best()
        return None if best is None else self.service.run(best)

    def rank(self, state: OperatorState) -> float:
        """What queues are compared by: the slope of the first segment."""
        chart = self._charts[state.operator]
        if state.waiting is None:
            seconds, fall = chart.average(state)
            return chart.weight * slope((0.0, fall), (seconds, 0.0))
        return chart.weight * steepest_slope(*chart.steps(state))


def steepest_slope(seconds: FloatArray, fall: FloatArray) -> float:
    """The slope of the steepest line from the beginning of a chart to the end of one of its steps.

    >>> steepest_slope(np.array([10.0, 1.0, 9.0]), np.array([1.0, 1.0, 1.0]))
    0.18181818181818182
    """
    until, fallen = np.cumsum(seconds), np.cumsum(fall)
    timeless = until <= 0
    if (fallen[timeless] > 0).any():
        return float("inf")
    lasting = ~timeless
    return float((fallen[lasting] / until[lasting]).max()) if lasting.any() else 0.0

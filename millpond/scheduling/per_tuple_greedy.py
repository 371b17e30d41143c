"""Per-tuple greedy (Unified paper, sections 5 and 6).

Only the head tuples of the queues are compared: the cheapest is served (latency), or the one that
frees the most bytes in a second (memory). One expensive tuple holds back all that wait behind it.
"""

from __future__ import annotations

from millpond.scheduling.maximum_slope_segment import MaximumSlopeSegment
from millpond.scheduling.progress_chart import slope
from millpond.snapshot import OperatorState


class PerTupleGreedy(MaximumSlopeSegment):
    """Serves the queue whose first tuple alone is the best."""

    def rank(self, state: OperatorState) -> float:
        """The first tuple's cost, inverted, or the bytes it frees in a second."""
        chart = self._charts[state.operator]
        seconds, fall = chart.steps(state)
        gain = 1.0 if self.objective == "latency" else float(fall[0])
        return chart.weight * slope((0.0, gain), (float(seconds[0]), 0.0))

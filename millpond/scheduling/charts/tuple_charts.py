"""The charts of single waiting tuples, for strategies that are told what each will do."""

from dataclasses import dataclass

import numpy as np

from millpond.scheduling.charts.component_partition import Objective, charts
from millpond.scheduling.charts.fork_charts import Charts, MemoryReductionCharts
from millpond.scheduling.snapshot import FloatArray, OperatorSnapshot, OperatorState, PlanSnapshot


@dataclass(frozen=True)
class TupleChart:
    """How a tuple's own cost and outputs become a step of its queue's chart.

    An output gains `gain_per_output` and costs `seconds_per_output` in what the operator's step
    takes in behind it; a queue that is emptied frees `freed_share` of its bytes.
    """

    cost_seconds: float
    selectivity: float
    seconds_per_output: float
    gain_per_output: float
    freed_share: float = 0.0
    weight: float = 1.0

    def steps(self, state: OperatorState) -> tuple[FloatArray, FloatArray]:
        """Seconds and fall of each waiting tuple, or of one for all if no more is told."""
        waiting = state.waiting
        if waiting is None:
            seconds, fall = self.average(state)
            return np.array([seconds]), np.array([fall])
        count = len(waiting.cost_seconds)
        freed = self.freed_share * state.queued_bytes / count
        return (
            waiting.cost_seconds + waiting.outputs * self.seconds_per_output,
            freed + waiting.outputs * self.gain_per_output,
        )

    def average(self, state: OperatorState) -> tuple[float, float]:
        """Seconds and fall of a tuple that is as others were."""
        freed = self.freed_share * state.queued_bytes / max(state.queued_tuples, 1.0)
        return (
            self.cost_seconds + self.selectivity * self.seconds_per_output,
            freed + self.selectivity * self.gain_per_output,
        )


def tuple_charts(plan: PlanSnapshot, objective: Objective) -> dict[int, TupleChart]:
    """The chart of every operator's queue."""
    drawn = charts(plan, objective)
    return {each.id: _chart(drawn, each) for each in plan.operators}


def _chart(drawn: Charts, operator: OperatorSnapshot) -> TupleChart:
    behind = drawn.taken_in(operator)
    cost, selectivity = operator.cost_seconds, operator.selectivity
    if isinstance(drawn, MemoryReductionCharts):
        share = drawn.freed_bytes(operator) / operator.input_bytes if operator.input_bytes else 0.0
        gain = behind.fall - operator.queued_output_bytes
        return TupleChart(cost, selectivity, behind.seconds, gain, share, operator.weight)
    gain = behind.fall + (operator.weight if operator.is_output else 0.0)
    return TupleChart(cost, selectivity, behind.seconds, gain)

"""The plan snapshot of a simulated plan, from its true averages or from those last measured."""

from collections.abc import Mapping
from dataclasses import dataclass

from millpond.scheduling.snapshot import (
    FloatArray,
    InputSnapshot,
    OperatorSnapshot,
    PlanSnapshot,
    Producer,
    WeightedQuery,
)
from millpond.simulator.distributions import mean_of
from millpond.simulator.plan import SimulatedInput, SimulatedOperator, SimulatedPlan

SHORTEST_SECONDS = 1e-9
"""Tuples that all come within less than this have no rate."""


@dataclass(frozen=True)
class Measured:
    """What an operator did in the last window of time."""

    cost_seconds: float
    selectivity: float


def plan_snapshot(
    plan: SimulatedPlan,
    stream_rates: Mapping[str, float],
    overhead_seconds: Mapping[int, float],
    measured: Mapping[int, Measured],
) -> PlanSnapshot:
    """What strategies are told of the plan."""
    rates: dict[Producer, float] = dict(stream_rates.items())
    readers = readers_of(plan)
    served = queries_served(plan)
    outputs = {output for output, _ in plan.queries.values()}
    operators = []
    for operator in plan.operators:
        inputs = tuple(
            _input(plan, operator, each, rates, overhead_seconds[operator.id], measured)
            for each in operator.inputs
        )
        rates[operator.id] = sum(each.tuples_per_second * each.selectivity for each in inputs)
        operators.append(
            OperatorSnapshot(
                operator.id,
                operator.name,
                inputs,
                downstream=tuple(dict.fromkeys(readers[operator.id])),
                queries=tuple(served[operator.id]),
                output_bytes=operator.output_bytes,
                step_cost_seconds=operator.step_cost_seconds,
                delivers=operator.id in outputs,
            )
        )
    return PlanSnapshot(tuple(operators))


def stream_rate(arrivals: FloatArray) -> float:
    """Tuples a second over the whole of a stream; all at once count as if within a second."""
    lasting_seconds = float(arrivals[-1] - arrivals[0]) if len(arrivals) else 0.0
    if lasting_seconds < SHORTEST_SECONDS:
        return float(len(arrivals))
    return (len(arrivals) - 1) / lasting_seconds


def readers_of(plan: SimulatedPlan) -> dict[Producer, list[int]]:
    """Who reads each stream and operator, in plan order."""
    readers: dict[Producer, list[int]] = {stream: [] for stream in plan.streams}
    for operator in plan.operators:
        readers[operator.id] = []
        for each in operator.inputs:
            readers[each.source].append(operator.id)
    return readers


def queries_served(plan: SimulatedPlan) -> dict[int, list[WeightedQuery]]:
    """The queries each operator works for."""
    served: dict[int, list[WeightedQuery]] = {operator.id: [] for operator in plan.operators}
    for name, (output, weight) in plan.queries.items():
        pending, seen = [output], {output}
        while pending:
            operator = pending.pop()
            served[operator].append(WeightedQuery(name, weight))
            above = {each.source for each in plan.operators[operator].inputs}
            fresh = {each for each in above if isinstance(each, int)} - seen
            seen |= fresh
            pending.extend(fresh)
    return served


def _input(
    plan: SimulatedPlan,
    operator: SimulatedOperator,
    each: SimulatedInput,
    rates: Mapping[Producer, float],
    overhead_seconds: float,
    measured: Mapping[int, Measured],
) -> InputSnapshot:
    source = each.source
    cost, selectivity = mean_of(each.cost_seconds) + overhead_seconds, mean_of(each.selectivity)
    if operator.id in measured:
        cost, selectivity = measured[operator.id].cost_seconds, measured[operator.id].selectivity
    elif operator.window is not None:
        cost, selectivity = _window_averages(operator, each, rates, cost, selectivity)
    size = plan.streams[source] if isinstance(source, str) else plan.operators[source].output_bytes
    return InputSnapshot(source, cost, selectivity, size, rates[source])


def _window_averages(
    operator: SimulatedOperator,
    each: SimulatedInput,
    rates: Mapping[Producer, float],
    cost_seconds: float,
    selectivity: float,
) -> tuple[float, float]:
    window = operator.window
    if window is None:
        return cost_seconds, selectivity
    others = [other for other in operator.inputs if other is not each]
    if window.rows is not None:
        partners = float(window.rows * len(others))
    else:
        partners = sum(rates[other.source] for other in others) * (window.seconds or 0.0)
    if window.match_probability > 0:
        selectivity = partners * window.match_probability
    probing = partners * window.probe_seconds + selectivity * window.match_seconds
    return cost_seconds + probing, selectivity

"""Small instances whose every schedule can be tried: all tuples wait, nothing else arrives.

The least area under the output completion or memory reduction curve is found by going through all
orders that keep the arrival order of each queue; orders that meet in the same state are followed
once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, TypeAlias

from millpond.scheduling.snapshot import Producer
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, Listed, Record, SimulatedPlan, simulate

Objective: TypeAlias = Literal["latency", "memory"]
State: TypeAlias = tuple[int, ...]
"""How many tuples each operator has served."""


@dataclass(frozen=True)
class SmallOperator:
    """An operator whose i-th tuple takes `costs[i]` seconds and makes `outputs[i]` tuples."""

    source: Producer
    costs: tuple[float, ...]
    outputs: tuple[int, ...]
    output_bytes: float = 1.0


@dataclass(frozen=True)
class SmallInstance:
    """Operators, each behind those it reads, and how many tuples wait on each stream."""

    operators: tuple[SmallOperator, ...]
    waiting: tuple[tuple[str, int], ...]

    @cached_property
    def readers(self) -> dict[Producer, list[int]]:
        """Who reads each stream and operator."""
        found: dict[Producer, list[int]] = {stream: [] for stream, _ in self.waiting}
        for place, operator in enumerate(self.operators):
            found[place] = []
            found[operator.source].append(place)
        return found

    def least_area(self, objective: Objective) -> float:
        """The least area under the curve of any schedule: total latency, or bytes times seconds."""

        @cache
        def best(state: State) -> float:
            height = self._owed(state) if objective == "latency" else self._queued_bytes(state)
            ways = [
                height * operator.costs[served]
                + best((*state[:place], served + 1, *state[place + 1 :]))
                for place, (operator, served) in enumerate(zip(self.operators, state, strict=True))
                if served < self._made(operator.source, state)
            ]
            return min(ways, default=0.0)

        return best((0,) * len(self.operators))

    def simulate(self, strategy: Strategy) -> Record:
        """Let a strategy that may know every tuple schedule the instance."""
        plan = SimulatedPlan()
        for stream, _ in self.waiting:
            plan.stream(stream)
        for place, each in enumerate(self.operators):
            costs, outputs = Listed(each.costs), Listed.of(each.outputs)
            plan.operator(f"O{place}", each.source, costs, outputs, each.output_bytes)
            if not self.readers[place]:
                plan.query(f"q{place}", place)
        arrivals = {stream: [0.0] * count for stream, count in self.waiting}
        return simulate(plan, strategy, arrivals, Conditions(clairvoyant=True, trace=True))

    def area(self, strategy: Strategy, objective: Objective) -> float:
        """The area under the curve that a strategy reaches."""
        record = self.simulate(strategy)
        if objective == "latency":
            return float(record.output_latency_seconds.sum())
        return record.mean_bytes * record.finished_seconds

    def _made(self, source: Producer, state: State) -> int:
        if isinstance(source, str):
            return dict(self.waiting)[source]
        return sum(self.operators[source].outputs[: state[source]])

    def _owed(self, state: State) -> int:
        """Outputs that are still to leave the system."""
        return sum(
            sum(operator.outputs[served:])
            for place, (operator, served) in enumerate(zip(self.operators, state, strict=True))
            if not self.readers[place]
        )

    def _queued_bytes(self, state: State) -> float:
        """What the queues hold; a shared tuple stays until its last reader has served it."""
        total = 0.0
        for source, readers in self.readers.items():
            if readers:
                size = 1.0 if isinstance(source, str) else self.operators[source].output_bytes
                total += size * (self._made(source, state) - min(state[each] for each in readers))
        return total


def tree(
    parents: Sequence[Producer],
    costs: Sequence[float],
    count: int,
    output_bytes: Sequence[float] | None = None,
    outputs: Sequence[int] | None = None,
) -> SmallInstance:
    """`count` tuples alike on one stream "s" before a tree of operators."""
    made = [1] * len(parents) if outputs is None else outputs
    sizes = [1.0] * len(parents) if output_bytes is None else output_bytes
    served: dict[Producer, int] = {"s": count}
    operators = []
    for place, parent in enumerate(parents):
        tuples = served[parent]
        served[place] = tuples * made[place]
        costs_of, outputs_of = (costs[place],) * tuples, (made[place],) * tuples
        operators.append(SmallOperator(parent, costs_of, outputs_of, sizes[place]))
    return SmallInstance(tuple(operators), (("s", count),))

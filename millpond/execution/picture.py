"""What strategies see of the running operators: the plan with what was measured, and its queues."""

import time
from collections.abc import Callable, Container, Iterable

from millpond.execution.running_operators import RunningOperators
from millpond.execution.turns import Turns
from millpond.execution.units import Unit
from millpond.identities import BY_NUMBER, OperatorId, QueryName, QueueId
from millpond.planning.physical import LinearOperator, OutputOperator
from millpond.scheduling.snapshot import (
    InputSnapshot,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
    Producer,
    WeightedQuery,
)
from millpond.scheduling.threads.fused_plan import fused_snapshot
from millpond.schema import FOREVER

SMALLEST_RATE = 1e-9
"""What a quiet input is said to bring: its share of averages is nothing, but it has one."""


class Picture:
    """The running operators as strategies see them."""

    def __init__(self, operators: RunningOperators) -> None:
        self.weights: dict[str, float] = {}
        self.told: Callable[[list[str]], str] = ", ".join
        """Names of queries, and of groups of them, as people read them."""
        self.turns = Turns()
        """What a step costs beside its execution."""
        self.began = time.monotonic()
        self._operators = operators
        self._graph = operators.graph

    def plan(self, version: int) -> PlanSnapshot:
        """The virtual operators with their measured averages."""
        of = self._operators.units.of
        units = {each.number: unit.identity.number for each, unit in of.items()}
        return fused_snapshot(self.elementary(version), units, version)

    def elementary(self, version: int = 0) -> PlanSnapshot:
        """The running operators, each for itself."""
        served = self._served()
        snapshots = (self._snapshot(each, served[each]) for each in self._operators.running)
        declared = self._operators.partitions.declared
        return PlanSnapshot(tuple(snapshots), version, partitions=declared)

    def shape(self, identities: Iterable[OperatorId]) -> PlanSnapshot:
        """Some operators that no other reads or is read by, as if nothing were known of them."""
        return PlanSnapshot(tuple(map(self._bare, identities)))

    def _bare(self, identity: OperatorId) -> OperatorSnapshot:
        sources = self._operators.running[identity].inputs
        return OperatorSnapshot(
            identity.number,
            identity,
            tuple(InputSnapshot(self._producer(queue), 0.0, 1.0) for queue in sources),
            tuple(each.number for each in self._graph.readers(identity)),
        )

    def _producer(self, queue: QueueId) -> Producer:
        if isinstance(queue, OperatorId) and queue in self._operators.running:
            return queue.number
        return queue

    def _served(self) -> dict[OperatorId, list[str]]:
        """For each operator the queries that depend on it; readers have higher numbers."""
        served: dict[OperatorId, list[str]] = {}
        for identity in sorted(self._graph.operators, key=BY_NUMBER, reverse=True):
            operator = self._graph.operators[identity]
            if isinstance(operator, OutputOperator):
                served[identity] = [operator.query]
            else:
                readers = self._graph.readers(identity)
                found = dict.fromkeys(query for each in readers for query in served[each])
                served[identity] = list(found)
        return served

    def _snapshot(self, identity: OperatorId, queries: list[str]) -> OperatorSnapshot:
        operator, queues = self._graph.operators[identity], self._operators.queues
        measured = self._operators.statistics[identity]
        inputs = tuple(
            InputSnapshot(
                self._producer(queue),
                measured.cost_seconds,
                measured.selectivity,
                measured.input_bytes,
                max(queues[queue].arrivals.per_second(), SMALLEST_RATE),
            )
            for queue in self._operators.running[identity].inputs
        )
        return OperatorSnapshot(
            identity.number,
            operator.label(),
            inputs,
            tuple(each.number for each in self._graph.readers(identity)),
            tuple(WeightedQuery(query, self.weights.get(query, 1.0)) for query in queries),
            measured.output_bytes,
            measured.step_seconds + self.turns.seconds,
            isinstance(operator, OutputOperator),
            partition=self._operators.partitions.of.get(identity, ""),
        )

    def queries(self, identity: OperatorId) -> list[QueryName]:
        """The queries that depend on an operator."""
        return self._graph.queries(identity)

    def states(
        self, units: Iterable[Unit], under_way: Container[str], held: Container[Unit]
    ) -> list[OperatorState]:
        """The queues of some units now; those that are held begin nothing new."""
        return [self._state(unit, unit.identity in under_way, unit in held) for unit in units]

    def _state(self, unit: Unit, is_busy: bool, is_held: bool) -> OperatorState:
        until, statistics = unit.horizon, self._operators.statistics
        waiting = {each.identity: each.waiting(each.claimed, FOREVER) for each in unit.members}
        is_free = not (is_busy and unit.keeps_state) and not is_held and until > unit.claimed
        is_ready = is_free and unit.has_work(until)
        return OperatorState(
            unit.identity.number,
            float(sum(waiting.values())),
            sum(rows * statistics[each].input_bytes for each, rows in waiting.items()),
            unit.oldest_arrival - self.began,
            is_ready,
            is_busy,
        )

    def place_of(self, identity: OperatorId) -> str:
        """What an error in an operator is called after: its queries, and what it does there.

        Selections and projections are a part of what reads them, wherever they are done.
        """
        operator = self._graph.operators[identity]
        served = (QueryName(query).asked_by for query in self.queries(identity))
        queries = self.told(list(dict.fromkeys(served)))
        word = "query" if "," not in queries else "queries"
        is_named = not isinstance(operator, OutputOperator | LinearOperator)
        return f"{word} {queries}" + (f", {operator.label()}" if is_named else "")

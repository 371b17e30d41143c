"""What strategies see of the running operators: the plan with what was measured, and its queues."""

from __future__ import annotations

import time
from collections.abc import Iterable

from millpond.catalog import ASIDE
from millpond.planning.physical import Graph, OutputOperator
from millpond.schema import FOREVER
from millpond.snapshot import (
    InputSnapshot,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
    QueryShare,
)
from millpond.spark.operators.running import RunningOperator
from millpond.spark.statistics import Statistics


class Picture:
    """The running operators as strategies see them."""

    def __init__(self, graph: Graph) -> None:
        self.running: dict[str, RunningOperator] = {}
        self.statistics: dict[str, Statistics] = {}
        self.weights: dict[str, float] = {}
        self.began = time.monotonic()
        self._graph = graph

    def plan(self, version: int) -> PlanSnapshot:
        """The running operators with their measured averages."""
        served = self._served()
        return PlanSnapshot(
            tuple(self._snapshot(identity, served[identity]) for identity in self.running), version
        )

    def _served(self) -> dict[str, list[str]]:
        """For each operator the queries that depend on it; readers have higher numbers."""
        served: dict[str, list[str]] = {}
        for identity in sorted(self._graph.operators, key=number, reverse=True):
            operator = self._graph.operators[identity]
            if isinstance(operator, OutputOperator):
                served[identity] = [operator.query]
            else:
                readers = self._graph.readers(identity)
                found = dict.fromkeys(query for each in readers for query in served[each])
                served[identity] = list(found)
        return served

    def _snapshot(self, identity: str, queries: list[str]) -> OperatorSnapshot:
        operator, measured = self._graph.operators[identity], self.statistics[identity]
        inputs = tuple(
            InputSnapshot(
                number(queue) if queue in self.running else queue,
                measured.cost_seconds,
                measured.selectivity,
                measured.input_bytes,
            )
            for queue in self.running[identity].inputs
        )
        return OperatorSnapshot(
            number(identity),
            operator.label(),
            inputs,
            tuple(map(number, self._graph.readers(identity))),
            tuple(QueryShare(query, self.weights.get(query, 1.0)) for query in queries),
            measured.output_bytes,
            measured.step_seconds,
            isinstance(operator, OutputOperator),
        )

    def queries(self, identity: str) -> list[str]:
        """The queries that depend on an operator."""
        found: dict[str, None] = {}
        seen, waiting = {identity}, [identity]
        while waiting:
            operator = self._graph.operators[waiting[-1]]
            readers = self._graph.readers(waiting.pop())
            if isinstance(operator, OutputOperator):
                found[operator.query] = None
            waiting += [each for each in reversed(readers) if each not in seen]
            seen.update(readers)
        return list(found)

    def states(self, identities: Iterable[str], under_way: Iterable[str]) -> list[OperatorState]:
        """The queues of some operators now."""
        busy = set(under_way)
        return [self._state(identity, identity in busy) for identity in identities]

    def _state(self, identity: str, is_busy: bool) -> OperatorState:
        running = self.running[identity]
        until = running.horizon
        waiting = running.waiting(running.claimed, FOREVER)
        arrived = min(queue.oldest_arrival(running.claimed) for queue, _ in running.subscriptions)
        is_free = not (is_busy and running.keeps_state) and until > running.claimed
        is_ready = is_free and running.has_work(until)
        return OperatorState(
            number(identity),
            float(waiting),
            waiting * self.statistics[identity].input_bytes,
            arrived - self.began,
            is_ready,
            is_busy and not is_ready,
        )

    def place_of(self, identity: str) -> str:
        """What an error in an operator is called after: its queries, and what it does there."""
        operator = self._graph.operators[identity]
        served = (query.removesuffix(ASIDE) for query in self.queries(identity))
        queries = ", ".join(dict.fromkeys(served))
        word = "query" if "," not in queries else "queries"
        is_output = isinstance(operator, OutputOperator)
        return f"{word} {queries}" + ("" if is_output else f", {operator.label()}")


def number(identity: str) -> int:
    """The number by which strategies know an operator.

    >>> number("op12")
    12
    """
    return int(identity.removeprefix("op"))

"""The Runtime on Spark: operators over DataFrames, one step of one operator at a time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession

from millpond.decisions import Decision, RunOperator
from millpond.errors import InputError, StateError
from millpond.planning.physical import Graph, OutputOperator
from millpond.snapshot import (
    InputSnapshot,
    Observation,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
    QueryShare,
)
from millpond.spark.failures import in_plain_words
from millpond.spark.frames import Frames
from millpond.spark.operators import start
from millpond.spark.operators.running import RunningOperator
from millpond.spark.session import for_steps
from millpond.spark.statistics import Statistics
from millpond.spark.surroundings import Limits, Surroundings
from millpond.storage.pages import PageStore
from millpond.storage.queues import Queue

STATISTICS_SECONDS = 1.0
"""How often strategies are told the measured costs and selectivities."""

Deliver = Callable[[str, pa.Table, int], None]
"""Takes a query's name, what it puts out (_ts, _w, c0…) and the time up to which it is complete."""


class SparkRuntime:
    """Runs a graph of operators on one Spark session, as a strategy decides."""

    def __init__(
        self,
        session: SparkSession,
        graph: Graph,
        queues: dict[str, Queue],
        store: PageStore,
        deliver: Deliver,
        limits: Limits,
    ) -> None:
        self.queues = queues
        self.running: dict[str, RunningOperator] = {}
        self.statistics: dict[str, Statistics] = {}
        self._graph = graph
        self._store = store
        self._deliver = deliver
        self._limits = limits
        self._frames = Frames(for_steps(session), store)
        self._version = 0
        self._weights: dict[str, float] = {}
        self._changed: set[str] = set()
        self._failed: dict[str, InputError] = {}
        self._began = self._told = time.monotonic()

    # -- the graph -------------------------------------------------------------------------

    def start(self, since: dict[int, dict[str, int]], cursor: int) -> None:
        """Starts the operators that are new in the graph.

        ``since`` tells for each epoch after which times its operators read the streams.
        """
        for identity, operator in self._graph.operators.items():
            if identity in self.running:
                continue
            after = since.get(self._graph.epochs[identity], {})
            around = Surroundings(self.queues, self._frames, after, self._limits)
            running = start(operator, around, cursor)
            self.running[identity] = running
            self.queues[identity] = Queue(
                identity, running.output_schema, self._store, operator.is_stream
            )
            self.statistics[identity] = Statistics()
            self._changed.add(identity)
        self._version += 1

    def stop(self, identities: list[str]) -> None:
        """Stops operators and frees what they held."""
        for identity in identities:
            self.running.pop(identity).close()
            self.queues.pop(identity).close()
            del self.statistics[identity]
            self._changed.discard(identity)
        for queue in self.queues.values():
            queue.free()
        self._version += 1

    def set_weight(self, query: str, weight: float) -> None:
        """Tells strategies how much a query matters."""
        self._weights[query] = weight
        self._version += 1

    # -- what strategies see ---------------------------------------------------------------

    @property
    def plan_version(self) -> int:
        """Grows with every change of the graph, and now and then with what was measured."""
        return self._version

    def plan(self) -> PlanSnapshot:
        """The running operators with their measured averages."""
        return PlanSnapshot(tuple(map(self._snapshot, self.running)), self._version)

    def _snapshot(self, identity: str) -> OperatorSnapshot:
        operator, measured = self._graph.operators[identity], self.statistics[identity]
        inputs = tuple(
            InputSnapshot(
                number(queue) if queue in self.running else queue,
                measured.cost_seconds,
                measured.selectivity,
                measured.input_bytes,
            )
            for queue in operator.queues()
        )
        return OperatorSnapshot(
            number(identity),
            operator.label(),
            inputs,
            tuple(map(number, self._graph.readers(identity))),
            tuple(QueryShare(q, self._weights.get(q, 1.0)) for q in self._queries(identity)),
            measured.output_bytes,
            measured.step_seconds,
            isinstance(operator, OutputOperator),
        )

    def _queries(self, identity: str) -> list[str]:
        operator = self._graph.operators[identity]
        if isinstance(operator, OutputOperator):
            return [operator.query]
        found: dict[str, None] = {}
        for reader in self._graph.readers(identity):
            found.update(dict.fromkeys(self._queries(reader)))
        return list(found)

    def observe(self, complete: bool) -> Observation:
        """The operators whose queues changed."""
        self._pass_heartbeats()
        wanted = self.running if complete else sorted(self._changed, key=number)
        states = [self._state(identity) for identity in wanted]
        self._changed = set()
        return Observation(time.monotonic() - self._began, states, self.queue_bytes)

    def _state(self, identity: str) -> OperatorState:
        running = self.running[identity]
        until = running.horizon
        waiting = running.waiting(running.cursor, until)
        arrived = min(
            (queue.oldest_arrival(reader.cursor) for queue, reader in running.subscriptions),
        )
        return OperatorState(
            number(identity),
            float(waiting),
            waiting * self.statistics[identity].input_bytes,
            arrived - self._began,
            identity not in self._failed and running.has_work(until),
        )

    @property
    def queue_bytes(self) -> float:
        """The memory of all queues."""
        return float(self._store.bytes)

    # -- what strategies ask ---------------------------------------------------------------

    def has_free_processor(self) -> bool:
        """One step at a time: Spark is free whenever the loop asks."""
        return True

    def perform(self, decision: Decision) -> None:
        """Runs one step of one operator."""
        if not isinstance(decision, RunOperator):
            raise StateError("queues on Spark stand behind stateful operators and cannot be moved")
        identity = f"op{decision.operator}"
        running = self.running[identity]
        most = min(decision.max_tuples or self._limits.step_rows, self._limits.step_rows)
        try:
            self._step(identity, running.limited(running.horizon, most))
        except InputError as error:
            self._failed[identity] = error
            self._changed.add(identity)

    def raise_failures(self) -> None:
        """Raises what went wrong since the last call; those operators will be tried again.

        A query whose data do not fit stands still, and the others go on.
        """
        failed, self._failed = self._failed, {}
        self._changed |= failed.keys() & self.running.keys()
        if failed:
            first, *others = failed.values()
            more = f" (and {len(others)} more: {others[0]})" if others else ""
            raise InputError(f"{first}{more}") from first

    def wait(self) -> bool:
        """Nothing changes by itself: without work the loop ends."""
        return False

    def _step(self, identity: str, until: int) -> None:
        running, queue = self.running[identity], self.queues[identity]
        operator, measured = running.operator, self.statistics[identity]
        after = running.cursor
        measured.input_bytes = running.row_bytes or measured.input_bytes
        began = time.monotonic()
        with in_plain_words(lambda: self._place(identity)):
            output = running.step(until)
        ended = time.monotonic()
        measured.record(running.waiting(after, until), output, ended - began)
        if ended - self._told > STATISTICS_SECONDS:
            self._told = ended
            self._version += 1
        if isinstance(operator, OutputOperator):
            self._deliver(operator.query, output, until)
        else:
            queue.append(output)
        queue.advance(until)
        self._touch(identity)

    def _place(self, identity: str) -> str:
        """What an error in an operator is called after: its queries, and what it does there."""
        operator, queries = self._graph.operators[identity], ", ".join(self._queries(identity))
        word = "query" if "," not in queries else "queries"
        is_output = isinstance(operator, OutputOperator)
        return f"{word} {queries}" + ("" if is_output else f", {operator.label()}")

    def _touch(self, identity: str) -> None:
        for name in self._graph.operators[identity].queues():
            self.queues[name].free()
        self._changed |= {identity, *self._graph.readers(identity)}

    def arrived(self, queue: str) -> None:
        """Notes that a base queue has new rows or a new heartbeat."""
        self._changed |= set(self._graph.readers(queue))

    def _pass_heartbeats(self) -> None:
        """Moves operators that have nothing to do, so that no reader waits for a quiet input.

        Only what changed is looked at, inputs before their readers: those have higher numbers.
        """
        waiting = list(map(number, self._changed))
        heapq.heapify(waiting)
        while waiting:
            identity = f"op{heapq.heappop(waiting)}"
            running = self.running[identity]
            until = running.horizon
            if until > running.cursor and not running.has_work(until):
                self._step_idle(identity, running, until)
                for reader in map(number, self._graph.readers(identity)):
                    heapq.heappush(waiting, reader)

    def _step_idle(self, identity: str, running: RunningOperator, until: int) -> None:
        running.skip(until)
        operator = running.operator
        if isinstance(operator, OutputOperator):
            self._deliver(operator.query, running.output_schema.empty_table(), until)
        self.queues[identity].advance(until)
        self._touch(identity)

    def close(self) -> None:
        """Frees all pages."""
        for queue in self.queues.values():
            queue.close()


def number(identity: str) -> int:
    """The number by which strategies know an operator.

    >>> number("op12")
    12
    """
    return int(identity.removeprefix("op"))
